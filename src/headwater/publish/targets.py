"""Targets as people write and see them: checked when they are saved, secrets starred out when they are shown."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError
from sqlalchemy import Connection

from headwater.collectors.base import is_secret, shown_config
from headwater.collectors.validation_errors import describe_mistake
from headwater.errors import InputError, Text
from headwater.model import StoredItem
from headwater.pipeline.steps.base import StepContext
from headwater.pipeline.steps.publish_content import PublishConfig, make_message
from headwater.publish.outbox import in_words_of
from headwater.services.targets import KINDS, Message, TargetConfig, check_target
from headwater.store.publishing.outbox import NewDelivery, put_in_outbox
from headwater.store.publishing.targets import Target, get_target
from headwater.store.reading.items import get_item
from headwater.views.items import item_json
from headwater.views.shape import Json
from headwater.views.targets import target_json

STARS = "***"  # what stands for a secret wherever a config is shown
MOST_BATCH_MINUTES = 7 * 24 * 60.0
MOST_BATCH_ITEMS = 200


def read_target(
    name: str,
    kind: str,
    config: Mapping[str, Any],
    batch_minutes: float | None = None,
    batch_items: int = 20,
    before: Target | None = None,
) -> Target:
    """A target that can be stored; InputError names the first thing that is wrong.

    `before`: the one it replaces, whose secrets are meant where the config shows stars.
    """
    if kind not in KINDS:
        raise InputError(
            "there is no kind of target {kind}; there are {known}", kind=kind, known=", ".join(KINDS)
        )
    if batch_minutes is not None and not 1 <= batch_minutes <= MOST_BATCH_MINUTES:
        raise InputError("batch_minutes is a number from 1 to {most:g}", most=MOST_BATCH_MINUTES)
    if not 1 <= batch_items <= MOST_BATCH_ITEMS:
        raise InputError("batch_items is a whole number from 1 to {most}", most=MOST_BATCH_ITEMS)
    whole = _with_secrets(config, before)
    try:
        read = TargetConfig.model_validate(whole)
    except ValidationError as error:
        raise InputError("config: {problem}", problem=_first_problem(error)) from None
    check_target(kind, read)
    return Target(name, kind, whole, batch_minutes, batch_items)


def show_config(target: Target) -> dict[str, Any]:
    """The config of a target, secrets starred out."""
    return dict(shown_config(target.config, TargetConfig))


def tell_place(target: Target) -> str:
    """Where a target sends to, in a few words and without a secret: mailboxes, the host of a webhook."""
    config = TargetConfig.model_validate(target.config)
    if target.kind == "email":
        return ", ".join(config.recipients)
    addresses = config.apprise_urls if target.kind == "apprise" else [config.url or ""]
    return ", ".join(dict.fromkeys(map(_host_of, addresses)))


def _host_of(address: str) -> str:
    """Of a chat service, the service: its address is a secret from there on."""
    if address.startswith("${"):
        return address
    parts = urlsplit(address)
    return (parts.hostname or "") if parts.scheme in ("http", "https") else f"{parts.scheme}://"


def shown_target(target: Target) -> Json:
    return target_json(target, show_config(target))


def _with_secrets(config: Mapping[str, Any], before: Target | None) -> dict[str, Any]:
    shown = {} if before is None else show_config(before)
    whole = dict(config)
    for key, value in config.items():
        if before is not None and key in shown and value == shown[key]:
            whole[key] = before.config[key]
        elif value == STARS or value == [STARS]:
            raise InputError("config.{key} is ***, but no secret is stored for it; enter the secret", key=key)
    return whole


def _first_problem(error: ValidationError) -> Text:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(TargetConfig.model_fields))
        return Text("there is no key {key}; it takes {known}", key=key, known=known)
    hidden = any(is_secret(str(part), TargetConfig) for part in first["loc"])
    return Text(
        "{key} = {value} is wrong: {problem}",
        key=key,
        value=STARS if hidden else first["input"],
        problem=describe_mistake(first),
    )


async def preview_message(target: Target, item: StoredItem) -> Message:
    """The message about an item as this target would get it from the pipeline that ran last."""
    runs = [each.run_id for each in item.results.values() if each.run_id is not None]
    with tempfile.TemporaryDirectory() as files:
        context = StepContext(item_json(item), {}, {}, "preview", Path(files), run_id=max(runs, default=None))
        message = await make_message(context, PublishConfig(to=target.name))
    return await in_words_of(TargetConfig.model_validate(target.config), message)


def send_test(connection: Connection, name: str, item_id: int | None, now: float) -> None:
    """Put a message into the outbox that shows whether the target can be reached."""
    target = get_target(connection, name)
    title = text = "Headwater can send messages to this target."
    data: dict[str, Any] = {}
    if item_id is not None:
        item = get_item(connection, item_id)
        title, text = item.title, item.url or ""
        data = {
            "item": {"id": item.id, "title": item.title, "url": item.url, "source_name": item.source_name}
        }
    put_in_outbox(connection, [NewDelivery(target.name, f"test-{now}", title, text, None, data)], "test", now)
