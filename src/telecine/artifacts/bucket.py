"""How a bucket is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from obstore.store import ObjectStore, S3Store


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """How to reach a bucket; what is None comes from the usual AWS_* variables."""

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)


def open_bucket(place: str, s3: S3Access) -> ObjectStore:
    """Endpoints other than Amazon's are asked by path, and without TLS if they are named so."""
    options = {
        "endpoint": s3.endpoint,
        "region": s3.region or ("us-east-1" if s3.endpoint else None),
        "access_key_id": s3.access_key_id,
        "secret_access_key": s3.secret_access_key,
        "virtual_hosted_style_request": False if s3.endpoint else None,
    }
    config: Any = {name: value for name, value in options.items() if value is not None}
    return S3Store.from_url(
        place,
        config=config,
        client_options={"allow_http": (s3.endpoint or "").startswith("http://")},
        retry_config={
            "max_retries": 5,
            "retry_timeout": timedelta(seconds=60),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
        },
    )
