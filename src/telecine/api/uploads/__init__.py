"""Files on their way in: resumable by tus 1.0, or in one plain PUT; the app that takes them makes a job of each.

POST ── space is reserved ──▶ PATCH … PATCH ── the last byte ──▶ hashed, looked at, stored ──▶ subject and job
                                └── nothing for hours: gone            └── refused, with the reason
"""

from __future__ import annotations

from telecine.api.uploads import plain, routes

routers = (routes.router, plain.router)
