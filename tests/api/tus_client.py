"""`python -m tests.api.tus_client '{"endpoint": …}'`: upload a file with tuspy, and go on where it was left."""

from __future__ import annotations

import json
import sys
from typing import Any

from tusclient.client import TusClient
from tusclient.storage.filestorage import FileStorage


def main(how: dict[str, Any]) -> None:
    client = TusClient(how["endpoint"], headers={"Authorization": f"Bearer {how['key']}"})
    uploader = client.uploader(
        how["file"],
        chunk_size=how["chunk"],
        metadata=how["metadata"],
        store_url=True,
        url_storage=FileStorage(how["memory"]),
        upload_checksum=True,
        retries=how["retries"],
        retry_delay=1,
    )
    print(json.dumps({"resumed": uploader.offset > 0}), flush=True)
    while uploader.offset < uploader.stop_at:
        uploader.upload_chunk()
        print(json.dumps({"sent": uploader.offset}), flush=True)
    print(json.dumps({"done": uploader.url}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
