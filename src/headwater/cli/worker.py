"""`headwater worker`: a process that works on pipeline runs and does nothing else."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import Json, print_json, say
from headwater.cli.session import Session
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.pipeline.worker import Tally


def worker(
    context: typer.Context,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help=t("How many steps at once, instead of the setting.")),
    ] = None,
    steps: Annotated[
        str | None, typer.Option(metavar="TYPES", help=t("Only steps of these types, separated by commas."))
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(
            "--except", metavar="TYPES", help=t("Skip steps of these types; other workers run them.")
        ),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.cli.collect import stopping_on_signals
    from headwater.fetch.client import make_fetcher
    from headwater.pipeline.worker import Worker
    from headwater.publish.publisher import Publisher

    session: Session = context.obj
    with session.open_store(waiting=True) as store:

        async def work() -> tuple[bool, "Tally"]:
            async with make_fetcher(session.settings) as fetcher:
                at_work = Worker(
                    store,
                    session.settings,
                    fetcher,
                    concurrency=concurrency,
                    only=_names(steps),
                    without=_names(without),
                )
                publisher = Publisher(store, session.settings, make_fetcher)

                def stop() -> None:
                    at_work.stop()
                    publisher.stop()

                with stopping_on_signals(stop):
                    async with publisher:
                        return await at_work.run(), at_work.tally

        finished, tally = asyncio.run(work())
    if json:
        print_json(
            {
                "steps": tally.steps,
                "completed": tally.completed,
                "failed": tally.failed,
                "skipped": tally.skipped,
            }
        )
    else:
        say(
            t(
                "{steps} {steps:step|steps}: {completed} {completed:run|runs} completed,"
                " {failed} failed, {skipped} filtered out"
            ).format(steps=tally.steps, completed=tally.completed, failed=tally.failed, skipped=tally.skipped)
        )
    if not finished:
        raise typer.Exit(1)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
