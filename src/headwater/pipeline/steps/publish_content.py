"""`publish_content`: hands what a run has made to others: an outlet, a webhook, e-mail, chat services.

A message carries what the run has made of the item (an analysis, a summary, a translation), else its text. With `to`
it goes to a target that is stored under a name: it is put into the outbox with the end of this step, and sent from
there, alone or together with others. Otherwise this step sends it itself, at least once and under the same key.
"""

import time
from typing import Any, Literal

from pydantic import Field

from headwater.errors import InputError
from headwater.formats.html import escape_text, sanitize_html, text_as_html
from headwater.pipeline.steps.base import Outgoing, Step, StepConfig, StepContext, StepResult
from headwater.pipeline.steps.reading import Made, made_in_run, values_of
from headwater.services.mail_message import header_line
from headwater.services.targets import Message, TargetFields, check_addresses, check_fields, send
from headwater.services.text_templates import check_template, fill_all

Target = Literal["outlet", "webhook", "email", "apprise"]
TITLE = "{{ title }}"
BODY = "{{ result }}\n\n{{ item.url or '' }}"


class PublishConfig(TargetFields, StepConfig):
    target: Target = Field(
        default="outlet",
        description="Where to: an outlet of ours, a webhook, e-mail, or chat services by apprise.",
    )
    to: str | None = Field(
        default=None, description="The name of a stored target, instead of a target that is described here."
    )
    outlet: str = Field(default="default", description="The outlet's name.")
    with_steps: bool = Field(
        default=True, description="Send the outputs of the steps before to the webhook, too."
    )
    title: str = Field(default=TITLE, description="The subject or title of the message; a template.")
    body: str = Field(
        default=BODY, description="The message itself; a template. `result` is what the run has made."
    )
    html: str | None = Field(
        default=None,
        description="The e-mail as HTML; a template, sanitised when it is filled. Unset: the body as HTML.",
    )


class PublishContent(Step):
    step_type = "publish_content"
    config_model = PublishConfig
    timeout_seconds = 120.0
    retries = 5

    def check(self, config: PublishConfig) -> None:
        if config.to is None and config.target != "outlet":
            check_fields(config.target, config)
        if config.to is None and config.target == "outlet" and not config.outlet:
            raise InputError("target {target} needs the key {key}", target="outlet", key="outlet")
        check_addresses(config)
        check_template("title", config.title)
        check_template("body", config.body)
        if config.html is not None:
            check_template("html", config.html)

    async def run(self, context: StepContext, config: PublishConfig) -> StepResult:
        output: dict[str, Any] = {
            "target": config.to or config.target,
            "idempotency_key": context.idempotency_key,
            "published_at": time.time(),
        }
        if config.to is not None:
            outgoing = Outgoing(config.to, await make_message(context, config))
            return StepResult(output, messages=(outgoing,))
        if config.target == "outlet":  # the item is in the outlet with the result itself
            return StepResult({**output, "outlet": config.outlet}, outlet=config.outlet)
        message = Message("", "")
        if config.target != "webhook":
            message = await make_message(context, config)
        payload: dict[str, Any] = {"content_item": context.content_item}
        if config.with_steps:
            payload["previous_steps"] = context.previous_steps
        sent = await send(context, config.target, config, message, context.idempotency_key, payload=payload)
        return StepResult(output | sent)

    async def preview(self, context: StepContext, config: PublishConfig) -> StepResult:
        """The message as it would be sent."""
        message = await make_message(context, config)
        shown = {"title": message.title, "text": message.text, "html": sanitize_html(_html_of(message))}
        return StepResult({"target": config.to or config.target, "message": shown})

    def outlet_of(self, config: PublishConfig) -> str | None:
        return config.outlet if config.to is None and config.target == "outlet" else None

    def target_of(self, config: PublishConfig) -> str | None:
        return config.to


async def make_message(context: StepContext, config: PublishConfig) -> Message:
    """Title, text and HTML; the title on one line, for a line break in a header begins another header."""
    templates = {"title": config.title, "body": config.body}
    if config.html is not None:
        templates["html"] = config.html
    made = made_in_run(context)
    filled = await fill_all(templates, values_of(context))
    title, html = header_line(filled["title"]), filled.get("html")
    if html is None and config.body == BODY:
        html = _page_of(context, title, made)
    item = {key: value for key, value in context.content_item.items() if key not in ("summary", "content")}
    return Message(title, filled["body"].strip(), html, {"kind": "item", "item": item})


def _page_of(context: StepContext, title: str, made: Made) -> str:
    """The usual e-mail about an item: its title, what was made of it, and where it comes from."""
    item = context.content_item
    heading = escape_text(title)
    if str(item.get("url") or "").startswith(("http://", "https://")):
        heading = f'<a href="{escape_text(item["url"]).replace(chr(34), "%22")}">{heading}</a>'
    source = escape_text(str(item.get("source_name") or ""))
    return f"<h2>{heading}</h2>\n{made.html}\n<p><small>{source}</small></p>"


def _html_of(message: Message) -> str:
    return text_as_html(message.text) if message.html is None else message.html
