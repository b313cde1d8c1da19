"""How commands print: tables for people, JSON for machines, times and sizes in plain words."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
import typer

from headwater.language import translate as t

Json = Annotated[bool, typer.Option("--json", help=t("Print JSON."))]


def print_json(data: Any) -> None:
    typer.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """A table as wide as the terminal; `empty` is said when there are no rows."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        # Text, not markup: what a publisher writes in brackets is not ours to interpret.
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    console = Console(width=None if _is_terminal() else 200)
    if table.row_count:
        console.print(table)
    else:
        typer.echo(empty)


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on the terminal, if there is one: call what it gives with (done, total)."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def iso(at: float | None) -> str | None:
    """A time for machines: ISO 8601 in UTC, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago(at: float | None, now: float | None = None) -> str:
    """A time for people: how long ago, or in how long."""
    if at is None:
        return "-"
    seconds = (now if now is not None else time.time()) - at
    size = duration(abs(seconds))
    return (t("{time} ago") if seconds >= 0 else t("in {time}")).format(time=size)


def duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {t(unit)}"
    return f"{seconds:.0f} {t('s')}"
