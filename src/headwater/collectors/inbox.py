"""`mail.inbox`: letters that a mail server hands over to Headwater, at an address of the source's own.

There is nothing to visit: `collect.letters` stores a letter when it comes.
"""

import re
import secrets
from typing import Final

from pydantic import Field, field_validator

from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig
from headwater.collectors.mailbox import MOST_SENDERS, check_senders
from headwater.errors import InputError
from headwater.model import Json

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_RANDOM_CHARACTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


class InboxConfig(SourceConfig):
    senders: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_SENDERS,
        description="Accept e-mails from these addresses or domains only. Leave empty to accept all.",
    )
    keep_trackers: bool = Field(
        default=False, description="Keep the pictures and links that senders use for tracking."
    )

    _are_senders = field_validator("senders")(check_senders)


class InboxCollector(Collector):
    config_model = InboxConfig
    schemes = ("inbox",)
    is_delivered = True

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        """Without a name for its address, one that cannot be guessed."""
        name = (url or "").strip().lower().removeprefix("inbox:").strip("/").partition("@")[0]
        if not name:
            name = "".join(secrets.choice(_RANDOM_CHARACTERS) for _ in range(12))
        if not _NAME.fullmatch(name):
            raise InputError(
                "{name} cannot be the part of an address before the @; use letters, digits, dots and dashes",
                name=name,
            )
        return f"inbox://{name}", config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        return FetchResult(unchanged=True, requests=0)


def mail_address(url: str, domain: str | None) -> str | None:
    """The address whose letters become a source's items; None for sources of other types.

    Without a domain in the settings, any that the mail server hands over here.
    """
    if not url.startswith("inbox://"):
        return None
    return f"{url.removeprefix('inbox://')}@{domain or '…'}"
