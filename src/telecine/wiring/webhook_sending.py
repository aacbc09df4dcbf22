"""The postman of a server, while it serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from telecine.engine.webhooks.delivery_builder import AlertRules
from telecine.engine.webhooks.subscriptions import Webhooks, host_of
from telecine.facts import SECOND
from telecine.observe.alerts import rules_for
from telecine.observe.webhook_request import WebhookRequestSender
from telecine.observe.webhook_sender import PATIENCE, WebhookSender, WebhookSenderOptions
from telecine.settings import Settings
from telecine.wiring import Parts


def open_webhooks(parts: Parts) -> Webhooks:
    return parts.engine.webhooks(parts.settings.allow_private_webhooks)


@asynccontextmanager
async def posting(parts: Parts) -> AsyncIterator[None]:
    """Tell webhooks and the operator what happens, while the body runs."""
    settings = parts.settings
    # It would write every address that is asked into the log, and in some of them everything is secret.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    sender = WebhookRequestSender(timeout=settings.webhook_timeout_seconds, private=settings.allow_private_webhooks)
    engine, ways, rules = parts.engine, ways_of(settings), _rules(settings)
    postman = WebhookSender(engine.deliveries, sender, ways, parts.world, duties=engine.outages, rules=rules)
    duty = asyncio.create_task(postman.run(), name="postman")
    try:
        yield
    finally:
        duty.cancel()
        await asyncio.gather(duty, return_exceptions=True)
        await sender.close()


def ways_of(settings: Settings) -> WebhookSenderOptions:
    return WebhookSenderOptions(
        alert_url=settings.alert_webhook_url,
        alert_format=settings.alert_format,
        public_url=settings.public_url,
        attempts=settings.webhook_attempts,
        timeout=settings.webhook_timeout_seconds,
        poll=min(1.0, settings.poll_seconds),
        patience=replace(PATIENCE, base=round(settings.webhook_backoff_seconds * SECOND)),
    )


def _rules(settings: Settings) -> AlertRules | None:
    if settings.alert_webhook_url is None:
        return None
    return rules_for(
        host_of(settings.alert_webhook_url),
        kinds=settings.alert_kinds,
        cooldown=round(settings.alert_cooldown_seconds * SECOND),
        pattern=settings.alert_pattern_failures,
    )
