"""Sends a collector on visits as the engine does, one after the other, without a database."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from headwater.collectors.base import Collector, FetchRequest, FetchResult, read_config, reject_empty_result
from headwater.collectors.secrets import fill_references
from headwater.collectors.types import collector_of
from headwater.errors import FailureKind, VisitError
from headwater.fetch.client import Fetcher
from headwater.model import Source
from headwater.sources.adding import read_new_source
from tests.origin import Origin


class Visits:
    """Visits to one source. `known` and `memory` are what the store would keep between them."""

    def __init__(
        self,
        origin: Origin,
        type_name: str,
        url: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        collector: Collector | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        wanted = read_new_source(url, type_name, config)
        found = collector or collector_of(type_name)
        assert found is not None
        self.collector = found
        self.source = Source(1, "it", wanted.type.name, wanted.url, wanted.config)
        self.secrets = secrets or {}
        self.known: set[str] = set()
        self.memory: bytes | None = None
        self._origin = origin
        self._fetcher = Fetcher(user_agent="test", allow=["127.0.0.1"], host_spacing_seconds=0)

    def allow(self, host: str) -> None:
        """Let visits go to another host of the loopback too; before the first."""
        self._fetcher = Fetcher(user_agent="test", allow=["127.0.0.1", host], host_spacing_seconds=0)

    async def __aenter__(self) -> Self:
        await self._fetcher.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._fetcher.__aexit__(None, None, None)

    async def visit(self) -> FetchResult:
        """One visit; what it brings is remembered. VisitError as the engine would record it."""
        config = read_config(self.collector.config_model, self.source.config, self.source.type)
        filled = fill_references(config, self.secrets)
        memory = self.memory if self.collector.remembers else None
        fetch_request = FetchRequest(self.source, filled, self._fetcher, memory, self._known)
        try:
            result = await self.collector.collect(fetch_request)
            reject_empty_result(self.source, config, result)
        except VisitError as error:
            self.source = replace(self.source, last_error_kind=error.kind)
            raise
        self.known |= {item.external_id for item in result.items}
        self.memory = self.memory if result.memory is None else result.memory
        shown = 1.0 if self.known else None
        self.source = replace(
            self.source, validators=result.validators, last_entry_at=shown, last_error_kind=None
        )
        return result

    async def cost(self) -> tuple[int, int]:
        """One visit: how many items it brought that were not known, and how many requests it made."""
        before, known = len(self._origin.requests), set(self.known)
        result = await self.visit()
        asked = len(self._origin.requests) - before
        assert result.requests == asked, "a visit knows what it cost"
        return len({item.external_id for item in result.items} - known), asked

    async def failure(self) -> VisitError:
        """One visit that must fail; nothing of it is remembered."""
        before = self.memory
        try:
            result = await self.visit()
        except VisitError as error:
            assert self.memory == before
            return error
        raise AssertionError(f"the visit brought {result}")

    async def _known(self, external_ids: Sequence[str]) -> set[str]:
        return self.known & set(external_ids)


def told(error: VisitError) -> tuple[FailureKind, int | None]:
    return error.kind, error.http_status
