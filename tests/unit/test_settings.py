"""Settings: where each value comes from, and what is refused with one sentence."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from telecine.errors import BadSpec, UnknownSetting
from telecine.settings import Settings, load, redacted


def test_without_a_word_everything_has_a_default(tmp_path: Path) -> None:
    loaded = load({}, folder=tmp_path)

    assert loaded.settings.database_url == "sqlite:///.telecine/telecine.db"
    assert (loaded.settings.lease_seconds, loaded.settings.beat_seconds) == (20, 5)
    assert loaded.settings.slots >= 1
    assert set(loaded.sources.values()) == {"default"}


def test_every_setting_says_what_it_is_for() -> None:
    silent = [name for name, field in Settings.model_fields.items() if not field.description]

    assert silent == []


def test_the_command_line_wins_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "telecine.toml"
    file.write_text('slots = 1\nretention_days = 7\nworker_name = "file"\nlabels = ["gpu", "big"]')
    environ = {"TELECINE_SLOTS": "2", "TELECINE_WORKER_NAME": "environment"}

    loaded = load(environ, folder=tmp_path, given={"worker_name": "given", "slots": None})

    settings = loaded.settings
    assert (settings.worker_name, settings.slots, settings.retention_days) == ("given", 2, 7)
    assert settings.labels == ("gpu", "big")
    assert loaded.sources["worker_name"] == "command line"
    assert loaded.sources["slots"] == "TELECINE_SLOTS"
    assert loaded.sources["retention_days"] == str(file)
    assert loaded.sources["lease_seconds"] == "default"


def test_the_file_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("slots = 9")

    loaded = load({"TELECINE_CONFIG": "other.toml"}, folder=tmp_path)

    assert loaded.settings.slots == 9


def test_lists_in_the_environment_are_parted_by_commas(tmp_path: Path) -> None:
    loaded = load({"TELECINE_LABELS": "gpu, big", "TELECINE_FLOWS": "my_flows"}, folder=tmp_path)

    assert loaded.settings.labels == ("gpu", "big")
    assert loaded.settings.flows == ("my_flows",)


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    loaded = load({"TELECINE_SLOTS": ""}, folder=tmp_path)

    assert loaded.sources["slots"] == "default"


def test_what_only_the_tests_read_is_no_setting(tmp_path: Path) -> None:
    load({"TELECINE_TEST_POSTGRES_URL": "postgresql://…", "HOME": "/"}, folder=tmp_path)


def test_a_typo_in_the_environment_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UnknownSetting) as refused:
        load({"TELECINE_LEASE_SECOND": "5"}, folder=tmp_path)

    assert str(refused.value) == "unknown setting TELECINE_LEASE_SECOND; did you mean TELECINE_LEASE_SECONDS?"


def test_a_typo_in_the_file_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "telecine.toml").write_text("lease-second = 5")

    with pytest.raises(UnknownSetting, match=r"unknown setting lease-second in .*did you mean lease_seconds\?"):
        load({}, folder=tmp_path)


BAD = [
    ({"TELECINE_SLOTS": "many"}, "TELECINE_SLOTS: slots must be a whole number, not 'many'"),
    ({"TELECINE_SLOTS": "0"}, "TELECINE_SLOTS: slots must be at least 1, not '0'"),
    ({"TELECINE_BEAT_SECONDS": "often"}, "TELECINE_BEAT_SECONDS: beat_seconds must be a number, not 'often'"),
    ({"TELECINE_OPEN_MEDIA": "maybe"}, "TELECINE_OPEN_MEDIA: open_media must be true or false, not 'maybe'"),
    ({"TELECINE_LEASE_SECONDS": "10"}, "lease of 10 s is too short for a beat every 5 s"),
    ({"TELECINE_QUEUE_MODE": "redis"}, "queue_mode is 'redis', so redis_url must say where Redis is"),
    ({"TELECINE_QUEUE_MODE": "kafka"}, "queue_mode must be 'database', 'redis' or 'hybrid', not 'kafka'"),
    ({"TELECINE_DATABASE_URL": "mysql://host/db"}, "'mysql://host/db' is not understood"),
    ({"TELECINE_LABELS": "a/b"}, "label 'a/b' may not"),
    ({"TELECINE_CONFIG": "missing.toml"}, "TELECINE_CONFIG names missing.toml, which does not exist"),
]


@pytest.mark.parametrize(("environ", "sentence"), BAD, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_refused_with_one_sentence(environ: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadSpec) as refused:
        load(environ, folder=tmp_path)

    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_broken_file_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "telecine.toml").write_text("slots = = 4")

    with pytest.raises(BadSpec, match=r"telecine\.toml cannot be read"):
        load({}, folder=tmp_path)


SECRETS = [
    "postgresql://user:s3cret@host:5432/name",
    "postgresql://user:s3cret@p@rt@host/name",
    "postgresql://user:s3cret/slash@host/name",
    "postgresql://host/name?user=me&password=s3cret",
    "postgres://user:s3cret@/name?host=/run",
]


@pytest.mark.parametrize("url", SECRETS)
def test_a_password_is_never_shown(url: str, tmp_path: Path) -> None:
    settings = load({"TELECINE_DATABASE_URL": url}, folder=tmp_path).settings

    shown = f"{redacted(url)} {settings.shown('database_url')} {settings!r} {settings}"

    assert "s3cret" not in shown
    assert "***" in shown


def test_a_refused_address_does_not_give_its_password_away(tmp_path: Path) -> None:
    with pytest.raises(BadSpec) as refused:
        load({"TELECINE_DATABASE_URL": "postgress://user:s3cret@host/name"}, folder=tmp_path)

    assert "s3cret" not in str(refused.value)


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = load({}, folder=tmp_path).settings

    with pytest.raises(ValidationError):
        settings.slots = 3  # type: ignore[misc]


def test_ladders_are_tables_in_the_file_and_json_in_a_variable(tmp_path: Path) -> None:
    (tmp_path / "telecine.toml").write_text("[ladders]\ntv = [{ height = 480, kbps = 1200 }]\n")

    from_file = load({}, folder=tmp_path).settings.ladders
    from_variable = load({"TELECINE_LADDERS": '{"tv": [{"height": 480, "kbps": 1200}]}'}, folder=tmp_path / "none")

    assert from_file == from_variable.settings.ladders == {"tv": [{"height": 480, "kbps": 1200}]}
    with pytest.raises(BadSpec, match="TELECINE_LADDERS: ladders in a variable are JSON"):
        load({"TELECINE_LADDERS": "tv"}, folder=tmp_path)


def test_a_segment_holds_at_least_one_group_of_pictures(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="segment_seconds must be at least gop_seconds"):
        load({"TELECINE_SEGMENT_SECONDS": "1"}, folder=tmp_path)


def test_places_inside_ones_own_network_are_hosts_addresses_or_networks(tmp_path: Path) -> None:
    places = "media.internal, 10.0.0.0/8, ::1"

    settings = load({"TELECINE_ALLOW_PRIVATE_SOURCES": places}, folder=tmp_path).settings

    assert settings.allow_private_sources == ("media.internal", "10.0.0.0/8", "::1")
    with pytest.raises(BadSpec, match="neither a host name nor an address"):
        load({"TELECINE_ALLOW_PRIVATE_SOURCES": "http://here"}, folder=tmp_path)
