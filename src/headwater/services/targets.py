"""Where a message can be sent: a webhook, e-mail, or chat services. Sending is at least once.

The same idempotency key goes with every attempt (a header of the webhook, the Message-ID of an e-mail), so that a
receiver can drop what it has seen.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args
from urllib.parse import parse_qsl, urlsplit

import orjson
from pydantic import BaseModel, ConfigDict, Field

from headwater.collectors.base import SECRET
from headwater.config import Settings
from headwater.errors import InputError, StepError
from headwater.services.mail import MailServer, Security, send_mail
from headwater.services.mail_message import Letter, compose, header_line, read_address
from headwater.services.notify import children as notifiers
from headwater.services.requests import ServiceContext, fetcher_of, post, require_extra, reveal, reveal_if_set
from headwater.services.signature import HEADER, sign
from headwater.services.text_templates import check_template

Kind = Literal["webhook", "email", "apprise"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_NEEDED: dict[Kind, tuple[str, ...]] = {
    "webhook": ("url",),
    "email": ("recipients",),
    "apprise": ("apprise_urls",),
}
_NOTIFICATION_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Message:
    """What to tell. `html` is sanitised when it is sent; without it the text is shown as HTML."""

    title: str
    text: str
    html: str | None = None
    data: Mapping[str, Any] | None = None  # for programs: what a webhook gets besides


@dataclass(frozen=True, slots=True)
class MailDefaults:
    """The operator's mail server, for messages that name none."""

    server: MailServer | None = None
    sender: str | None = None


class Sender(ServiceContext, Protocol):
    """What is needed to send a message."""

    @property
    def mail(self) -> MailDefaults: ...


class TargetFields(BaseModel):
    """The keys that say where a message goes; each kind of target reads its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str | None = Field(default=None, description="The webhook's address.", json_schema_extra=SECRET)
    secret: str | None = Field(
        default=None, description="What the webhook's signature is made with.", json_schema_extra=SECRET
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers to send to the webhook.", json_schema_extra=SECRET
    )
    request_seconds: float = Field(default=30, gt=0, le=600, description="How long the webhook may take.")
    smtp_host: str | None = Field(
        default=None, description="The mail server. Unset: that of the setting smtp_host."
    )
    smtp_port: int = Field(default=587, ge=1, le=65_535, description="The mail server's port.")
    smtp_security: Security = Field(
        default="starttls", description="How the connection is secured: starttls, tls or none."
    )
    smtp_user: str | None = Field(default=None, description="The user name at the mail server.")
    smtp_password: str | None = Field(
        default=None, description="The password at the mail server.", json_schema_extra=SECRET
    )
    sender: str | None = Field(
        default=None,
        description="The sender of the e-mail, as ann@example.org or Ann <ann@example.org>. Unset: that of the setting"
        " mail_sender.",
    )
    reply_to: str | None = Field(default=None, description="Where replies to the e-mail go; else the sender.")
    recipients: list[str] = Field(default_factory=list, description="The recipients of the e-mail.")
    apprise_urls: list[str] = Field(
        default_factory=list, description="The services, as apprise writes them.", json_schema_extra=SECRET
    )


class TargetConfig(TargetFields):
    """A target that is stored under a name. Its templates are over `title`, `text`, `item`, `items` and `data`."""

    title: str | None = Field(
        default=None,
        description="The subject or title; a template. Unset: as the sender of the message has it.",
    )
    body: str | None = Field(default=None, description="The message itself; a template. Unset: likewise.")
    html: str | None = Field(
        default=None, description="The e-mail as HTML; a template, sanitised when it is filled."
    )

    def templates(self) -> dict[str, str]:
        named = {"title": self.title, "body": self.body, "html": self.html}
        return {key: text for key, text in named.items() if text is not None}


# Chat services over whose webhooks apprise speaks, by the host of the address that they give out.
_CHAT_HOSTS = frozenset(
    {
        *("hooks.slack.com", "discord.com", "discordapp.com", "chat.googleapis.com", "ntfy.sh"),
        *("qyapi.weixin.qq.com", "open.larksuite.com"),
    }
)


def chat_address(address: str) -> str | None:
    """An address of a chat service as apprise takes it; None if the address is not one."""
    parts = urlsplit(address)
    if parts.scheme.lower() not in ("http", "https"):
        return address
    if parts.hostname == "open.feishu.cn":
        return f"feishu://{parts.path.rstrip('/').rpartition('/')[2]}"
    if parts.hostname == "oapi.dingtalk.com":
        return f"dingtalk://{dict(parse_qsl(parts.query)).get('access_token', '')}"
    return address if parts.hostname in _CHAT_HOSTS else None


def check_fields(kind: Kind, fields: TargetFields) -> None:
    """InputError for what its types allow and that still cannot work."""
    for key in _NEEDED[kind]:
        if not getattr(fields, key):
            raise InputError("target {target} needs the key {key}", target=kind, key=key)
    if kind == "apprise":
        require_extra("notify", "apprise", "target apprise")
    check_addresses(fields)


def check_addresses(fields: TargetFields) -> None:
    for address in (fields.sender, fields.reply_to, *fields.recipients):
        if address is not None:
            read_address(address)


def check_target(kind: Kind, config: TargetConfig) -> None:
    check_fields(kind, config)
    for key, text in config.templates().items():
        check_template(key, text)


def mail_defaults(settings: Settings) -> MailDefaults:
    server = None
    if settings.smtp_host is not None:
        server = MailServer(
            settings.smtp_host,
            settings.smtp_port,
            settings.smtp_security,
            settings.smtp_user,
            settings.smtp_password,
        )
    return MailDefaults(server, settings.mail_sender)


async def send(
    outside: Sender,
    kind: Kind,
    fields: TargetFields,
    message: Message,
    key: str,
    *,
    payload: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Send a message; what is known of its delivery. A webhook gets `payload`, or else the message as JSON."""
    if kind == "webhook":
        return await _to_webhook(outside, fields, payload or message_as_json(message), key)
    if kind == "email":
        return await _to_email(outside, fields, message, key)
    return await _to_apprise(outside, fields, message)


