"""The reference: the route that somebody writes by hand who needs no more than this. The same key check, one statement.

python -m benchmarks.server.handwritten URL PORT
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel

TABLE = """create table if not exists handwritten (
    id bigint generated always as identity primary key, owner text not null, flow text not null, spec jsonb not null,
    priority integer not null, status text not null default 'pending', created_at timestamptz not null default now()
)"""
KEY = "select owner, secret_hash, expires_at, revoked_at from api_key where id = $1"
INSERT = "insert into handwritten (owner, flow, spec, priority) values ($1, $2, $3, $4) returning id"
SELECT = "select id, owner, flow, spec, priority, status, created_at from handwritten where id = $1 and owner = $2"


class Wanted(BaseModel):
    flow: str
    spec: Any = None
    priority: int = 5


class Job(BaseModel):
    id: int
    owner: str
    flow: str
    spec: Any
    priority: int
    status: str
    created_at: Any


def application(url: str) -> FastAPI:
    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(url, min_size=4, max_size=8) as pool:
            await pool.execute(TABLE)
            app.state.pool = pool
            yield

    app = FastAPI(lifespan=life)

    async def owner_of(request: Request) -> str:
        parts = request.headers.get("authorization", "").removeprefix("Bearer ").split("_")
        if len(parts) != 5:
            raise HTTPException(401)
        row = await request.app.state.pool.fetchrow(KEY, parts[2])
        found = hashlib.sha256(parts[3].encode()).hexdigest()
        if row is None or not hmac.compare_digest(found, row["secret_hash"]) or row["revoked_at"] is not None:
            raise HTTPException(401)
        return str(row["owner"])

    @app.post("/jobs", status_code=201)
    async def submit(wanted: Wanted, request: Request, owner: str = Depends(owner_of)) -> dict[str, int]:
        made = await request.app.state.pool.fetchval(
            INSERT, owner, wanted.flow, json.dumps(wanted.spec), wanted.priority
        )
        return {"id": made}

    @app.get("/jobs/{job_id}", response_model=Job)
    async def get(job_id: int, request: Request, owner: str = Depends(owner_of)) -> dict[str, Any]:
        row = await request.app.state.pool.fetchrow(SELECT, job_id, owner)
        if row is None:
            raise HTTPException(404)
        return {**row, "spec": json.loads(row["spec"])}

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False
    )
