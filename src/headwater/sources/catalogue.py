"""The starter catalogue: packs of well-known feeds, as data in `catalogue.toml`. It makes no request by being read."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from headwater.errors import NotFoundError
from headwater.formats.opml import Outline
from headwater.language import Language, process_language
from headwater.sources.importing.export import Export


@dataclass(frozen=True, slots=True)
class CatalogueFeed:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Feeds on one topic in one language."""

    key: str
    title: str
    title_zh: str
    language: Language
    feeds: tuple[CatalogueFeed, ...]

    def title_in(self, language: Language | None = None) -> str:
        return self.title_zh if (language or process_language()) == "zh" else self.title


@cache
def read_catalogue() -> tuple[Pack, ...]:
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return tuple(
        Pack(
            *(pack["key"], pack["title"], pack["zh"], pack["language"]),
            tuple(CatalogueFeed(title, url) for title, url in pack["feeds"]),
        )
        for pack in tomllib.loads(text)["pack"]
    )


def find_pack(key: str) -> Pack:
    """The pack of this key, or of this title in either language."""
    wanted = key.strip().lower()
    packs = read_catalogue()
    for pack in packs:
        if wanted in (pack.key, pack.title.lower(), pack.title_zh.lower()):
            return pack
    near = get_close_matches(wanted, [pack.key for pack in packs], n=1, cutoff=0.5)
    if near:
        raise NotFoundError("there is no pack {key}; did you mean {near}?", key=key, near=near[0])
    raise NotFoundError("there is no pack {key}", hint="`headwater catalogue list` shows all", key=key)


def pack_as_list(pack: Pack, folder: str, wants: Callable[[str], bool] = lambda url: True) -> Export:
    """A pack, or the wanted feeds of it, as a list to import into a folder."""
    outlines = (Outline(feed.url, feed.title, folder) for feed in pack.feeds if wants(feed.url))
    return Export("opml", tuple(outlines))
