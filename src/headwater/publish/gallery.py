"""The gallery: ready arrangements of pipelines, outlets, digests and targets, with one or two fields to fill in.

Using one makes everything that it needs in one transaction, under its name, and runs a new pipeline for the newest
items that are there, so that there is something to see at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from headwater.errors import InputError, Text
from headwater.language import Language
from headwater.pipeline.templates import read_template
from headwater.publish.digests import read_digest
from headwater.publish.targets import read_target
from headwater.services.targets import chat_address
from headwater.store.collecting.sources import add_source
from headwater.store.pipelines.attaching import Scope, attach
from headwater.store.pipelines.starting import start_runs
from headwater.store.pipelines.templates import add_template
from headwater.store.publishing.digests import Digest, add_digest
from headwater.store.publishing.targets import add_target
from headwater.store.reading.cursors import When
from headwater.store.reading.listing import newest_items, refuse_unknown_folders
from headwater.store.reading.outlets import ORIGINAL, Outlet, add_outlet
from headwater.store.reading.selection import Selection


@dataclass(frozen=True, slots=True)
class GalleryField:
    """What a person fills in. Its label is a text for people; without a default it is required."""

    key: str
    label: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What using an entry of the gallery has made, by name."""

    templates: tuple[str, ...] = ()
    outlets: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    run_count: int = 0  # for items that are there
    asks_model: bool = False
    sends_mail: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """An arrangement that works once its fields are filled in. Name and description are texts for people."""

    key: str
    name: str
    description: str
    fields: tuple[GalleryField, ...]
    make: Callable[["Maker"], None]
    title: str | None = None  # of what it publishes or sends, if that is not its name


NEWEST = 10  # items that are there for which a new pipeline runs
BEST = 7.0
ASKING = ("transcribe_content", "summarize_content", "translate_content", "score_content")
FOLDER = GalleryField("folder", "The folder of the sources; empty: all sources", "")
MAIL = GalleryField("email", "The e-mail address that it is sent to")
HOOK = GalleryField("webhook", "The address of the webhook or chat that it is sent to")


class Maker:
    """Makes what an entry needs."""

    def __init__(
        self, connection: Connection, name: str, title: Text, values: Mapping[str, str], now: float
    ) -> None:
        self.name = name
        self.title = title
        self.language: Language | None = None  # of titles
        self.values = values
        self.made = Made()
        self._connection = connection
        self._now = now

    @property
    def folder(self) -> str:
        return self.values.get("folder", "").strip()

    @property
    def selection(self) -> Selection:
        return Selection(folders=(self.folder,)) if self.folder else Selection()

    def target(self) -> str:
        """A mailbox, a webhook or a chat, under the name of the entry."""
        mail = self.values.get("email")
        kind, config = ("email", {"recipients": [mail]}) if mail else _hook(self.values["webhook"].strip())
        added = add_target(self._connection, read_target(self.name, kind, config), self._now)
        self.made = replace(self.made, targets=(*self.made.targets, added.name), sends_mail=bool(mail))
        return added.name

    def pipeline(
        self,
        *steps: dict[str, Any],
        on_change: bool = False,
        scope: Scope | None = None,
        value: str = "",
        newest: int = 0,
    ) -> None:
        """A template, attached to the folder or to everything, unless a scope is given.

        `newest`: it is run for so many of the items that are there.
        """
        data = {"name": self.name, "steps": list(steps), "run_on_change": on_change}
        template = add_template(self._connection, read_template(data), self._now)
        if scope is None:
            scope, value = ("folder", self.folder) if self.folder else ("everything", "")
        attach(self._connection, template.id, scope, [value], self._now)
        items = newest_items(self._connection, self.selection, limit=newest)[:newest] if newest else []
        run_ids = start_runs(self._connection, template, [item.id for item in items], self._now)
        made = (*self.made.templates, template.name)
        self.made = replace(
            self.made,
            templates=made,
            run_count=self.made.run_count + len(run_ids),
            asks_model=any(each["step_type"] in ASKING for each in steps),
        )

    def outlet(self, *content: str, selection: Selection | None = None, own_media: bool = False) -> None:
        outlet = Outlet(
            self.name,
            self.title.render(self.language),
            self.selection if selection is None else selection,
            content=content or (ORIGINAL,),
            own_media=own_media,
        )
        added = add_outlet(self._connection, outlet, self._now)
        self.made = replace(self.made, outlets=(*self.made.outlets, added.name))

    def digest(self, schedule: str, zone: str, target: str, selection: Selection, **config: Any) -> None:
        when: When = "processed" if self.made.templates else "stored"
        title = self.title.render(self.language)
        wanted = Digest(self.name, title, schedule, zone, selection, when, config=config, targets=(target,))
        added = add_digest(self._connection, read_digest(wanted, self._now), self._now)
        self.made = replace(self.made, digests=(*self.made.digests, added.name))

    def source(self, url: str, type_name: str, config: dict[str, Any]) -> int:
        added = add_source(
            self._connection, name=self.name, type=type_name, url=url, config=config, now=self._now
        )
        self.made = replace(self.made, sources=(*self.made.sources, added.name))
        return added.id


