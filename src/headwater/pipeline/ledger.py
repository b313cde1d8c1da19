"""The models' ledger, kept in the database: answers to be used again, and the budget of the day."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from headwater.config import Settings
from headwater.errors import PassingStepError
from headwater.services.models import Answer
from headwater.store.core.database import Store
from headwater.store.pipelines.models import (
    Limits,
    add_usage,
    find_answer,
    keep_answer,
    note_answer_used,
    reserve_request,
)

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """What one owner (a template, a digest) asks of models."""

    store: Store
    clock: Callable[[], float]
    limits: Limits  # of all owners together
    owner: str = "none"

    async def recall(self, model: str, key: bytes) -> Answer | None:
        found = await self.store.read(find_answer, key)
        if found is None:
            return None
        await self.store.write(note_answer_used, key, self.owner, model, self.clock())
        return Answer(*found)

    async def keep(self, key: bytes, answer: Answer) -> None:
        tokens = answer.input_tokens, answer.output_tokens
        await self.store.write(keep_answer, key, answer.text, tokens, self.clock())

    async def reserve(self, model: str, max_requests: int | None, max_tokens: int | None) -> None:
        now, own = self.clock(), Limits(max_requests, max_tokens)
        if not await self.store.write(reserve_request, self.owner, model, now, own=own, all_=self.limits):
            raise spent(now)

    async def spend(self, model: str, answer: Answer, cost: float | None) -> None:
        tokens = answer.input_tokens, answer.output_tokens
        await self.store.write(add_usage, self.owner, model, self.clock(), tokens, cost)


def spent(now: float) -> PassingStepError:
    """The budget of the day is spent: it goes on when the next day begins, and no retry is used up."""
    error = PassingStepError("the budget of the model for today is spent; it goes on tomorrow (UTC)")
    error.retry_after_seconds = math.ceil(now / DAY + 1e-9) * DAY - now + 1.0
    error.counts = False
    return error


def make_ledger(store: Store, settings: Settings, clock: Callable[[], float]) -> Ledger:
    limits = Limits(settings.model_requests_per_day or None, settings.model_tokens_per_day or None)
    return Ledger(store, clock, limits)
