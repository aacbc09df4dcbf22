"""Which apps a server has."""

from tests.api.in_process_server import ANY_DATABASE, Front

PLACE = "/api/v1/apps"


@ANY_DATABASE
async def test_apps_are_listed_with_their_flows_kinds_and_specs(front: Front) -> None:
    [app] = (await front.ada.get(PLACE)).json()["items"]

    schema = app["specs"].pop("transcode")
    assert app["version"]
    assert {**app, "version": ""} == {
        "name": "transcode",
        "title": "Any video to adaptive streams, exact to the frame, resumed at the segment",
        "version": "",
        "flows": ["transcode"],
        "subjects": [{"name": "video", "statuses": ["pending", "processing", "ready", "failed"]}],
        "specs": {},
    }
    assert schema["required"] == ["source"]
    assert schema["properties"]["verify"]["enum"] == ["sample", "full"]


@ANY_DATABASE
async def test_apps_are_for_owners_like_flows(front: Front) -> None:
    assert (await front.nobody.get(PLACE)).status_code == 401
    assert (await front.worker.get(PLACE)).status_code == 403
    assert (await front.admin.get(PLACE)).status_code == 200
