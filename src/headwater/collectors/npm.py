"""`api.npm`: the versions of a package of the npm registry, the newest first, each as an item."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from pydantic import Field

from headwater.collectors.answer import changed_structure, read_json, text_of
from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.fetch.message import Response
from headwater.formats.dates import parse_date
from headwater.formats.html import escape_text
from headwater.model import Item, Json, SourceMetadata
from headwater.threads import read_aside

SITE: Final = "https://www.npmjs.com/package"
MOST_BYTES: Final = 60_000_000  # of packages with thousands of versions
_ABOUT: Final = frozenset(("created", "modified", "unpublished"))


class NpmConfig(StructuredConfig):
    prereleases: bool = Field(
        default=False, description="Whether versions before a release (such as 2.0.0-rc.1) become items."
    )
    limit: int = Field(default=100, ge=1, le=5_000, description="How many versions at most, the newest.")


class NpmCollector(Collector):
    config_model = NpmConfig

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        """The registry writes the slash of `@scope/name` as %2F; both are the same package."""
        if url is None:
            return None, config
        parts = urlsplit(url)
        path = unquote(parts.path)
        return (parts._replace(path=path).geturl() if path.startswith("/@") else url), config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source, config = fetch_request.source, fetch_request.config
        parts = urlsplit(source.url)
        path = "/" + quote(parts.path.lstrip("/"), safe="@")
        request = request_for(source, config, parts._replace(path=path).geturl())
        response = await fetch_request.fetcher.get(
            replace(request, accept="application/json", max_bytes=MOST_BYTES)
        )
        if response.unchanged:
            return FetchResult.of(response)
        items, metadata, left_out = await read_aside(len(response.body), _read, response, config)
        return replace(
            FetchResult.of(response, items=items, metadata=metadata, left_out_count=left_out),
            permanent_url=None,
        )


def _read(response: Response, config: NpmConfig) -> tuple[tuple[Item, ...], SourceMetadata, int]:
    data = read_json(response)
    times = data.get("time") if isinstance(data, Mapping) else None
    name = text_of(data.get("name")) if isinstance(data, Mapping) else None
    if not isinstance(times, Mapping) or name is None:
        raise changed_structure(response.url, "time")
    versions = data.get("versions")
    described = versions if isinstance(versions, Mapping) else {}
    published = [
        (moment, version)
        for version, said in times.items()
        if version not in _ABOUT and (moment := parse_date(text_of(said))) is not None
    ]
    wanted = [each for each in published if config.prereleases or "-" not in each[1].partition("+")[0]]
    wanted.sort(reverse=True)
    items = tuple(
        Item(
            external_id=f"{name}@{version}",
            url=f"{SITE}/{name}/v/{version}",
            title=f"{name} {version}",
            author=_publisher(described.get(version)),
            summary=_summary(described.get(version)),
            published_at=moment.timestamp(),
        )
        for moment, version in wanted[: config.limit]
    )
    about = SourceMetadata(name, text_of(data.get("description")), f"{SITE}/{name}")
    return items, about, len(published) - len(items)


def _publisher(version: Any) -> str | None:
    by = version.get("_npmUser") if isinstance(version, Mapping) else None
    return text_of(by.get("name")) if isinstance(by, Mapping) else None


def _summary(version: Any) -> str | None:
    """What a version says of itself: that it should not be used, before what it is."""
    if not isinstance(version, Mapping):
        return None
    told = [text for key in ("deprecated", "description") if (text := text_of(version.get(key)))]
    return "".join(f"<p>{escape_text(each)}</p>" for each in told) or None
