"""Webhooks: who is told what becomes of jobs, how the telling went, and what could not be told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from telecine.api.http.auth import Admin, Owner
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.params import MAX_ID, Cursor, Id, Limit
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.queries.view_models import Page
from telecine.engine.webhooks.deliveries import Deliveries, DeliveryView
from telecine.engine.webhooks.subscriptions import LONGEST_URL, Format, WebhookRequest, Webhooks, WebhookView

router = Router(prefix="/api/v1/webhooks", tags=["webhooks"])

FRESH = {"Cache-Control": "no-store"}
_PORT = (
    "80|443|10(2[4-9]|[3-9][0-9])|1[1-9][0-9]{2}|[2-9][0-9]{3}"
    "|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
)
URL_PATTERN = rf"^https?://([A-Za-z0-9.-]+|\[[0-9a-f:.]+\])(:({_PORT}))?([/?#][!#-;=?-Z_a-z~]*)?$"
Kind = Literal["job.created", "job.retried", "job.completed", "job.failed", "job.cancelled"]
WebhookPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the webhook", examples=[3])]
DeliveryPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the delivery", examples=[12])]
OfWebhook = Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only those of this webhook")]
StateName = Annotated[Literal["waiting", "done", "dead"] | None, Query(description="Only those that are so")]
_LINKS: dict[str, Any] = {
    name: {"operationId": operation, "parameters": {"webhook_id": "$response.body#/webhook/id"}}
    for name, operation in {"webhook": "get_webhook", "test": "test_webhook", "delete": "delete_webhook"}.items()
}


class WebhookReceiver(BaseModel):
    """An address that wants to be told, of the job that it comes with."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"url": "https://example.org/hooks/telecine", "kinds": ["job.completed"]}]},
    )

    url: str = Field(
        description="https:// or http://, on the public internet; redirects are not followed",
        # For readers; whoever errs gets a sentence that says what is wrong.
        json_schema_extra={"pattern": URL_PATTERN, "minLength": 8, "maxLength": LONGEST_URL},
    )
    format: Format = Field("plain", description="`plain` is JSON for programs, the others are lines for people")
    kinds: list[Kind] = Field(
        ["job.completed", "job.failed", "job.cancelled"],
        min_length=1,
        max_length=5,
        description="Which events are told; unless named, how jobs end",
    )

    def wish(self, owner: str, job_id: int | None = None) -> WebhookRequest:
        return WebhookRequest(url=self.url, owner=owner, format=self.format, kinds=tuple(self.kinds), job_id=job_id)


class NewWebhook(WebhookReceiver):
    """An address that wants to be told."""

    job_id: Id | None = Field(None, description="Only of this job, which must not have ended; else of all of yours")


class MadeWebhook(BaseModel):
    """The webhook, and the key that signs what it gets. The key is not shown again."""

    webhook: WebhookView
    key: str = Field(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])


class TestDelivery(BaseModel):
    """The delivery to look at."""

    delivery_id: int


class AlertKey(BaseModel):
    """The key that signs alerts."""

    key: str


def webhooks_of(house: ServerContext) -> Webhooks:
    return house.engine.webhooks(house.settings.allow_private_webhooks)


def deliveries_of(house: ServerContext) -> Deliveries:
    return house.engine.deliveries


@router.post(
    "",
    status_code=201,
    response_model=MadeWebhook,
    operation_id="create_webhook",
    responses={**answers(401, 403, 404, 409, 422, 429), 201: {"links": _LINKS}},
)
async def create(who: Owner, house: Here, wanted: NewWebhook) -> Response:
    """Tell an address what becomes of your jobs, or of one of them."""
    made = await webhooks_of(house).add(wanted.wish(who.owner, wanted.job_id), sees=who.sees)
    return answer(MadeWebhook(webhook=made.webhook, key=made.key), status=201, headers=FRESH)


@router.get("", response_model=Page[WebhookView], operation_id="list_webhooks", responses=answers(401, 403, 422, 429))
async def list_webhooks(who: Owner, house: Here, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Your webhooks, the newest first; an administrator sees everybody's."""
    found = await webhooks_of(house).list(owner=who.sees, cursor=cursor, limit=limit)
    return answer(found, Page[WebhookView], headers=FRESH)


@router.get("/alert-key", response_model=AlertKey, operation_id="get_alert_key", responses=answers(401, 403, 429))
async def alert_key(who: Admin, house: Here) -> Response:
    """The key that signs the alerts which the settings send somewhere."""
    return answer(AlertKey(key=await webhooks_of(house).alert_key()), headers=FRESH)


@router.get(
    "/deliveries",
    response_model=Page[DeliveryView],
    operation_id="list_deliveries",
    responses=answers(401, 403, 404, 422, 429),
)
async def list_deliveries(
    who: Owner,
    house: Here,
    *,
    webhook: OfWebhook = None,
    state: StateName = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What was told, is on its way, or (`state=dead`) could not be told. Administrators see alerts, too."""
    found = await deliveries_of(house).list(owner=who.sees, webhook_id=webhook, state=state, cursor=cursor, limit=limit)
    return answer(found, Page[DeliveryView], headers=FRESH)


@router.post(
    "/deliveries/{delivery_id:int}/retry",
    status_code=202,
    response_model=TestDelivery,
    operation_id="retry_delivery",
    responses=answers(401, 403, 404, 409, 422, 429),
)
async def retry(who: Owner, house: Here, delivery_id: DeliveryPath) -> Response:
    """Try a dead delivery again, under the same id, with all its tries."""
    await deliveries_of(house).retry(delivery_id, owner=who.sees)
    return answer(TestDelivery(delivery_id=delivery_id), status=202)


@router.get(
    "/{webhook_id:int}",
    response_model=WebhookView,
    operation_id="get_webhook",
    responses=answers(401, 403, 404, 422, 429),
)
async def get(who: Owner, house: Here, webhook_id: WebhookPath) -> Response:
    """One webhook."""
    return answer(await webhooks_of(house).get(webhook_id, owner=who.sees), headers=FRESH)


@router.delete(
    "/{webhook_id:int}", status_code=204, operation_id="delete_webhook", responses=answers(401, 403, 404, 422, 429)
)
async def delete(who: Owner, house: Here, webhook_id: WebhookPath) -> Response:
    """Tell it nothing more, also nothing that waits for it."""
    await webhooks_of(house).drop(webhook_id, owner=who.sees)
    return Response(status_code=204)


@router.post(
    "/{webhook_id:int}/test",
    status_code=202,
    response_model=TestDelivery,
    operation_id="test_webhook",
    responses=answers(401, 403, 404, 409, 422, 429),
)
async def test(who: Owner, house: Here, webhook_id: WebhookPath) -> Response:
    """Send it a word of trial, `webhook.test`; look at the delivery to see how that went."""
    delivery = await webhooks_of(house).test(webhook_id, owner=who.sees)
    return answer(TestDelivery(delivery_id=delivery), status=202)
