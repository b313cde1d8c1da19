"""What a collector is: it runs an fetch_request to one source through the fetch door and yields items.

A collector knows its service and nothing else: not the database, not the schedule, not the other collectors.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Final, Self, Union, get_args, get_origin

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, ValidationInfo, field_validator

from headwater.collectors.validation_errors import describe_mistake
from headwater.errors import FailureKind, FetchError, InputError, Text, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import (
    HARMLESS_HEADERS,
    Auth,
    BasicAuth,
    BearerAuth,
    Request,
    Response,
    public_url,
)
from headwater.fetch.url import keeps_credentials, read_url
from headwater.model import NO_HINTS, NO_METADATA, Hints, Hub, Item, Json, Source, SourceMetadata, Validators
from headwater.records import dataclass

# For `Field(json_schema_extra=SECRET)`: the value is in no output, message or log.
SECRET: Final[dict[str, JsonValue]] = {"secret": True}
NO_BROWSER: Final = (
    "{url} is to be opened in a browser, and there is none here: install headwater[browser] and Chromium"
)
_LOOKS_SECRET = re.compile(
    r"pass|pwd|secret|token|cookie|credential|key(?!word)|auth(?!or(?!i))", re.IGNORECASE
)


class SourceConfig(BaseModel):
    """The keys every source's config may have. A collector with more keys extends it.

    A key that can hold a secret says so with `json_schema_extra=SECRET`; one whose name looks like it is taken for one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fetch_interval_minutes: float | None = Field(
        default=None, ge=0.01, le=525_600, description="Minutes between visits, instead of the type's."
    )
    retention_days: float | None = Field(
        default=None, ge=0, le=36_500, description="Days its items are kept; 0 keeps them for ever."
    )
    retention_items: int | None = Field(
        default=None, ge=0, le=1_000_000_000, description="Items that are kept of it; 0 keeps all."
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Request headers to add.", json_schema_extra=SECRET
    )
    cookies: dict[str, str] = Field(
        default_factory=dict, description="Cookies to send.", json_schema_extra=SECRET
    )
    user: str | None = Field(default=None, description="User name for basic authentication.")
    password: str | None = Field(
        default=None, description="Password for basic authentication.", json_schema_extra=SECRET
    )
    bearer_token: str | None = Field(
        default=None, description="Token for bearer authentication.", json_schema_extra=SECRET
    )
    proxy: str | None = Field(
        default=None,
        description="A proxy for this source alone: http://…, https://… or socks5://…",
        json_schema_extra=SECRET,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and bool not in (annotation, *get_args(annotation)):
            raise ValueError("Input should not be true or false")
        return value


class StructuredConfig(SourceConfig):
    """For sources whose answer always lists something: that it lists nothing any more is an alarm, not silence.

    A collector whose config extends this one has its results checked by `reject_empty_result`.
    """

    may_be_empty: bool = Field(default=False, description="Whether an empty list is normal for this source.")


def is_secret(key: str, model: type[BaseModel] = SourceConfig) -> bool:
    """Whether the value of `key` must not be shown: its field says so, or its name does."""
    field = model.model_fields.get(key)
    extra = field.json_schema_extra if field else None
    marked = extra.get("secret") if isinstance(extra, dict) else None
    return bool(_LOOKS_SECRET.search(key)) if marked is None else bool(marked)


def shown_config(config: Json, model: type[BaseModel] = SourceConfig) -> dict[str, Any]:
    """A config as it may be shown: whatever can hold a secret is starred out, unless it only refers to one."""
    return {
        key: "***" if is_secret(key, model) and value and not _is_reference(value) else _shown(value)
        for key, value in config.items()
    }


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\$\{\w+\}", value) is not None


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return shown_config(value)
    return [_shown(each) for each in value] if isinstance(value, list) else value


def read_text(model: type[SourceConfig], key: str, text: str) -> Any:
    """The value that `text` means for a key: itself where the key takes text, else what it is as JSON."""
    field = model.model_fields.get(key)
    kinds = get_args(field.annotation) if field and get_origin(field.annotation) in (Union, UnionType) else ()
    if field is not None and str in (field.annotation, *kinds):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def request_for(source: Source, config: SourceConfig, url: str | None = None) -> Request:
    """The request a source's config asks for: its validators, headers, cookies, credentials and proxy."""
    auth: Auth | None = None
    if config.bearer_token:
        auth = BearerAuth(config.bearer_token)
    elif config.user is not None:
        auth = BasicAuth(config.user, config.password or "")
    return Request(
        url or source.url,
        validators=source.validators,
        headers=config.headers or None,
        cookies=config.cookies or None,
        auth=auth,
        proxy=config.proxy,
    )


def has_credentials(config: Json, model: type[BaseModel] = SourceConfig) -> bool:
    """Whether a config holds anything that is for the source's own origin alone."""
    return any(value and _is_credential(key, value, model) for key, value in config.items())


def _is_credential(key: str, value: Any, model: type[BaseModel]) -> bool:
    if key == "headers" and isinstance(value, Mapping):
        return any(name.lower() not in HARMLESS_HEADERS for name in value)
    return key == "user" or (key != "proxy" and is_secret(key, model))


def keeps_origin(home: str, url: str) -> bool:
    """Whether the credentials of a source whose address is `home` may go to `url`."""
    try:
        return keeps_credentials(read_url(home)[0], read_url(url)[0])
    except FetchError:
        return False


def request_to(source: Source, config: SourceConfig, url: str, validators: Validators) -> Request:
    """A request for an address that a source's document names: on another origin, without any of its secrets."""
    if not keeps_origin(source.url, url):
        return Request(url, validators=validators, proxy=config.proxy)
    return replace(request_for(source, config, url), validators=validators)


async def nothing_known(external_ids: Sequence[str]) -> set[str]:
    """The answer for a source that has never been visited."""
    return set()


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What a collector is sent out with.

    `memory` is what it left at the source's last good visit (`FetchResult.memory`), None at the first and for a
    collector that does not say `remembers`. `known` tells which of some external ids the source has shown
    before, so that what is known need not be fetched.
    """

    source: Source
    config: Any  # what the collector's `config_model` made of the source's config
    fetcher: Fetcher
    memory: bytes | None = None
    known: Callable[[Sequence[str]], Awaitable[set[str]]] = nothing_known
    show: Callable[[str], Awaitable[Response]] | None = None  # a page as a real browser shows it

    async def show_page(self, url: str) -> Response:
        """A page once its scripts have run; VisitError where that is not possible."""
        if self.show is None:
            raise VisitError(FailureKind.INTERNAL, NO_BROWSER, url=public_url(url))
        return await self.show(url)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What one visit brought home. `unchanged` says that nothing was parsed because nothing can be new."""

    items: tuple[Item, ...] = ()
    unchanged: bool = False
    metadata: SourceMetadata = NO_METADATA
    validators: Validators = Validators()
    hints: Hints = NO_HINTS  # what the answer's headers say of when to come back
    document_hints: Hints | None = None  # what the document itself says; None: it was not read
    permanent_url: str | None = None  # where the publisher says the source has moved for good
    http_status: int | None = None
    requests: int = 1
    bytes_received: int = 0
    hub: Hub | None = None  # who would push what the source publishes, if its document was read
    known_count: int = 0  # how many items it left where they are, because they are known
    left_out_count: int = 0  # how many items of the answer the source's config does not want, or not yet
    beyond_count: int = 0  # how many items its document has beyond those that are read of one
    memory: bytes | None = (
        None  # to be given at the next visit, stored with this one; None: leave it as it is
    )

    @classmethod
    def of(cls, response: Response, **found: Any) -> Self:
        """A result from one answer, which gives all but what was found in it."""
        return cls(
            unchanged=response.unchanged,
            validators=response.validators,
            permanent_url=response.permanent_url,
            http_status=response.status,
            requests=response.requests,
            bytes_received=response.bytes_received,
            hints=response.hints,
            **found,
        )


def reject_empty_result(source: Source, config: SourceConfig, result: FetchResult) -> None:
    """VisitError when a source that has shown items, and always has some, shows none in a readable answer."""
    if result.unchanged or result.items or result.known_count or result.left_out_count:
        return
    if isinstance(config, StructuredConfig) and not config.may_be_empty and source.last_entry_at is not None:
        raise VisitError(
            FailureKind.CHANGED_STRUCTURE,
            "{url} lists nothing, where it used to list items: its structure has changed, or it is blocking us."
            " If that is normal for it, set may_be_empty in its config.",
            http_status=result.http_status,
            url=public_url(source.url),
        )


class Collector(ABC):
    config_model: ClassVar[type[SourceConfig]] = SourceConfig
    remembers: ClassVar[bool] = False  # whether its results carry a memory for the next visit
    schemes: ClassVar[tuple[str, ...]] = ("http", "https")  # of its sources' addresses
    is_delivered: ClassVar[bool] = False  # whether items are handed over, so that no visit is planned
    # For types that other packages bring; those of Headwater's own stand in `collectors.types`.
    alias: ClassVar[str | None] = None
    interval_minutes: ClassVar[float] = 240.0

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        """Address and config of a new source, each completed from the other: a user may give either.

        The address is what tells one source of a type from another. Nothing is checked here.
        """
        return url, config

    def why_skipped(self, config: Any) -> Text | None:
        """Why a source with this config cannot be visited; None when it can. Being skipped is not a failure."""
        return None

    @abstractmethod
    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        """Visit the source of the request. Raises VisitError with the kind of failure."""


@cache
def _empty_config(model: type[SourceConfig]) -> SourceConfig | None:
    try:
        return model.model_validate({})
    except ValidationError:
        return None


def read_config(model: type[SourceConfig], config: Json, type_name: str) -> SourceConfig:
    """The config as the collector's own type; InputError names the first key that is wrong."""
    if not config and (usual := _empty_config(model)) is not None:
        return usual  # as most are; it cannot be changed, so one will do for all
    try:
        return model.model_validate(config)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise InputError(
                "config of {type}: there is no key {key}; it takes {known}",
                type=type_name,
                key=key,
                known=", ".join(sorted(model.model_fields)),
            ) from None
        # Without a key the whole config is wrong, and all of it would be shown.
        hidden = not first["loc"] or any(is_secret(str(part), model) for part in first["loc"])
        raise InputError(
            "config of {type}: {key} = {value} is wrong: {problem}",
            type=type_name,
            key=key or "*",
            value="***" if hidden else _shown(first["input"]),
            problem=describe_mistake(first),
        ) from None
