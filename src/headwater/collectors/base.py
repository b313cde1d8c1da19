"""What a collector is: it visits one source through the fetch door and yields items.

A collector knows its service and nothing else: not the database, not the schedule, not the other collectors.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headwater.errors import InputError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Auth, BasicAuth, BearerAuth, Request, Response
from headwater.model import Hints, Item, Json, Source, SourceMetadata, Validators


class SourceConfig(BaseModel):
    """The keys every source's config may have. A collector with more of its own extends it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fetch_interval_minutes: float | None = Field(
        default=None, ge=0.01, le=525_600, description="Minutes between visits, instead of the type's."
    )
    headers: dict[str, str] = Field(default_factory=dict, description="Request headers to add.")
    cookies: dict[str, str] = Field(default_factory=dict, description="Cookies to send.")
    user: str | None = Field(default=None, description="User name for basic authentication.")
    password: str | None = Field(default=None, description="Password for basic authentication.")
    bearer_token: str | None = Field(default=None, description="Token for bearer authentication.")
    proxy: str | None = Field(default=None, description="An HTTP proxy for this source alone.")


SECRET_KEYS = frozenset({"headers", "cookies", "password", "bearer_token", "proxy"})


def shown_config(config: Json) -> dict[str, Any]:
    """A config as it may be shown: whatever can hold a secret is starred out."""
    return {key: "***" if key in SECRET_KEYS and value else value for key, value in config.items()}


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


@dataclass(frozen=True, slots=True)
class Harvest:
    """What one visit brought home. `unchanged` says that nothing was parsed because nothing can be new."""

    items: tuple[Item, ...] = ()
    unchanged: bool = False
    metadata: SourceMetadata = SourceMetadata()
    validators: Validators = Validators()
    hints: Hints = Hints()  # what the answer's headers say of when to come back
    document_hints: Hints | None = None  # what the document itself says; None: it was not read
    permanent_url: str | None = None  # where the publisher says the source has moved for good
    http_status: int | None = None
    requests: int = 1
    bytes_received: int = 0

    @classmethod
    def of(cls, response: Response, **found: Any) -> Self:
        """A harvest from one answer, which gives all but what was found in it."""
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


class Collector(Protocol):
    config_model: type[SourceConfig]

    async def collect(self, source: Source, config: Any, fetcher: Fetcher) -> Harvest:
        """Visit `source`. Raises VisitError with the kind of failure."""
        ...


def read_config(model: type[SourceConfig], config: Json, type_name: str) -> SourceConfig:
    """The config as the collector's own type; InputError names the first key that is wrong."""
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
        raise InputError(
            "config of {type}: {key} = {value} is wrong: {problem}",
            type=type_name,
            key=key,
            value=first["input"],
            problem=first["msg"],
        ) from None
