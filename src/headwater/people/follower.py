"""The follower: applies people's rules to new items, soon after they were stored. Collecting does not wait for it.

Several processes may have one. Each reads the next items, thinks outside of any transaction, and writes what follows
together with the place it has come to; if another was faster, what it has thought is dropped.
"""

from collections.abc import Callable

from headwater.people.rules import find_matches
from headwater.store.core.database import Store
from headwater.store.people.rules import note_followed, read_new_items
from headwater.threads import read_aside

BATCH = 200
BATCH_CHARACTERS = 1_000  # what reading aside is told of an item's size


class Follower:
    """Applies rules to the new items of one store."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def run_once(self) -> bool:
        """Apply the rules to the next items; whether there may be more."""
        new = await self._store.read(read_new_items, BATCH)
        if not new.has_any:
            return False
        found = []
        if new.items:
            found = await read_aside(BATCH_CHARACTERS * len(new.items), find_matches, new.items, new.rules)
        await self._store.write(note_followed, new, found, self._clock())
        return bool(new.items)
