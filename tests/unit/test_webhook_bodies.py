"""What a letter says, and how it is signed: each shape, and what strangers put into it."""

import base64
import hashlib
import hmac
import json
import re
from typing import Any

import pytest

from telecine.engine.webhooks.subscriptions import check_url, letter_name, shown_key, signing_key
from telecine.errors import BadSpec
from telecine.observe.alerts import ALERTS
from telecine.observe.webhook_bodies import MAX_BYTES, body_of
from telecine.observe.webhook_signature import signed

PUBLIC = "https://films.example"


def facts(**more: Any) -> dict[str, Any]:
    job = {"id": 7, "flow": "transcode", "owner": "ada", "status": "failed", "subject": {"kind": "video", "id": "v-1"}}
    data = {"message": "the source ends early", "stage": "fetch", "code": "truncated"}
    return {"seq": 9, "at": 1_700_000_000_123, "stage": "fetch", "job": job, "data": data, **more}


def said(kind: str, shape: str, public_url: str | None = PUBLIC, **more: Any) -> Any:
    return json.loads(body_of(kind, facts(**more), shape, public_url))


def test_a_plain_body_has_what_programs_need() -> None:
    body = said("job.failed", "plain")

    assert (body["type"], body["timestamp"]) == ("job.failed", "2023-11-14T22:13:20.123Z")
    assert body["data"]["job"]["id"] == 7
    assert body["data"]["details"]["code"] == "truncated"
    assert body["data"]["link"] == "https://films.example/api/v1/jobs/7"


def test_slack_and_discord_get_one_line_with_a_link() -> None:
    line = "Transcode job 7 of video v-1 has failed in stage fetch: the source ends early."

    assert said("job.failed", "slack") == {"text": f"{line} <https://films.example/api/v1/jobs/7|Open>"}
    assert said("job.failed", "discord") == {
        "content": f"{line.replace(':', chr(92) + ':')} <https://films.example/api/v1/jobs/7>",
        "allowed_mentions": {"parse": []},
    }


@pytest.mark.parametrize(
    "kind", [*ALERTS, "job.created", "job.retried", "job.completed", "job.cancelled", "webhook.test"]
)
@pytest.mark.parametrize("shape", ["plain", "slack", "discord"])
def test_every_kind_has_every_shape_with_a_job_and_without(kind: str, shape: str) -> None:
    for some in (facts(worker={"id": 1, "name": "ann"}, failures=3, held_back=2), {"webhook": 1}):
        body = json.loads(body_of(kind, some, shape, None))

        assert (body["data"]["text"] if shape == "plain" else body.get("text") or body["content"]).strip()


def test_what_was_held_back_is_told_and_what_to_do() -> None:
    text = said("stale_job_recovered", "slack", worker={"id": 1, "name": "ann"}, held_back=4)["text"]

    assert "lost its worker (ann) in stage fetch" in text
    assert "4 more of this kind" in text
    assert "see why workers vanish" in text


@pytest.mark.parametrize("shape", ["slack", "discord"])
def test_strangers_words_call_no_channel_and_disguise_no_link(shape: str) -> None:
    evil = "<!channel> @everyone <@U1> [here](https://evil.example) <https://evil.example|safe> ``` > # x"
    body = said("job.failed", shape, data={"message": evil}, public_url=None)
    text = body.get("text") or body["content"]

    assert not re.search(r"(?<!\\)[<>`\[\]]" if shape == "discord" else "[<>]", text)
    assert body.get("allowed_mentions") == ({"parse": []} if shape == "discord" else None)


@pytest.mark.parametrize("shape", ["plain", "slack", "discord"])
@pytest.mark.parametrize("letter", ["x", "\\", "*", "\u2603", "\U0001f3ac", "<"])
def test_a_body_is_never_larger_than_its_receivers_take(shape: str, letter: str) -> None:
    long = letter * 2_000
    some = facts(data={"message": long, "stage": long}, stage=long, worker={"id": 1, "name": long})
    some["job"]["subject"]["id"] = long

    body = body_of("stale_job_recovered", some, shape, PUBLIC)

    assert len(body) <= MAX_BYTES
    if shape == "discord":
        assert len(json.loads(body)["content"]) <= 2_000


def test_a_signature_is_the_one_of_standard_webhooks() -> None:
    """The example of the specification's own libraries: key, id, second, body and signature."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

    headers = signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}', key)

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_keys_and_names_are_of_one_database_and_one_webhook() -> None:
    keys = {signing_key(secret, number) for secret in ("a", "b") for number in (None, 1, 2)}
    names = {letter_name(secret, number) for secret in ("a", "b") for number in (1, 2)}

    assert (len(keys), len(names)) == (6, 4)
    assert shown_key(signing_key("a", 1)) == (
        "whsec_" + base64.b64encode(hmac.new(b"a", b"webhook/1", hashlib.sha256).digest()).decode()
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.org/x", "begins with https://"),
        ("file:///etc/passwd", "begins with https://"),
        ("https://", "begins with https://"),
        ("https:///path", "begins with https://"),
        ("https://user:secret@example.org/", "no user and no password"),
        ("https://example.org@127.0.0.1/", "no user and no password"),
        ("https://example.org:22/", "port 80, 443"),
        ("https://example.org:99999/", "not understood"),
        ("https://exam ple.org/", "plain ASCII"),
        ("https://example.org\\@127.0.0.1/", "plain ASCII"),
        ("https://example.org/\r\nX: y", "plain ASCII"),
        ("https://①②⑦.⓪.⓪.①/", "plain ASCII"),
        ("https://[::1/", "not understood"),
        ("http://127.0.0.1/", "not on the public internet"),
        ("http://[::ffff:10.0.0.1]/", "not on the public internet"),
        ("http://169.254.169.254/latest/meta-data", "not on the public internet"),
        ("https://example.org/" + "x" * 2_048, "2048 characters"),
    ],
)
def test_an_address_that_could_never_be_told_is_refused_at_once(url: str, why: str) -> None:
    with pytest.raises(BadSpec, match=why):
        check_url(url)


@pytest.mark.parametrize("url", ["https://example.org/a?b=c#d", "http://example.org:8080", "https://93.184.215.14/x"])
def test_an_address_on_the_internet_is_taken(url: str) -> None:
    check_url(url)
