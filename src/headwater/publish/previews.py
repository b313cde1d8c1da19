"""The next issue of a digest before it is due, and what would keep it empty."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from headwater.errors import Text
from headwater.model import StoredItem
from headwater.publish.digest_context import DigestContext
from headwater.publish.digests import READ_CHARACTERS, read_config, write_issues
from headwater.publish.missing import missing_steps, results_of
from headwater.store.core.database import Store
from headwater.store.publishing.digests import Digest, NewIssue, gather, get_digest
from headwater.store.reading.listing import newest_items, read_items

SAMPLED_ITEMS = 10  # when nothing is new


@dataclass(frozen=True, slots=True)
class Preview:
    """The next issue as it would be made now, one for each language.

    `is_sample`: nothing is new, so they are about the newest items that match.
    """

    issues: tuple[NewIssue, ...] = ()
    is_sample: bool = False


async def preview_issues(store: Store, context: DigestContext, name: str, now: float) -> Preview:
    """The next issue as it would be made now. Nothing is stored, nothing is sent."""
    digest = replace(await store.read(get_digest, name), due_at=now)
    config = read_config(digest.config)
    gathered, items = await store.read(
        gather,
        digest,
        limit=config.max_items,
        by_score=config.sort == "score",
        longest_text=READ_CHARACTERS,
    )
    omitted, is_sample = gathered.count - len(items), not items
    if is_sample:
        omitted, items = 0, await store.read(_newest, digest, min(config.max_items, SAMPLED_ITEMS))
    if not items:
        return Preview()
    return Preview(tuple(await write_issues(context, digest, config, items, omitted)), is_sample)


def _newest(connection: Connection, digest: Digest, limit: int) -> list[StoredItem]:
    found = newest_items(connection, digest.selection, limit=limit)[:limit]
    return read_items(connection, [item.id for item in found], longest_text=READ_CHARACTERS)


def digest_hints(connection: Connection, digest: Digest) -> list[Text]:
    """The results that a digest needs and that no pipeline makes."""
    config = read_config(digest.config)
    languages = config.languages if config.write != "text" else []
    return missing_steps(
        connection, [*results_of(digest.selection), *(f"translation:{each}" for each in languages)]
    )
