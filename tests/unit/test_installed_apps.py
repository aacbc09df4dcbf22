"""Which apps are installed; a faulty one is left out and named."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from fastapi import APIRouter
from pydantic import BaseModel

from telecine.apps import App, AppFlow, FlowContext, SubjectKind
from telecine.apps.installed import BUILT_IN, AppEntry, AppFault, Installed, load
from telecine.errors import BadSpec
from telecine.flow import Flow
from telecine.settings import Settings
from telecine.settings import load as load_settings
from telecine.wiring.apps import Gathered, check_routes, flows_of, section_of

FLOW = {"greet": AppFlow(make=lambda context: Flow("greet"))}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("some_apps")
    monkeypatch.setitem(sys.modules, "some_apps", made)
    return made


def entries(*names: str) -> list[AppEntry]:
    return [AppEntry(f"some_apps:{name}", "a-package") for name in names]


def test_the_built_in_apps_are_fine() -> None:
    found = load([AppEntry(place) for place in BUILT_IN])

    assert ([app.name for app in found.apps], found.faults) == (["transcode"], ())
    assert found.flow("transcode") is not None
    assert found.flow("other") is None


def test_a_faulty_app_is_named_and_stops_no_other(module: ModuleType) -> None:
    module.good = App(name="good", title="Good")  # type: ignore[attr-defined]
    module.wrong = "an app"  # type: ignore[attr-defined]
    module.odd = App(name="Odd Name", title="Odd")  # type: ignore[attr-defined]

    found = load([*entries("missing", "wrong", "odd"), AppEntry("no_such_module:app", "b-package"), *entries("good")])

    assert [app.name for app in found.apps] == ["good"]
    missing, wrong, odd, absent = found.faults
    assert missing.startswith("app some_apps:missing of a-package is left out: AttributeError")
    assert wrong == "app some_apps:wrong of a-package is left out: it is str, not telecine.apps.App"
    assert "name 'Odd Name' must match" in odd
    assert (
        absent
        == "app no_such_module:app of b-package is left out: ModuleNotFoundError: No module named 'no_such_module'"
    )


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (App(name="one", title="Two"), "name 'one' is taken by another app"),
        (App(name="two", title="Two", flows=FLOW), "flow 'greet' is taken by app 'one'"),
        (
            App(name="two", title="Two", subjects=(SubjectKind(name="card"),)),
            "subject kind 'card' is taken by app 'one'",
        ),
    ],
)
def test_what_is_taken_stays_with_the_first(module: ModuleType, second: App, why: str) -> None:
    module.one = App(name="one", title="One", flows=FLOW, subjects=(SubjectKind(name="card"),))  # type: ignore[attr-defined]
    module.two = second  # type: ignore[attr-defined]

    found = load(entries("one", "two"))

    assert [app.title for app in found.apps] == ["One"]
    assert [fault.endswith(f"is left out: {why}") for fault in found.faults] == [True]


def routes(*paths: str, method: str = "GET") -> APIRouter:
    router = APIRouter()
    for path in paths:
        router.add_api_route(path, lambda: None, methods=[method])
    return router


@pytest.mark.parametrize("path", ["/api/v1/flows", "/api/v1/{anything}", "/{rest:path}"])
def test_a_route_that_meets_another_is_refused(path: str) -> None:
    with pytest.raises(AppFault, match="collides with /api/v1/flows"):
        check_routes(routes(path).routes, routes("/api/v1/flows").routes)


def test_a_route_that_meets_the_parameter_of_another_is_refused() -> None:
    with pytest.raises(AppFault, match="collides with"):
        check_routes(routes("/api/v1/flows/mine").routes, routes("/api/v1/flows/{flow}").routes)


def test_another_path_or_method_does_not_collide() -> None:
    check_routes(routes("/api/v1/thumbnails").routes, routes("/api/v1/flows").routes)
    check_routes(routes("/api/v1/flows", method="PUT").routes, routes("/api/v1/flows").routes)


def test_what_one_app_cannot_make_is_left_out() -> None:
    gathered = Gathered(report=False)

    def make(app: App) -> str:
        if app.name == "bad":
            raise ValueError("no\nreason")
        return app.title

    found = gathered.each("routes", make, [App(name="bad", title="Bad"), App(name="good", title="Good")])

    assert [made for _, made in found] == ["Good"]
    assert gathered.faults == ["routes of app bad are left out: ValueError: no reason"]


class Section(BaseModel, extra="forbid"):
    width: int = 320


def test_an_app_has_settings_of_its_own() -> None:
    app = App(name="small", title="Small", settings=lambda: Section)
    settings = load_settings({"TELECINE_APPS": '{"small": {"width": 64}}'}).settings

    assert section_of(app, settings) == Section(width=64)
    assert section_of(app, Settings()) == Section(width=320)
    assert section_of(App(name="plain", title="Plain"), settings) is None
    assert settings.shown("apps") == {"small": "***"}
    with pytest.raises(BadSpec, match=r"^apps\.small\.width: input should be a valid integer"):
        section_of(app, Settings(apps={"small": {"width": "wide"}}))


def test_sections_in_a_variable_are_json() -> None:
    with pytest.raises(BadSpec, match="apps in a variable are JSON"):
        load_settings({"TELECINE_APPS": "small"})


def flow_context(section: Any) -> FlowContext:
    return FlowContext(settings=Settings(), section=section, shared=False, open_bucket=str)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda context: Flow("other"), "the flow that is listed as 'greet' is called 'other'"),
        (lambda context: Flow("greet"), "BadFlow: "),
    ],
)
def test_a_flow_that_cannot_work_is_left_out(
    make: Callable[[FlowContext], Flow], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(name="odd", title="Odd", flows={"greet": AppFlow(make=make)})
    monkeypatch.setattr("telecine.wiring.apps.installed", lambda: Installed((app,), ("odd",), ()))
    gathered = Gathered(report=False)

    assert flows_of(flow_context, Settings(), gathered) == []
    assert [fault.startswith(f"flows of app odd are left out: {why}") for fault in gathered.faults] == [True]


def test_wrong_settings_of_an_app_are_refused_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(name="small", title="Small", settings=lambda: Section)
    monkeypatch.setattr("telecine.wiring.apps.installed", lambda: Installed((app,), ("small",), ()))

    with pytest.raises(BadSpec, match=r"^apps\.small\.width"):
        flows_of(flow_context, Settings(apps={"small": {"width": "wide"}}))