def message_as_json(message: Message) -> dict[str, Any]:
    return {"title": message.title, "text": message.text, "html": message.html, **(message.data or {})}


async def _to_webhook(
    outside: Sender, fields: TargetFields, payload: Mapping[str, Any], key: str
) -> dict[str, Any]:
    body = orjson.dumps({"idempotency_key": key, **payload})
    own_headers = {name: reveal(outside, value) for name, value in fields.headers.items()}
    headers = {**own_headers, "Idempotency-Key": key}
    if fields.secret is not None:
        headers[HEADER] = sign(reveal(outside, fields.secret), body, int(time.time()))
    response = await post(
        outside,
        reveal(outside, fields.url or ""),
        body,
        content_type="application/json",
        headers=headers,
        seconds=fields.request_seconds,
        max_bytes=1_000_000,
        is_secret=True,
        hidden=own_headers.values(),
    )
    return {"status": response.status}


async def _to_email(outside: Sender, fields: TargetFields, message: Message, key: str) -> dict[str, Any]:
    server, sender = _mail_server(outside, fields)
    # The operator's own server may be anywhere; one that a template names must be where requests may go.
    guard = None if fields.smtp_host is None else fetcher_of(outside).guard
    letter = Letter(sender, fields.recipients, message.title, message.text, message.html, fields.reply_to)
    written = await asyncio.to_thread(compose, letter, key)
    await asyncio.to_thread(send_mail, server, written, guard)
    return {"recipients": len(fields.recipients), "message_id": written["Message-ID"]}


def _mail_server(outside: Sender, fields: TargetFields) -> tuple[MailServer, str]:
    """The mail server and the sender's address: the message's own, else the operator's."""
    server = outside.mail.server
    if fields.smtp_host is not None:
        server = MailServer(
            host=fields.smtp_host,
            port=fields.smtp_port,
            security=fields.smtp_security,
            user=reveal_if_set(outside, fields.smtp_user),
            password=reveal_if_set(outside, fields.smtp_password),
        )
    if server is None:
        raise StepError(
            "there is no mail server: set HEADWATER_SMTP_HOST, or smtp_host in the config of the target"
        )
    sender = fields.sender or outside.mail.sender
    if sender is None:
        raise StepError(
            "the e-mail has no sender: set HEADWATER_MAIL_SENDER, or sender in the config of the target"
        )
    return server, sender


async def _to_apprise(outside: Sender, fields: TargetFields, message: Message) -> dict[str, Any]:
    async with fetcher_of(outside).open_to_child(max_bytes=_NOTIFICATION_BYTES) as proxy:
        try:
            return await notifiers.call(
                {
                    "urls": [reveal(outside, url) for url in fields.apprise_urls],
                    "title": header_line(message.title),
                    "body": message.text,
                    "environment": proxy.environment(),
                    "proxy_port": proxy.port,
                }
            )
        except StepError:
            if proxy.refusal is not None:
                raise StepError(proxy.refusal.template, **proxy.refusal.values) from None
            raise
