"""An article: its text in several versions, what pipelines made of it, its sound and video."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from sqlalchemy import Connection

from headwater.formats.html import sanitize_html
from headwater.formats.links import resolve_html
from headwater.markup import visible_text
from headwater.model import StoredItem, StoredResult
from headwater.publish.bodies import html_of, text_of_item, title_of
from headwater.publish.media import MediaAddresses
from headwater.store.people.entries import Entry, get_entry
from headwater.store.people.story_copies import with_copies
from headwater.store.reading.items import get_item
from headwater.store.reading.media import make_media_secret, media_secret
from headwater.threads import showing
from headwater.web.pages.frame import Page
from headwater.web.pages.items import SHOWN_PARTS, guess_language, said_by
from headwater.web.pages.reading.highlighting import Hits, hits_of, mark_html, minutes_to_read
from headwater.web.pages.results import Segment, segments_of
from headwater.web.pictures import PictureAddresses

FROM_FEED = "feed"
_BESIDE = (
    "summary",
    "score",
    "tags",
    "fingerprint",
    "media",
)  # what has a place besides the tabs and sections
MEASURED_CHARACTERS = 100_000
RIGHT_TO_LEFT = ("ar", "fa", "he", "iw", "ur", "ps", "yi", "dv", "ug", "sd")


@dataclass(frozen=True, slots=True)
class Version:
    """A text of an article that can be chosen: from the feed, the full text, a translation."""

    key: str
    label: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """What a pipeline made, shown below or above the text."""

    key: str
    kind: str
    name: str
    body: Markup
    made_at: float
    language: str | None
    segments: list[Segment]  # of a transcript with times


@dataclass(frozen=True, slots=True)
class Sound:
    """A file that a player plays."""

    title: str
    address: str
    original: str
    media_type: str
    is_video: bool


async def picture_addresses(page: Page, item: StoredItem | None = None) -> PictureAddresses:
    """Addresses here of publishers' pictures; archived files of the item have their own."""
    store = page.context.store
    secret = await store.read(media_secret)
    if secret is None:
        secret = await store.write(make_media_secret, page.context.clock())
    own: dict[str, str] = {}
    if item is not None:
        own = await showing.run(MediaAddresses.under(page.context.settings.data_dir, secret).of_item, item)
    return PictureAddresses(secret, own)


async def read_article(page: Page, entry_id: int, text: str = "", search: str = "") -> dict[str, Any]:
    """What the article's template shows."""
    store = page.context.store
    entry = await store.read(_entry_with_copies, page.user.id, entry_id)
    item = await store.read(get_item, entry_id)
    addresses = await picture_addresses(page, item)
    return await showing.run(_compose, page, entry, item, addresses, text, hits_of(search))


def _entry_with_copies(connection: Connection, user_id: int, entry_id: int) -> Entry:
    return with_copies(connection, user_id, [get_entry(connection, user_id, entry_id)])[0]


def _compose(
    page: Page, entry: Entry, item: StoredItem, addresses: PictureAddresses, text: str, hits: Hits | None
) -> dict[str, Any]:
    versions = _versions(page, item)
    chosen = next((each for each in versions if each.key == text), versions[-1])
    for each in versions:
        if not text and each.key == "full_text":
            chosen = each
    title, body, cut = _text_of(item, chosen, addresses, hits)
    language = chosen.language or guess_language(item.title)
    picture = addresses.of(item.image_url)
    sounds = _sounds(item, addresses)
    return {
        "addresses": addresses,
        "entry": entry,
        "item": item,
        "title": title,
        "body": Markup(body),  # noqa: S704 - sanitised
        "cut": cut or item.is_cut,
        "language": language,
        "direction": "rtl" if (language or "").partition("-")[0].lower() in RIGHT_TO_LEFT else "auto",
        "picture": picture if "<img" not in body and not any(each.is_video for each in sounds) else None,
        "minutes": minutes_to_read([visible_text(body, MEASURED_CHARACTERS)]),
        "versions": versions if len(versions) > 1 else [],
        "chosen": chosen.key,
        "summary": _section(item, "summary", addresses),
        "sections": _sections(item, addresses, {each.key for each in versions}),
        "sounds": sounds,
        "other_files": [
            file
            for file in item.enclosures[:SHOWN_PARTS]
            if not (file.media_type or "").startswith(("audio/", "video/", "image/"))
        ],
        "said": said_by(item.extras or {}),
        "pipeline_tags": item.tags,
        "score": item.pipeline_score,
        "score_reason": _score_reason(item),
    }


def _versions(page: Page, item: StoredItem) -> list[Version]:
    """The texts to choose from; the feed's first."""
    found = [Version(FROM_FEED, page.t("From feed"), item.language)]
    for key, stored in item.results.items():
        kind, language = stored.result.kind, stored.result.language
        if kind == "full_text" and stored.result.body:
            found.append(Version(key, page.t("Full text"), language or item.language))
        elif kind == "translation" and stored.result.body:
            name = stored.result.name or language or ""
            label = {"zh": "中文", "en": "English"}.get(name.partition("-")[0].lower(), name)
            found.append(Version(key, label or page.t("translation"), language or name or None))
    return found


def _text_of(
    item: StoredItem, chosen: Version, addresses: PictureAddresses, hits: Hits | None
) -> tuple[str, str, bool]:
    stored = item.results.get(chosen.key)
    if stored is None:
        body, cut = text_of_item(item)
        title = item.title
    else:
        body, cut = sanitize_html(resolve_html(html_of(stored.result), item.url)), False
        title = title_of(stored.result) or item.title
    return title, mark_html(addresses.in_html(body), hits), cut


def _score_reason(item: StoredItem) -> str:
    stored = item.results.get("score")
    return str((stored.result.data or {}).get("reason") or "") if stored else ""


def _section(item: StoredItem, key: str, addresses: PictureAddresses) -> Section | None:
    stored = item.results.get(key)
    return None if stored is None else _shown(key, stored, addresses)


def _sections(item: StoredItem, addresses: PictureAddresses, versions: set[str]) -> list[Section]:
    return [
        _shown(key, stored, addresses)
        for key, stored in item.results.items()
        if stored.result.kind not in _BESIDE and key not in versions
    ]


def _shown(key: str, stored: StoredResult, addresses: PictureAddresses) -> Section:
    result = stored.result
    body = Markup(addresses.in_html(html_of(result)))  # noqa: S704 - sanitised or escaped
    return Section(key, result.kind, result.name, body, stored.made_at, result.language, segments_of(result))


def _sounds(item: StoredItem, addresses: PictureAddresses) -> list[Sound]:
    found = []
    for file in item.enclosures[:SHOWN_PARTS]:
        media_type = file.media_type or ""
        if not media_type.startswith(("audio/", "video/")):
            continue
        address = addresses.of(file.url, "sound")
        if address is not None:
            found.append(
                Sound(
                    file.title or item.title, address, file.url, media_type, media_type.startswith("video/")
                )
            )
    return found
