"""Sends what is in the outbox, several deliveries at once, and retries what may work later.

It may die at any moment: a delivery that was claimed and not settled is sent again when its lease is over, under the
same idempotency key.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from headwater.errors import HeadwaterError, PassingStepError, StepError
from headwater.fetch.client import Fetcher
from headwater.formats.html import escape_text, text_as_html
from headwater.language import translate
from headwater.pipeline.advance import retry_seconds
from headwater.services.mail_message import header_line
from headwater.services.targets import KINDS, MailDefaults, Message, TargetConfig, send
from headwater.services.text_templates import fill_all
from headwater.store.core.database import Store
from headwater.store.publishing.outbox import (
    ClaimedDelivery,
    DeliveryEnd,
    NewDelivery,
    WaitingMessage,
    claim_deliveries,
    due_batches,
    next_delivery_at,
    put_in_outbox,
    settle_deliveries,
    take_batch,
)

log = logging.getLogger(__name__)

AT_ONCE = 8
LEASE_SECONDS = 180.0
SEND_SECONDS = 150.0  # of one delivery; well within its lease
MOST_ATTEMPTS = 12  # over about two hours
LONGEST_WAIT_SECONDS = 1_800.0


@dataclass(frozen=True, slots=True)
class SendingContext:
    """What sending needs besides the message."""

    fetcher: Fetcher | None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mail: MailDefaults = MailDefaults()


class OutboxSender:
    """Sends the outbox of one store."""

    def __init__(
        self, store: Store, context: SendingContext, clock: Callable[[], float], rng: Random | None = None
    ) -> None:
        self.sent = 0
        self._store = store
        self._context = context
        self._clock = clock
        self._rng = rng or Random()

    async def run_once(self) -> int:
        """Gather batches that are due, then send what is due now; returns how many deliveries were tried."""
        now = self._clock()
        for target in await self._store.read(due_batches, now):
            await self._store.write(gather_batch, target, now)
        first = await self._store.read(next_delivery_at)
        if first is None or first > now:
            return 0
        claimed = await self._store.write(claim_deliveries, AT_ONCE, now=now, lease_until=now + LEASE_SECONDS)
        if claimed:
            ends = await asyncio.gather(*(self._deliver(each) for each in claimed))
            await self._store.write(settle_deliveries, ends)
        return len(claimed)

    async def _deliver(self, claimed: ClaimedDelivery) -> DeliveryEnd:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await deliver(self._context, claimed)
        except TimeoutError:
            return self._decide(
                claimed, PassingStepError("it did not end within {seconds:g} s", seconds=SEND_SECONDS)
            )
        except StepError as error:
            return self._decide(claimed, error)
        except HeadwaterError as error:
            return self._decide(claimed, StepError("{problem}", problem=str(error)))
        except Exception as error:
            log.exception("delivery %s", claimed.delivery.id)
            return self._decide(claimed, StepError("unexpected {kind}", kind=type(error).__name__))
        self.sent += 1
        return DeliveryEnd(claimed, "sent", self._clock())

    def _decide(self, claimed: ClaimedDelivery, error: StepError) -> DeliveryEnd:
        now, attempts = self._clock(), claimed.delivery.attempts + 1
        message = str(error)
        if not error.passing or attempts >= MOST_ATTEMPTS:
            log.warning("delivery %s to %s failed: %s", claimed.delivery.id, claimed.target.name, message)
            return DeliveryEnd(claimed, "failed", now, error_message=message)
        asked = error.retry_after_seconds if isinstance(error, PassingStepError) else None
        wait = min(retry_seconds(attempts, self._rng), LONGEST_WAIT_SECONDS)
        return DeliveryEnd(claimed, "pending", now, now + max(wait, min(asked or 0.0, 86_400.0)), message)


async def deliver(context: SendingContext, claimed: ClaimedDelivery) -> dict[str, Any]:
    """Send one delivery, in the words of its target's own templates if it has some."""
    target, delivery = claimed.target, claimed.delivery
    if target.kind not in KINDS:
        raise StepError("there is no kind of target {kind}", kind=target.kind)
    config = read_target_config(target.config)
    message = Message(delivery.title, delivery.text, delivery.html, {"kind": delivery.kind, **delivery.data})
    message = await in_words_of(config, message)
    return await send(context, target.kind, config, message, delivery.key)


def read_target_config(config: Mapping[str, Any]) -> TargetConfig:
    try:
        return TargetConfig.model_validate(config)
    except ValidationError as error:
        raise StepError(
            "the config of the target is wrong: {problem}", problem=error.errors()[0]["msg"]
        ) from None


async def in_words_of(config: TargetConfig, message: Message) -> Message:
    """The message as the target's templates say it."""
    templates = config.templates()
    if not templates:
        return message
    data = dict(message.data or {})
    values = {
        "title": message.title,
        "text": message.text,
        "item": data.get("item") or {},
        "items": data.get("items") or [],
        "data": data,
    }
    filled = await fill_all(templates, values)
    html = filled.get("html", None if "body" in filled else message.html)
    return Message(
        header_line(filled.get("title", message.title)), filled.get("body", message.text), html, message.data
    )


def gather_batch(connection: Connection, target: str, now: float) -> None:
    """Put the next message with several items for a target into the outbox."""
    waiting = take_batch(connection, target, now)
    if waiting:
        put_in_outbox(connection, [compose_batch(target, waiting)], "batch", now)


def compose_batch(target: str, waiting: Sequence[WaitingMessage]) -> NewDelivery:
    """Several messages as one. Its key is made of the first and the last: the same however often it is made."""
    if len(waiting) == 1:
        [only] = waiting
        return NewDelivery(target, only.key, only.title, only.text, only.html, only.data)
    title = translate("{count} new items: {first}").format(count=len(waiting), first=waiting[0].title)
    text = "\n\n".join(f"## {each.title}\n\n{each.text}" for each in waiting)
    html = "\n<hr>\n".join(
        each.html or f"<h2>{escape_text(each.title)}</h2>\n{text_as_html(each.text)}" for each in waiting
    )
    items = [
        {**(each.data.get("item") or {}), "message": {"title": each.title, "text": each.text}}
        for each in waiting
    ]
    key = f"batch-{waiting[0].key}-to-{waiting[-1].key}"
    return NewDelivery(target, key, title[:500], text, html, {"items": items})
