"""Sources as those see them who may not edit them: without the secrets in their addresses."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from headwater.fetch.message import without_secrets
from headwater.model import Source
from headwater.store.reports.catalog import CatalogSource

AnySource = TypeVar("AnySource", Source, CatalogSource)


def masked(source: AnySource) -> AnySource:
    """The source with stars for what parameters like `api_key` or `token` hold in its address."""
    return replace(source, url=without_secrets(source.url))


def for_holder(source: Source, allows: Callable[[str], bool]) -> Source:
    """The source as someone with these scopes may see it."""
    return source if allows("admin") else masked(source)


def found_openly(sources: Iterable[AnySource], search: str) -> list[AnySource]:
    """Those that a search finds without their secrets, masked: else searching would tell a secret bit by bit."""
    shown = [masked(source) for source in sources]
    small = search.lower()
    return [each for each in shown if small in f"{each.name}\n{each.url}".lower()]
