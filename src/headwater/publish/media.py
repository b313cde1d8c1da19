"""Archived files, addressed: signed addresses under which Headwater serves them, and texts that use these.

An address is signed with a secret of this installation: who has not been given one can ask for nothing.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from headwater.formats.feeds.feed import Entry
from headwater.formats.html import sanitize_html
from headwater.model import StoredItem
from headwater.pipeline.steps.archive_media import MEDIA, file_path

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SRCSET = re.compile(r' (?:srcset|sizes)="[^"]*"')


@dataclass(frozen=True, slots=True)
class MediaAddresses:
    """Makes addresses of archived files. `base_url` is where the application is found, empty for its own pages."""

    directory: Path
    secret: str | None = field(repr=False)
    base_url: str = ""

    @classmethod
    def under(cls, data_dir: Path, secret: str | None, base_url: str = "") -> "MediaAddresses":
        return cls(data_dir / MEDIA, secret, base_url.rstrip("/"))

    def path_of(self, sha256: str) -> Path | None:
        """Where a file is kept on this machine; None when it is not."""
        if not _SHA256.fullmatch(sha256):
            return None
        path = file_path(self.directory, sha256)
        return path if path.is_file() else None

    def address_of(self, sha256: str) -> str | None:
        """The address of a file that is kept on this machine."""
        if self.secret is None or self.path_of(sha256) is None:
            return None
        return f"{self.base_url}/media/{sha256}?s={self.sign(sha256)}"

    def sign(self, sha256: str) -> str:
        return hmac.new((self.secret or "").encode(), sha256.encode(), hashlib.sha256).hexdigest()[:32]

    def is_signed(self, sha256: str, signature: str) -> bool:
        return self.secret is not None and hmac.compare_digest(
            self.sign(sha256).encode(), signature.encode("utf-8", "replace")
        )

    def of_item(self, item: StoredItem) -> dict[str, str]:
        """The addresses here of an item's archived files, by their publishers' addresses."""
        stored = item.results.get("media")
        files: Any = (
            stored.result.data.get("files") if stored and isinstance(stored.result.data, dict) else ()
        )
        found = {str(file["url"]): self.address_of(str(file["sha256"])) for file in files or ()}
        return {url: address for url, address in found.items() if address is not None}


def use_own_media(html: str, addresses: dict[str, str]) -> str:
    """Harmless HTML in which archived images, sound and video are read from here."""
    if not addresses:
        return html
    html = sanitize_html(html)
    replaced = html
    for url, address in addresses.items():
        for name in ("src", "poster"):
            replaced = replaced.replace(f'{name}="{escape(url)}"', f'{name}="{escape(address)}"')
    # What a browser may choose from instead is the publisher's.
    return _SRCSET.sub("", replaced) if replaced != html else html


def with_own_media(entry: Entry, addresses: dict[str, str]) -> Entry:
    """An entry whose archived images and files are read from here."""
    if not addresses:
        return entry
    return replace(
        entry,
        summary=entry.summary and use_own_media(entry.summary, addresses),
        content=entry.content and use_own_media(entry.content, addresses),
        image=addresses.get(entry.image or "", entry.image),
        enclosures=tuple(replace(file, url=addresses.get(file.url, file.url)) for file in entry.enclosures),
    )
