"""Changing sources: one or many, from the command line, the API and the pages alike.

What is given is checked as when a source is added, a new address by a visit, and is in effect at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import Connection

from headwater.collect.context import VisitContext
from headwater.collect.planning import Planner, read_policy
from headwater.collect.replanning import replan_sources
from headwater.collectors.base import read_config, shown_config
from headwater.collectors.types import collector_of, config_model_of
from headwater.errors import ConflictError, FailureKind, InputError, NotFoundError, VisitError
from headwater.model import Source, url_key
from headwater.sources.adding import NewSource, first_feed_of, read_new_source, try_address
from headwater.sources.addresses import read_address
from headwater.store.collecting.addresses import SourceKey, source_keys, taken_addresses
from headwater.store.collecting.sources import (
    change_address,
    change_configs,
    change_source,
    change_sources,
    get_source,
    get_source_or_removed,
    refuse_duplicate,
    request_refresh,
)
from headwater.store.core.bulk import storable
from headwater.store.core.versions import check_source_version
from headwater.store.pipelines.attaching import attach, detach_all
from headwater.store.reading.listing import list_folders
from headwater.wording import NOTHING

STARS = "***"  # what stands for a secret wherever a config is shown
INTERVAL = "fetch_interval_minutes"


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change; None leaves it as it is. An empty text clears a folder or a policy, 0 an interval or all
    pipelines that are attached to the source itself.

    A folder must be there already, unless `new_folder` says that it is to be made.
    """

    name: str | None = None
    url: str | None = None
    folder: str | None = None
    new_folder: bool = False
    policy: str | None = None
    interval_minutes: float | None = None
    template_id: int | None = None  # of a pipeline that its new items are to start, besides others
    config: dict[str, Any] | None = None  # the whole of it; a value shown as stars keeps what is stored
    version: str | None = None  # of the source that the editor saw; None: it is not compared


async def edit_checked(source_id: int, edit: Edit, context: VisitContext) -> Source:
    """Write an edit; a new address is visited first. VisitError when it does not work: then nothing is changed.

    Where the address of a page is given for a feed, the first feed that the page names is taken.
    """
    source = await context.store.read(get_source, source_id)
    if edit.url is not None:
        wanted = _elsewhere(source, edit)
        if wanted.url != source.url:
            edit = replace(edit, url=await _working_address(source, wanted, context))
    return await context.store.write(edit_source, source_id, edit, context.clock(), context.planner)


async def _working_address(source: Source, wanted: NewSource, context: VisitContext) -> str:
    if url_key(wanted.url) != url_key(source.url):
        await context.store.read(refuse_duplicate, source.type, wanted.url)
    try:
        try:
            await try_address(wanted, context)
        except VisitError as error:
            if error.kind is not FailureKind.NOT_A_FEED or wanted.type.name != "rss.feed":
                raise
            found = await first_feed_of(wanted, context)
            if found.type != wanted.type:
                raise
            wanted = found
            await try_address(wanted, context)
    except VisitError as error:
        raise VisitError(
            error.kind,
            "{url} does not work, so nothing was changed: {problem}",
            url=wanted.url,
            problem=error.render(),
        ) from error
    return wanted.url


def _elsewhere(source: Source, edit: Edit) -> NewSource:
    """The source as an edit wants it, at another address."""
    url, credentials = read_address(edit.url or "", collector_of(source.type))
    config = source.config if edit.config is None else _with_secrets(edit.config, source)
    return read_new_source(url, source.type, {**config, **credentials}, source.name, source.folder)


def edit_source(
    connection: Connection, source_id: int, edit: Edit, now: float, planner: Planner | None = None
) -> Source:
    """Write an edit as it is. InputError names what is wrong with it, and nothing is changed.

    Another address or config is visited at once, another policy or interval makes another plan: by the planner, or
    without one by the next worker that looks.
    """
    check_source_version(connection, source_id, edit.version)
    source = get_source(connection, source_id)
    values = _common_values(connection, edit)
    if edit.name is not None:
        if not (name := (storable(edit.name) or "").strip()):
            raise InputError("a source needs a name")
        values["name"] = name
    config = None if edit.config is None else _with_secrets(edit.config, source)
    if edit.url is not None:
        wanted = _elsewhere(source, edit)
        if wanted.config != source.config:
            config = dict(wanted.config)
        if wanted.url != source.url:
            change_address(connection, source, wanted.url, now)
    if edit.interval_minutes is not None:
        config = _with_interval(source.config if config is None else config, edit.interval_minutes)
    if config is not None:
        read_config(config_model_of(source.type), config, source.type)
        values["config"] = config
        if _with_interval(config, 0) != _with_interval(source.config, 0):
            values["refresh_requested_at"] = now
    if values:
        change_source(connection, source_id, now, **values)
    _attach(connection, [source_id], edit, now)
    if planner is not None:
        replan_sources(connection, [source_id], planner)
    return get_source(connection, source_id)


def edit_sources(connection: Connection, source_ids: Iterable[int], edit: Edit, now: float) -> "Acted":
    """The same for many sources at once. What is one source's own cannot be given to many.

    Their new plans are left to the workers, who make them batch by batch.
    """
    if (edit.name, edit.url, edit.config) != (None, None, None):
        raise InputError("a name, an address or a config is for one source; many take the rest")
    values = _common_values(connection, edit)
    acted, there = _sorted_out(connection, source_ids, _refuse_removed)
    if values:
        change_sources(connection, acted.done, now, **values)
    _attach(connection, acted.done, edit, now)
    if edit.interval_minutes is not None:
        configs = {key.id: _with_interval(key.config, edit.interval_minutes) for key in there}
        for key in there[:1]:
            read_config(config_model_of(key.type), {INTERVAL: edit.interval_minutes or None}, key.type)
        change_configs(connection, configs, now)
    return acted


