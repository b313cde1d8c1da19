"""`file.listing`: the files of a directory that a web server lists, or of a bucket (S3, Google, Azure and the like).

A bucket lists its files by name, so all of it is read, page by page, and the newest are taken. Directories below
are read as deep as the config says, those that have changed last first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from mimetypes import guess_type
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import Field

from headwater.collectors.base import (
    Collector,
    FetchRequest,
    FetchResult,
    StructuredConfig,
    request_for,
    request_to,
)
from headwater.fetch.message import NO_VALIDATORS, Response
from headwater.formats.listings import File, Listing, read_listing
from headwater.model import Enclosure, Item, SourceMetadata
from headwater.threads import read_aside

_OLDEST: Final = datetime(1, 1, 1, tzinfo=UTC)


class ListingConfig(StructuredConfig):
    include: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="Only files whose name is like one of these; `*` stands for anything.",
    )
    exclude: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        description="No files whose name is like one of these; `*` stands for anything.",
    )
    folders: bool = Field(default=False, description="Whether directories are items too.")
    depth: int = Field(default=0, ge=0, le=5, description="How many directories deep files are looked for.")
    limit: int = Field(
        default=1_000, ge=1, le=20_000, description="How many files at most in one visit, the newest."
    )
    max_pages: int = Field(
        default=20, ge=1, le=200, description="How many directories, or pages of a bucket, are read at most."
    )


@dataclass(slots=True)
class _Found:
    files: list[File] = field(default_factory=list)
    requests: int = 0
    received: int = 0


class ListingCollector(Collector):
    config_model = ListingConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source, config = fetch_request.source, fetch_request.config
        request = request_for(source, config)
        if config.depth:
            request.validators = NO_VALIDATORS  # below an unchanged directory there may be something new
        response = await fetch_request.fetcher.get(request)
        if response.unchanged:
            return FetchResult.of(response)
        first = await _read(response)
        found = _Found(list(first.files), response.requests, response.bytes_received)
        if first.next_marker is not None:
            await _read_rest(fetch_request, first, found)
            response.validators = NO_VALIDATORS  # they are of its first page alone
        elif config.depth:
            await _read_below(fetch_request, first, found)
        wanted = [each for each in found.files if _is_wanted(each, config)]
        wanted.sort(key=lambda each: each.modified or _OLDEST, reverse=True)
        taken = wanted[: config.limit]
        return replace(
            FetchResult.of(response),
            items=tuple(map(_item, taken)),
            metadata=SourceMetadata(first.title, site_url=source.url),
            left_out_count=len(found.files) - len(wanted),
            beyond_count=len(wanted) - len(taken),
            requests=found.requests,
            bytes_received=found.received,
        )


async def _read(response: Response) -> Listing:
    return await read_aside(
        len(response.body), read_listing, response.body, response.url, response.content_type
    )


async def _get(fetch_request: FetchRequest, url: str, found: _Found) -> Listing:
    request = request_to(fetch_request.source, fetch_request.config, url, NO_VALIDATORS)
    response = await fetch_request.fetcher.get(request)
    found.requests += response.requests
    found.received += response.bytes_received
    listing = await _read(response)
    found.files += listing.files
    return listing


async def _read_rest(fetch_request: FetchRequest, first: Listing, found: _Found) -> None:
    """The pages of a bucket after the first."""
    marker, asked = first.next_marker, {first.next_marker}
    for _ in range(fetch_request.config.max_pages - 1):
        if marker is None:
            return
        listing = await _get(fetch_request, _with_parameter(fetch_request.source.url, *marker), found)
        marker = listing.next_marker
        if marker in asked:
            return
        asked.add(marker)


async def _read_below(fetch_request: FetchRequest, first: Listing, found: _Found) -> None:
    """The directories below, level by level."""
    level: Sequence[File] = first.files
    left = fetch_request.config.max_pages - 1
    for _ in range(fetch_request.config.depth):
        folders = sorted(
            (each for each in level if each.is_folder),
            key=lambda each: each.modified or _OLDEST,
            reverse=True,
        )
        level = []
        for folder in folders[:left]:
            listing = await _get(fetch_request, folder.url, found)
            level = [*level, *listing.files]
        left -= min(len(folders), left)


def _with_parameter(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    kept = [(key, each) for key, each in parse_qsl(parts.query, keep_blank_values=True) if key != name]
    return urlunsplit(parts._replace(query=urlencode([*kept, (name, value)])))


def _is_wanted(file: File, config: ListingConfig) -> bool:
    if file.is_folder and not config.folders:
        return False
    if config.include and not any(_is_like(file.name, each) for each in config.include):
        return False
    return not any(_is_like(file.name, each) for each in config.exclude)


def _is_like(name: str, pattern: str) -> bool:
    parts = (re.escape(part) for part in re.split(r"\*+", pattern))
    return re.fullmatch(".*?".join(parts), name.rpartition("/")[2], re.IGNORECASE | re.DOTALL) is not None


def _item(file: File) -> Item:
    media_type = guess_type(file.name)[0]
    at = file.modified.timestamp() if file.modified else None
    return Item(
        external_id=file.url,
        url=file.url,
        title=file.name,
        published_at=at,
        updated_at=at,
        image_url=file.url if (media_type or "").startswith("image/") else None,
        enclosures=() if file.is_folder else (Enclosure(file.url, media_type, file.size),),
    )
