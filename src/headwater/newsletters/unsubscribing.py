"""Unsubscribing from a newsletter with one click (RFC 8058): a POST that the sender's own header asks for."""

from typing import Any, Final

from sqlalchemy import Connection

from headwater.errors import ConflictError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request, public_url
from headwater.model import StoredItem
from headwater.store.reading.items import get_item
from headwater.store.reading.listing import newest_items
from headwater.store.reading.selection import Selection

BODY: Final = b"List-Unsubscribe=One-Click"
LOOKED_AT: Final = 5


def letter_of(item: StoredItem) -> dict[str, Any]:
    """What an item keeps of the letter it came in; nothing where it came in none."""
    found = (item.extras or {}).get("letter")
    return found if isinstance(found, dict) else {}


def newest_letter(connection: Connection, source_id: int) -> StoredItem:
    """The newest letter of a source; ConflictError where it has none."""
    for listed in newest_items(connection, Selection(source_ids=(source_id,)), limit=LOOKED_AT):
        item = get_item(connection, listed.id)
        if letter_of(item):
            return item
    raise ConflictError("this source has no e-mails")


async def unsubscribe(item: StoredItem, fetcher: Fetcher) -> str:
    """Ask the sender of an item's letter to send no more; the host that was asked. ConflictError says what is left
    to do by hand.
    """
    letter = letter_of(item)
    url = letter.get("unsubscribe_url")
    if not letter.get("unsubscribe_one_click") or not isinstance(url, str):
        by_hand = url or letter.get("unsubscribe_mail")
        if by_hand:
            raise ConflictError(
                "this e-mail cannot be unsubscribed from with one click; open {address} instead",
                address=str(by_hand),
            )
        raise ConflictError("this e-mail does not say how to unsubscribe")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await fetcher.post(Request(url, body=BODY, headers=headers, max_bytes=1_000_000))
    if not 200 <= answer.status < 400:
        raise ConflictError(
            "{host} did not unsubscribe you (status {status}); open {address} instead",
            host=public_url(url),
            status=answer.status,
            address=url,
        )
    return public_url(url)
