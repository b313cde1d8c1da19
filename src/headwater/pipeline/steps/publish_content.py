"""`publish_content`: hands what a run has made to somebody else.

Delivery is at least once: the same idempotency key goes with every attempt (a header of the webhook, the Message-ID of
an e-mail), so that a receiver can drop what it has seen.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from email.headerregistry import Address
from email.message import EmailMessage
from hashlib import sha256
from typing import Any, Literal

import orjson
from pydantic import Field

from headwater.collectors.base import SECRET
from headwater.errors import InputError
from headwater.formats.html import collapse
from headwater.pipeline.signature import HEADER, sign
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepError, StepResult
from headwater.pipeline.steps.mail import MailServer, Security, send_mail
from headwater.pipeline.steps.notify import children as notifiers
from headwater.pipeline.steps.prompt import check_template, fill, values_of
from headwater.pipeline.steps.service import door_of, post, require_extra, reveal, reveal_if_set

Target = Literal["outlet", "webhook", "email", "apprise"]
_NEEDED: dict[Target, tuple[str, ...]] = {
    "outlet": ("outlet",),
    "webhook": ("url",),
    "email": ("smtp_host", "sender", "recipients"),
    "apprise": ("apprise_urls",),
}
_NOTIFICATION_BYTES = 5_000_000


class PublishConfig(StepConfig):
    target: Target = Field(
        default="outlet",
        description="Where to: an outlet of ours, a webhook, e-mail, or chat services by apprise.",
    )
    outlet: str = Field(default="default", description="The outlet's name.")
    url: str | None = Field(default=None, description="The webhook's address.", json_schema_extra=SECRET)
    secret: str | None = Field(
        default=None, description="What the webhook's signature is made with.", json_schema_extra=SECRET
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers to send to the webhook.", json_schema_extra=SECRET
    )
    with_steps: bool = Field(default=True, description="Send the outputs of the steps before, too.")
    request_seconds: float = Field(default=30, gt=0, le=600, description="How long the webhook may take.")
    smtp_host: str | None = Field(default=None, description="The mail server.")
    smtp_port: int = Field(default=587, ge=1, le=65_535, description="The mail server's port.")
    smtp_security: Security = Field(
        default="starttls", description="How the connection is secured: starttls, tls or none."
    )
    smtp_user: str | None = Field(default=None, description="The user name at the mail server.")
    smtp_password: str | None = Field(
        default=None, description="The password at the mail server.", json_schema_extra=SECRET
    )
    sender: str | None = Field(default=None, description="Whom the e-mail is from.")
    recipients: list[str] = Field(default_factory=list, description="Whom the e-mail is for.")
    apprise_urls: list[str] = Field(
        default_factory=list, description="The services, as apprise writes them.", json_schema_extra=SECRET
    )
    title: str = Field(
        default="{{ item.title }}", description="The subject or title of the message; a template."
    )
    body: str = Field(
        default="{{ text[:2000] }}\n\n{{ item.url or '' }}", description="The message itself; a template."
    )


class PublishContent(Step):
    step_type = "publish_content"
    config_model = PublishConfig
    timeout_seconds = 120.0
    retries = 5

    def check(self, config: PublishConfig) -> None:
        for key in _NEEDED[config.target]:
            if not getattr(config, key):
                raise InputError("target {target} needs the key {key}", target=config.target, key=key)
        if config.target == "apprise":
            require_extra("notify", "apprise", self.step_type)
        for address in (config.sender, *config.recipients):
            if address is not None and not _is_address(address):
                raise InputError("{address} is no e-mail address", address=address)
        check_template("title", config.title)
        check_template("body", config.body)

    async def run(self, context: StepContext, config: PublishConfig) -> StepResult:
        ways: dict[Target, Callable[[StepContext, PublishConfig], Awaitable[dict[str, Any]]]] = {
            "outlet": _to_outlet,
            "webhook": _to_webhook,
            "email": _to_email,
            "apprise": _to_apprise,
        }
        output = await ways[config.target](context, config)
        return StepResult(
            {"target": config.target, "idempotency_key": context.idempotency_key, "published_at": time.time()}
            | output,
            outlet=self.outlet_of(config),
        )

    def outlet_of(self, config: PublishConfig) -> str | None:
        return config.outlet if config.target == "outlet" else None


async def _to_outlet(context: StepContext, config: PublishConfig) -> dict[str, Any]:
    """Nothing is left to do: the item is in the outlet with the result itself."""
    return {"outlet": config.outlet}


async def _to_webhook(context: StepContext, config: PublishConfig) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "idempotency_key": context.idempotency_key,
        "content_item": context.content_item,
    }
    if config.with_steps:
        payload["previous_steps"] = context.previous_steps
    body = orjson.dumps(payload)
    own_headers = {name: reveal(context, value) for name, value in config.headers.items()}
    headers = dict(own_headers)
    headers["Idempotency-Key"] = context.idempotency_key
    if config.secret is not None:
        headers[HEADER] = sign(reveal(context, config.secret), body, int(time.time()))
    response = await post(
        context,
        reveal(context, config.url or ""),
        body,
        content_type="application/json",
        headers=headers,
        seconds=config.request_seconds,
        max_bytes=1_000_000,
        is_secret=True,
        hidden=own_headers.values(),
    )
    return {"status": response.status}


async def _to_email(context: StepContext, config: PublishConfig) -> dict[str, Any]:
    title, text = _message(context, config)
    message = EmailMessage()
    message["Subject"] = title
    message["From"] = config.sender
    message["To"] = ", ".join(config.recipients)
    name = sha256(context.idempotency_key.encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{name}@headwater.invalid>"
    message.set_content(text)
    server = MailServer(
        host=config.smtp_host or "",
        port=config.smtp_port,
        security=config.smtp_security,
        user=reveal_if_set(context, config.smtp_user),
        password=reveal_if_set(context, config.smtp_password),
    )
    await asyncio.to_thread(send_mail, server, message, door_of(context).guard)
    return {"recipients": len(config.recipients), "message_id": message["Message-ID"]}


async def _to_apprise(context: StepContext, config: PublishConfig) -> dict[str, Any]:
    title, text = _message(context, config)
    async with door_of(context).open_to_child(max_bytes=_NOTIFICATION_BYTES) as proxy:
        try:
            return await notifiers.call(
                {
                    "urls": [reveal(context, url) for url in config.apprise_urls],
                    "title": title,
                    "body": text,
                    "environment": proxy.environment(),
                    "proxy_port": proxy.port,
                }
            )
        except StepError:
            if proxy.refusal is not None:
                raise StepError(proxy.refusal.template, **proxy.refusal.values) from None
            raise


def _message(context: StepContext, config: PublishConfig) -> tuple[str, str]:
    """Title and text; the title on one line, for a line break in a header begins another header."""
    values = values_of(context)
    return collapse(fill("title", config.title, values))[:500], fill("body", config.body, values)


def _is_address(text: str) -> bool:
    try:
        return bool(Address(addr_spec=text).domain)
    except (ValueError, IndexError):
        return False