def _common_values(connection: Connection, edit: Edit) -> dict[str, Any]:
    """What one source or many can be given alike, checked."""
    values: dict[str, Any] = {}
    if edit.folder is not None:
        values["folder"] = _read_folder(connection, edit)
    if edit.policy is not None:
        values["policy"] = read_policy(edit.policy)
    return values


def _attach(connection: Connection, source_ids: Sequence[int], edit: Edit, now: float) -> None:
    """Attach a pipeline beside those that are there, or detach all that are attached to the sources themselves."""
    if edit.template_id:
        attach(connection, edit.template_id, "source", source_ids, now)
    elif edit.template_id is not None:
        detach_all(connection, source_ids)


def _read_folder(connection: Connection, edit: Edit) -> str | None:
    folder = (storable(edit.folder) or "").strip() or None
    if folder is not None and not edit.new_folder and folder not in (known := list_folders(connection)):
        raise InputError(
            "there is no folder {name}; the folders are: {folders}; to make it, give it as a new folder",
            name=folder,
            folders=", ".join(known) or NOTHING,
        )
    return folder


def _with_interval(config: Mapping[str, Any], minutes: float) -> dict[str, Any]:
    kept = {key: value for key, value in config.items() if key != INTERVAL}
    return kept | {INTERVAL: minutes} if minutes else kept


def _with_secrets(given: dict[str, Any], source: Source) -> dict[str, Any]:
    """The config as meant: where it shows the stars of a secret, the secret that is stored."""
    shown = shown_config(source.config, config_model_of(source.type))
    return {
        key: source.config[key] if key in shown and value == shown[key] and value == STARS else value
        for key, value in given.items()
    }


SourceAction = Literal["refresh", "pause", "resume", "remove", "restore"]
SOURCE_ACTIONS: Final[tuple[SourceAction, ...]] = ("refresh", "pause", "resume", "remove", "restore")


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of an action on many sources: with which it was done, and why not with the others."""

    done: tuple[int, ...]
    problems: tuple[tuple[int, InputError], ...]


def act_on_sources(
    connection: Connection, action: SourceAction, source_ids: Iterable[int], now: float
) -> Acted:
    """Do the same with each of these sources, all at once. One with which it cannot be done stops no other."""
    refuse: Callable[[SourceKey], InputError | None] = _refuse_removed
    if action == "refresh":
        refuse = _refuse_paused
    elif action == "restore":
        refuse = _refuse_taken(connection, source_ids := list(source_ids))
    acted, _ = _sorted_out(connection, source_ids, refuse)
    match action:
        case "refresh":
            request_refresh(connection, acted.done, now)
        case "pause" | "resume":
            change_sources(connection, acted.done, now, schedule_enabled=action == "resume")
        case "remove" | "restore":
            change_sources(connection, acted.done, now, is_deleted=action == "remove")
    return acted


def act_on_source(connection: Connection, action: SourceAction, source_id: int, now: float) -> Source:
    """Visit it now, pause or resume it, remove it or bring it back; an InputError says why not."""
    acted = act_on_sources(connection, action, [source_id], now)
    for _, problem in acted.problems:
        raise problem
    return get_source_or_removed(connection, source_id)


def _sorted_out(
    connection: Connection, source_ids: Iterable[int], refuse: Callable[[SourceKey], InputError | None]
) -> tuple[Acted, list[SourceKey]]:
    """With which of these sources something can be done, and what is wrong with the others."""
    wanted = list(dict.fromkeys(source_ids))
    found = source_keys(connection, wanted)
    problems: dict[int, InputError] = {}
    for source_id in wanted:
        problem = refuse(found[source_id]) if source_id in found else _missing(source_id)
        if problem is not None:
            problems[source_id] = problem
    done = [source_id for source_id in wanted if source_id not in problems]
    return Acted(tuple(done), tuple(problems.items())), [found[source_id] for source_id in done]


def _missing(source_id: int) -> NotFoundError:
    return NotFoundError(
        "there is no source {id}", hint="`headwater source list` shows them all", id=source_id
    )


def _refuse_removed(source: SourceKey) -> InputError | None:
    return _missing(source.id) if source.is_deleted else None


def _refuse_paused(source: SourceKey) -> InputError | None:
    if source.is_deleted or source.schedule_enabled:
        return _refuse_removed(source)
    return ConflictError(
        "source {id}, {name}, is paused",
        hint="resume it with: headwater source resume {id}",
        id=source.id,
        name=source.name,
    )


def _refuse_taken(
    connection: Connection, source_ids: Sequence[int]
) -> Callable[[SourceKey], InputError | None]:
    """Refuses to bring back what another source has replaced: one of those that are there, or that come back too."""
    removed = [key for key in source_keys(connection, source_ids).values() if key.is_deleted]
    living = taken_addresses(connection, removed)

    def refuse(source: SourceKey) -> InputError | None:
        if not source.is_deleted:
            return None
        other = living.setdefault((source.type, source.url_key), source.id)
        if other == source.id:
            return None
        return ConflictError("{url} is there already: source {id}", url=source.url, id=other)

    return refuse
