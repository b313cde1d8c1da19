"""What the database knows of what visits have found, asked for several visits in one read.

A visit that found something needs one small answer. A separate read for each would cost a thread and a transaction,
more than the answer itself; so visits that ask while a read is under way share the next one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from headwater.collect.decide import Candidate, fallback_ids
from headwater.store.core.database import Store
from headwater.store.reading.items import Known, known_keys_of, recent_times

READS_AT_ONCE = 2
MOST_TOGETHER = 50

Answer = tuple[dict[bytes, Known], list[float]]


@dataclass(slots=True)
class _Question:
    source_id: int
    found: list[Candidate]
    history: int
    answer: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class KnownItems:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[_Question] = []
        self._reading: set[asyncio.Task[None]] = set()

    async def ask(self, source_id: int, found: list[Candidate], history: int) -> Answer:
        """What is known of `found`, and so many of the source's newest publication times. StoreError passes through."""
        question = _Question(source_id, found, history)
        self._waiting.append(question)
        if len(self._reading) < READS_AT_ONCE:
            task = asyncio.create_task(self._read())
            self._reading.add(task)
        return await question.answer

    async def _read(self) -> None:
        try:
            await self._read_all()
        finally:
            # At once, not when the loop gets round to telling that it is done: who asks in between would wait for it.
            self._reading.remove(asyncio.current_task())  # type: ignore[arg-type]

    async def _read_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
            try:
                answers = await self._store.read(_answer, group)
            except Exception as error:  # noqa: BLE001 - every waiting caller must hear of it
                for question in group:
                    if not question.answer.done():
                        question.answer.set_exception(error)
                continue
            for question, answer in zip(group, answers, strict=True):
                if not question.answer.done():  # its visit may have been cut off meanwhile
                    question.answer.set_result(answer)


def _answer(connection: Connection, questions: list[_Question]) -> list[Answer]:
    found: dict[int, list[Candidate]] = {}
    for question in questions:  # of one source there may be two, when a visit has outlived its lease
        found[question.source_id] = found.get(question.source_id, []) + question.found
    known = recall(connection, found)
    return [
        (
            known[question.source_id],
            recent_times(connection, question.source_id, question.history),
        )
        for question in questions
    ]


def recall(connection: Connection, found: Mapping[int, list[Candidate]]) -> dict[int, dict[bytes, Known]]:
    """What is known of what was found, by source. Who is known by its id, as most are, is not looked up by likeness."""
    known = known_keys_of(
        connection, {source_id: [each.id_key for each in some] for source_id, some in found.items()}
    )
    strangers = {
        source_id: keys for source_id, some in found.items() if (keys := fallback_ids(some, known[source_id]))
    }
    for source_id, more in known_keys_of(connection, strangers).items():
        known[source_id] |= more
    return known
