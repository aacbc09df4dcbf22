"""A bucket without credentials: the sentence says what is missing, not where the client looked for it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from telecine.artifacts import Artifacts, S3Access, open_bucket
from telecine.errors import ArtifactError, SourceUnreachable
from telecine.media.inputs import InputPolicy, reach


class NoRole(BaseHTTPRequestHandler):
    """The metadata service of a machine to which no role was given."""

    def do_PUT(self) -> None:
        self.send_error(403)

    def do_GET(self) -> None:
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def no_role(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), NoRole) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", address)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address
        server.shutdown()


async def test_artifacts_without_credentials_say_which_settings_are_missing(no_role: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"bytes")

    with pytest.raises(ArtifactError) as caught:
        await Artifacts("s3://films/work").put("a/b", path)

    assert "no credentials for the bucket: set s3_access_key_id and s3_secret_access_key" in str(caught.value)
    assert no_role not in str(caught.value)


async def test_a_source_without_credentials_says_which_settings_are_missing(no_role: str) -> None:
    gate = InputPolicy(bucket=lambda place: open_bucket(place, S3Access()))

    with pytest.raises(SourceUnreachable) as caught:
        await reach("s3://films/film.mkv", gate)

    assert "no credentials for the bucket: set s3_access_key_id and s3_secret_access_key" in str(caught.value)
    assert no_role not in str(caught.value)