def _hook(address: str) -> tuple[str, dict[str, Any]]:
    """The kind and the config of a target for a webhook's address, or for that of a chat service."""
    if "://" not in address and not address.startswith("${"):
        raise InputError(
            "{address} is not an address: it begins with https://, or with a chat's own name, as tgram://",
            address=address,
        )
    if address.startswith("${") or (chat := chat_address(address)) is None:
        return "webhook", {"url": address}
    return "apprise", {"apprise_urls": [chat]}


def step(step_type: str, *, is_critical: bool = True, **config: Any) -> dict[str, Any]:
    return {"step_type": step_type, "is_critical": is_critical, "config": config}


def _full_text(maker: Maker) -> None:
    maker.pipeline(step("enrich_content"), newest=NEWEST)
    maker.outlet("full_text", ORIGINAL)


def _translated(maker: Maker) -> None:
    language = maker.values["language"]
    maker.pipeline(
        step("enrich_content", is_critical=False), step("translate_content", language=language), newest=NEWEST
    )
    maker.outlet(f"translation:{language}")


def _daily_digest(maker: Maker) -> None:
    language, interests = maker.values["language"].strip(), maker.values["interests"].strip()
    steps, selection = [], maker.selection
    config: dict[str, Any] = {}
    if interests:
        steps.append(step("score_content", interests=interests, min_score=BEST))
        selection = replace(selection, min_score=BEST)
        config["sort"] = "score"
    if language:
        steps.append(step("translate_content", language=language))
        config["languages"] = [language]
        maker.language = "zh" if language.lower().startswith("zh") else "en"
    if steps:
        maker.pipeline(*steps, newest=NEWEST)
    schedule = f"daily {maker.values['time']}"
    maker.digest(schedule, maker.values["zone"], maker.target(), selection, **config)


def _podcast(maker: Maker) -> None:
    maker.pipeline(
        step("download_video"),
        step("transcribe_content", base_url="${OPENAI_BASE_URL}", api_key="${OPENAI_API_KEY}"),
        step("summarize_content"),
        newest=1,
    )
    maker.outlet("summary")


def _best(maker: Maker) -> None:
    maker.pipeline(step("score_content", interests=maker.values["interests"]), newest=NEWEST)
    maker.outlet(ORIGINAL, selection=replace(maker.selection, min_score=BEST))


def _keywords(maker: Maker) -> None:
    words = [word.strip() for word in maker.values["keywords"].split(",") if word.strip()]
    if not words:
        raise InputError("name at least one keyword")
    maker.pipeline(step("filter_content", include_keywords=words), step("publish_content", to=maker.target()))


def _page_watch(maker: Maker) -> None:
    target = maker.target()
    config = {"item": maker.values["selector"], "watch": True}
    source_id = maker.source(maker.values["url"], "web.scraper", config)
    maker.pipeline(
        step("compare_content"),
        step("publish_content", to=target),
        on_change=True,
        scope="source",
        value=str(source_id),
    )


