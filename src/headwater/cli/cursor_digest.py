"""`headwater cursor digest NAME`: what is new for a cursor, as one document."""

import asyncio
import sys
import tempfile
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import Json, print_document, print_json, say
from headwater.cli.session import Session
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.pipeline.steps.base import StepResult
    from headwater.store.reading.cursors import Page


class DigestFormat(StrEnum):
    MARKDOWN = "markdown"
    HTML = "html"


def digest(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help=t("The cursor's name."))],
    title: Annotated[str, typer.Option(help=t("The digest's title."))] = "Digest",
    format_: Annotated[
        DigestFormat, typer.Option("--format", help=t("What the digest is written in."))
    ] = DigestFormat.MARKDOWN,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help=t("How many at most."))] = 200,
    introduction: Annotated[
        bool,
        typer.Option("--introduction", help=t("Have a model write an introduction (OPENAI_BASE_URL …).")),
    ] = False,
    acknowledge_all: Annotated[
        bool, typer.Option("--ack", help=t("Acknowledge the items once they are printed."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.reading.cursors import acknowledge, read_cursor
    from headwater.store.reading.search import index_all

    session: Session = context.obj
    with session.open_store() as store:
        index_all(store, time.time())
        with store.reading() as connection:
            page = read_cursor(connection, name, limit=limit)
        config = {"title": title, "format": "json" if json else format_.value, "introduction": introduction}
        result = asyncio.run(_summarize(session, page, {**config, "max_items": limit}))
        if json:
            print_json(result.output)
        elif result.end_run:
            if sys.stdout.isatty():  # cron would mail it
                say(t("Nothing new for this cursor."))
        else:
            print_document(result.output["text"])
        if acknowledge_all:
            sys.stdout.flush()  # the reader of our output has it before it counts as read
            with store.writing() as connection:
                acknowledge(connection, name, page.position, now=time.time())


async def _summarize(session: Session, page: "Page", config: dict[str, object]) -> "StepResult":
    from headwater.fetch.client import make_fetcher
    from headwater.pipeline.steps.base import StepContext
    from headwater.pipeline.steps.summarize_feed import SummarizeFeed
    from headwater.services.requests import secrets_for_steps
    from headwater.views.items import item_json

    step = SummarizeFeed()
    read = step.config_model.model_validate(config)
    step.check(read)
    items = [item_json(placed.item) for placed in page.items]
    with tempfile.TemporaryDirectory() as files:  # which this step has no use for
        async with make_fetcher(session.settings) as fetcher:
            context = StepContext(
                content_item={},
                previous_steps={},
                runtime_config={"items": items},
                idempotency_key=f"digest-{page.position}",
                files=Path(files),
                fetcher=fetcher,
                secrets=secrets_for_steps(session.settings.secrets),
            )
            return await step.run(context, read)
