"""The follower: finds copies of stories among new items and applies people's rules, soon after items were stored.

Collecting does not wait for it. Several processes may have one. Each reads the next items, thinks outside of any
transaction, and writes what follows together with the place it has come to; if another was faster, what it has thought
is dropped.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from headwater.people.rules import find_matches
from headwater.people.stories import (
    Marks,
    Telling,
    is_same_story,
    is_worth_comparing,
    marks_of,
    telling_of,
)
from headwater.store.core.database import Store
from headwater.store.people.rules import NewItems, note_followed, read_new_items
from headwater.store.people.stories import (
    KeyOwner,
    NewKeys,
    StoryText,
    find_key_owners,
    read_story_texts,
)
from headwater.threads import read_aside

BATCH = 200
CHARACTERS_AN_ITEM = 1_000  # what reading aside is told of an item's size


@dataclass(frozen=True, slots=True)
class _Told:
    """A new item, how it tells its story, and by what copies of it are found."""

    item: StoryText
    telling: Telling
    marks: Marks


@dataclass(slots=True)
class _Copies:
    """What a batch of new items may be copies of: pairs to compare, and the keys as they are afterwards."""

    told: dict[int, _Told]
    pairs: list[tuple[int, int]] = field(default_factory=list)  # an earlier item and a new one
    new_keys: list[NewKeys] = field(default_factory=list)


class Follower:
    """Follows the new items of one store."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def run_once(self) -> bool:
        """Follow the next items; whether there may be more."""
        new = await self._store.read(read_new_items, BATCH)
        if not new.has_any:
            return False
        copies, pairs = await self._find_copies(new)
        found = []
        if new.items:
            size = CHARACTERS_AN_ITEM * len(new.items)
            found = await read_aside(size, find_matches, new.items, new.rules)
        await self._store.write(note_followed, new, found, self._clock(), copies, pairs)
        return bool(new.item_ids)

    async def _find_copies(self, new: NewItems) -> tuple[list[NewKeys], list[tuple[int, int]]]:
        if not new.item_ids:
            return [], []
        size = CHARACTERS_AN_ITEM * len(new.item_ids)
        texts = await self._store.read(read_story_texts, new.item_ids)
        told = await read_aside(size, _tell, texts.values())
        keys = {key for each in told.values() for key in each.marks.keys}
        owners = await self._store.read(find_key_owners, keys, self._clock())
        copies = _find_candidates(told, owners)
        earlier = await self._store.read(_read_others, copies)
        pairs = await read_aside(size, _compare, copies, earlier)
        return copies.new_keys, pairs


def _tell(texts: Iterable[StoryText]) -> dict[int, _Told]:
    told = {}
    for item in texts:
        telling = telling_of(item.title, item.text, item.url)
        told[item.id] = _Told(item, telling, marks_of(telling))
    return told


def _find_candidates(told: dict[int, _Told], owners: dict[int, KeyOwner]) -> _Copies:
    """Pairs of items that share a key and enough of their sketches, the new ones in the order of storing."""
    copies, newest = _Copies(told), dict(owners)
    for each in sorted(told.values(), key=lambda one: one.item.position):
        item, marks = each.item, each.marks
        sharing = {key: newest[key] for key in marks.keys if key in newest}
        candidates = {
            owner.item_id
            for key, owner in sharing.items()
            if owner.source_id != item.source_id
            and (key in marks.sure_keys or is_worth_comparing(owner.sketch, marks.sketch))
        }
        copies.pairs += [(other, item.id) for other in sorted(candidates)]
        copies.new_keys.append(NewKeys(item.id, item.source_id, marks.keys, marks.sketch, item.first_seen_at))
        newest |= dict.fromkeys(marks.keys, KeyOwner(item.id, item.source_id, marks.sketch))
    return copies


def _read_others(connection: Connection, copies: _Copies) -> Mapping[int, StoryText]:
    """The stored items that new ones are to be compared with."""
    wanted = {earlier for earlier, _ in copies.pairs if earlier not in copies.told}
    return read_story_texts(connection, sorted(wanted)) if wanted else {}


def _compare(copies: _Copies, earlier: Mapping[int, StoryText]) -> list[tuple[int, int]]:
    """Those of the pairs that tell the same story."""
    told = copies.told | _tell(earlier.values())
    return [
        (one, other)
        for one, other in copies.pairs
        if one in told and is_same_story(told[one].telling, told[other].telling)
    ]
