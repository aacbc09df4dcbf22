"""The webhooks page: its receivers know our letters from others, and its commands do what they say."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from telecine.engine.webhooks.subscriptions import shown_key, signing_key
from telecine.observe.webhook_signature import signed
from tests.browser.rig import NODE
from tests.e2e.cli import Shell
from tests.support.docs import ROOT, blocks_of

PAGE = ROOT / "docs" / "webhooks.md"
KEY = signing_key("a secret", 3)
BODY = '{"type":"job.completed","data":{"text":"Żółw"}}'.encode()
Receiver = Callable[[dict[str, str], bytes, str], bool]


def block(language: str) -> str:
    [text] = [block.text for block in blocks_of(PAGE) if block.language == language]
    return text


def in_python(headers: dict[str, str], body: bytes, key: str) -> bool:
    names: dict[str, Any] = {}
    exec(block("python"), names)
    return bool(names["is_genuine"](headers, body, key))


def in_javascript(headers: dict[str, str], body: bytes, key: str) -> bool:
    call = f"isGenuine({json.dumps(headers)}, Buffer.from({json.dumps(body.hex())}, 'hex'), {json.dumps(key)})"
    script = f"{block('javascript')}\nprocess.stdout.write(String({call}))"
    said = subprocess.run([NODE, "-e", script], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said in ("true", "false")
    return said == "true"


@pytest.mark.parametrize("is_genuine", [in_python, in_javascript])
def test_the_receivers_of_the_page_know_a_letter_of_ours_from_any_other(is_genuine: Receiver) -> None:
    now = int(time.time())
    ours = signed("msg_1", now, BODY, KEY)
    rotated = {**ours, "webhook-signature": f"v1,{'A' * 43}= {ours['webhook-signature']}"}

    assert is_genuine(ours, BODY, shown_key(KEY))
    assert is_genuine(rotated, BODY, shown_key(KEY))
    assert not is_genuine(ours, BODY + b" ", shown_key(KEY))
    assert not is_genuine({**ours, "webhook-id": "msg_2"}, BODY, shown_key(KEY))
    assert not is_genuine(ours, BODY, shown_key(signing_key("a secret", 4)))
    assert not is_genuine({**ours, "webhook-signature": "v1,"}, BODY, shown_key(KEY))
    assert not is_genuine(signed("msg_1", now - 301, BODY, KEY), BODY, shown_key(KEY)), (
        "a letter that is sent again later"
    )


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    shell = Shell.prepare(tmp_path, sqlite_url)
    shell.quick("migrate")
    return shell


def test_webhooks_are_made_listed_tried_and_deleted_on_the_command_line(shell: Shell) -> None:
    made = shell.quick(
        "webhooks", "create", "https://example.org/x", "--owner", "ada", "--kind", "job.failed", "--json"
    )
    number = str(made.json["webhook"]["id"])
    listed = shell.quick("webhooks")
    tried = shell.quick("webhooks", "test", number, "--json")
    early = shell.quick("webhooks", "retry", str(tried.json["delivery"]))
    deleted = shell.quick("webhooks", "delete", number)

    assert made.json["key"].startswith("whsec_")
    assert "https://example.org/x" in listed.out
    assert made.json["key"] not in listed.out
    assert (early.code, "only a dead one" in early.err) == (4, True)
    assert deleted.code == 0
    assert shell.quick("webhooks", "list", "--json").json == {"webhooks": []}
    assert shell.quick("webhooks", "delete", number).code == 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["ftp://example.org"], "begins with https://"),
        (["http://10.0.0.1/"], "allow_private_webhooks"),
        (["https://example.org", "--format", "fax"], "plain, slack, discord"),
        (["https://example.org", "--kind", "task.done"], "told to nobody"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(shell: Shell, wrong: list[str], said: str) -> None:
    answer = shell.quick("webhooks", "create", *wrong)

    assert (answer.code, said in answer.err) == (2, True), answer.err


def test_dead_letters_are_listed_and_the_key_of_alerts_is_told(shell: Shell) -> None:
    nothing = shell.quick("webhooks", "dead")
    key = shell.quick("webhooks", "alert-key", "--json").json["key"]

    assert "Nothing" in nothing.out
    assert key == shell.quick("webhooks", "alert-key").out.strip()
    assert shell.quick("webhooks", "dead", "--json").json == {"deliveries": []}
