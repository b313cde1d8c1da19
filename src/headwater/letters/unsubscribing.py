"""Unsubscribing from a newsletter with one click (RFC 8058): a POST that the sender's own header asks for."""

from typing import Any

from headwater.errors import ConflictError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Request, public_url
from headwater.model import StoredItem

BODY = b"List-Unsubscribe=One-Click"


def letter_of(item: StoredItem) -> dict[str, Any]:
    """What an item keeps of the letter it came in; nothing where it came in none."""
    found = (item.extras or {}).get("letter")
    return found if isinstance(found, dict) else {}


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
                "this letter offers no unsubscribing with one click; open {address} instead",
                address=str(by_hand),
            )
        raise ConflictError("this letter does not say how to unsubscribe")
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