def _archive(maker: Maker) -> None:
    maker.pipeline(
        step("enrich_content", is_critical=False), step("archive_media", is_critical=False), newest=NEWEST
    )
    maker.outlet("full_text", ORIGINAL, own_media=True)


GALLERY: tuple[Entry, ...] = (
    Entry(
        "full-text-feed",
        "Full-text feed",
        "Fetches the page of each item and publishes a feed with the whole articles.",
        (FOLDER,),
        _full_text,
    ),
    Entry(
        "translated-feed",
        "Translated feed",
        "Translates each item with a language model and publishes the translations as a feed.",
        (GalleryField("language", "The language to translate into, as zh or en"), FOLDER),
        _translated,
    ),
    Entry(
        "daily-digest",
        "Daily digest by mail",
        "Sends one e-mail a day with what is new; if you like in your language, and only what matters to you.",
        (
            MAIL,
            FOLDER,
            GalleryField("language", "The language to translate into, as zh or en; empty: as it is", ""),
            GalleryField(
                "interests",
                "What matters to you: items that a model scores 7 or more are in it; empty: all",
                "",
            ),
            GalleryField("time", "The time of day, as 07:30", "07:30"),
            GalleryField("zone", "The time zone, as Europe/Berlin", "UTC"),
        ),
        _daily_digest,
        title="Daily digest",
    ),
    Entry(
        "podcast-summary",
        "Podcast to transcript to summary",
        "Transcribes each episode, summarises it, and publishes the summaries with the episodes as a feed.",
        (FOLDER,),
        _podcast,
    ),
    Entry(
        "best-of",
        "Score and keep the best",
        "Has a language model score each item, and publishes those that score 7 or more as a feed.",
        (GalleryField("interests", "What matters to you, in a sentence or two"), FOLDER),
        _best,
    ),
    Entry(
        "keyword-alert",
        "Keyword alert to chat",
        "Sends a message as soon as an item says one of your words.",
        (GalleryField("keywords", "Words, separated by commas"), HOOK, FOLDER),
        _keywords,
    ),
    Entry(
        "page-watch",
        "Page watch with a diff",
        "Visits a page and sends what has changed in it, word by word.",
        (
            GalleryField("url", "The address of the page"),
            HOOK,
            GalleryField("selector", "The part of the page, as a CSS selector", "body"),
        ),
        _page_watch,
    ),
    Entry(
        "archive",
        "Archive everything",
        "Keeps the whole articles, images and files of all items, and publishes them as a feed.",
        (FOLDER,),
        _archive,
    ),
)


def find_entry(key: str) -> Entry:
    for entry in GALLERY:
        if entry.key == key:
            return entry
    raise InputError(
        "the gallery has no {key}; it has {known}", key=key, known=", ".join(e.key for e in GALLERY)
    )


def use_entry(
    connection: Connection,
    key: str,
    values: Mapping[str, str],
    now: float,
    name: str | None = None,
    language: Language | None = None,
) -> Made:
    """Make all that an entry needs; InputError for a field that is missing, and nothing is made.

    `language`: of the titles that outlets and digests get.
    """
    entry = find_entry(key)
    known = {field.key: field for field in entry.fields}
    for given in values:
        if given not in known:
            raise InputError(
                "{entry} has no field {key}; it has {known}", entry=key, key=given, known=", ".join(known)
            )
    whole = {field.key: values.get(field.key) or field.default for field in entry.fields}
    missing = [field for field, value in whole.items() if value is None]
    if missing:
        raise InputError("{entry} needs the field {key}", entry=key, key=", ".join(missing))
    filled = {field: value or "" for field, value in whole.items()}
    if filled.get("folder"):
        refuse_unknown_folders(connection, [filled["folder"]])
    maker = Maker(connection, name or entry.key, Text(entry.title or entry.name), filled, now)
    maker.language = language
    entry.make(maker)
    return maker.made
