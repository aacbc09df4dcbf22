"""The same day on a laptop and on a fleet: SQLite and a folder, or PostgreSQL, Redis, a bucket and two servers."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from telecine.wiring import open_engine
from tests.e2e.scenario import FRAMES, Day, Site
from tests.fault.server_processes import Outpost, outpost
from tests.media.make_video import Film, Shot, shoot
from tests.support.audit import audit
from tests.support.postgres import fresh_schema
from tests.support.s3 import KEY, SECRET, serve_s3
from tests.support.scene import execute
from tests.support.webhook_receiver import listen

USUAL: dict[str, Any] = {"allow_private_webhooks": "127.0.0.1", "upload_reserve_bytes": 0, "lease_seconds": 20}


def test_a_day_on_sqlite_and_a_folder_with_one_server(tmp_path: Path) -> None:
    with ExitStack() as open_now:
        post = open_now.enter_context(outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db", **USUAL))
        link = served(post)
        site = Site([post], open_now.enter_context(listen()), tmp_path / "artifacts", "off", link)

        play(site, tmp_path)


def test_a_day_on_postgresql_redis_and_a_bucket_with_two_servers(
    postgres_url: str, redis_url: str, tmp_path: Path
) -> None:
    with ExitStack() as open_now:
        bucket = open_now.enter_context(serve_s3(tmp_path))
        place = {
            "artifacts_url": bucket.url, "s3_endpoint": bucket.endpoint, "s3_access_key_id": KEY,
            "s3_secret_access_key": SECRET, "queue_mode": "hybrid", "redis_url": redis_url,
        }  # fmt: skip
        url = open_now.enter_context(fresh_schema(postgres_url))
        posts = [open_now.enter_context(a_post(tmp_path / name, url, place)) for name in ("one", "two")]
        link, _ = [served(post) for post in posts]
        site = Site(posts, open_now.enter_context(listen()), bucket.folder, "ok", link)

        play(site, tmp_path)


@contextmanager
def a_post(folder: Path, url: str, place: dict[str, Any]) -> Iterator[Outpost]:
    folder.mkdir()
    with outpost(folder, url, **USUAL, **place) as post:
        yield post


def served(post: Outpost) -> str:
    """Start the server; the link that it prints."""
    post.serve()
    return str(json.loads((post.folder / "server" / "said-1").read_text())["link"])


def play(site: Site, folder: Path) -> None:
    film = shoot(folder / "film.mp4", Film(shots=(Shot(count=FRAMES),)))

    with closing(Day(site, folder, film)) as day:
        day.play()

    assert asyncio.run(findings(site.first)) == []


async def findings(post: Outpost) -> list[Any]:
    """What the second opinion, and the servers' own audit, have against what is left."""
    async with open_engine(post.settings) as parts:
        await parts.engine.events.newest()  # numbers what has none yet
        told = await execute(parts.store, "select data from event where kind = 'audit.finding'")
        return [*told, *await audit(lambda text: execute(parts.store, text))]
