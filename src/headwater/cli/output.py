"""How commands print: lines and tables for people, JSON for machines, times and sizes in plain words.

Nothing a publisher wrote reaches a terminal raw: everything for people passes through `printable`.
"""

import contextlib
import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from headwater.errors import Text
from headwater.language import translate as t
from headwater.wording import ago
from headwater.wording import iso as iso

if TYPE_CHECKING:
    from rich.console import RenderableType

TABLE_ROWS = 1_000  # whose widths are found together, where a table is longer
BIGGEST = 2**63 - 1  # the largest number a database keeps

Json = Annotated[bool, typer.Option("--json", help=t("Print JSON."))]

_LINE_ENDS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
# What a terminal obeys instead of showing: control characters (escape sequences begin with one) and those that
# turn the direction of writing round, so that a line reads as something else than it is.
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` as one line that a terminal shows and does not obey."""
    return _SURROGATES.sub("\ufffd", _OBEYED.sub("", _LINE_ENDS.sub(" ", text)))


def say(text: str, *, error: bool = False) -> None:
    """Print one line for people."""
    typer.echo(printable(text), err=error)


def warn(notes: Iterable[Text]) -> None:
    """Say what a person should know beside what was done, apart from what a program reads."""
    for note in notes:
        say(t("note: {note}").format(note=note.render()), error=True)


def print_document(text: str) -> None:
    """Print a text of many lines for people, as it is but for what a terminal would obey."""
    typer.echo(printable_lines(text), nl=False)


def escaped(document: str, form: str) -> str:
    """A document for machines with what a terminal obeys written as escapes: it means the same."""
    return _OBEYED.sub(
        lambda found: found[0] if found[0] in "\t\n\r" else form.format(ord(found[0])), document
    )


def print_json(data: Any) -> None:
    # As bytes: JSON is UTF-8, whatever the terminal speaks.
    typer.echo(escaped(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode(), "\\u{:04x}").encode())


def print_json_list(things: Iterable[Any]) -> None:
    """A JSON list whose members are made, printed and forgotten one by one."""
    separator = b"["
    for thing in things:
        text = escaped(orjson.dumps(thing, option=orjson.OPT_INDENT_2).decode(), "\\u{:04x}")
        typer.echo(separator + b"\n  " + text.replace("\n", "\n  ").encode(), nl=False)
        separator = b","
    typer.echo(b"[]" if separator == b"[" else b"\n]")


def print_json_line(data: Any) -> None:
    """One thing as one line, for readers that take them one by one."""
    typer.echo(escaped(orjson.dumps(data).decode(), "\\u{:04x}").encode())


class PrintableFormatter(logging.Formatter):
    """Log lines: a record is one line, and a traceback keeps its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        return printable_lines(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    """Log lines for machines: each is a JSON object with the record's own fields beside the usual ones."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        try:
            return escaped(orjson.dumps(fields, default=str).decode(), "\\u{:04x}")
        except TypeError:  # a lone surrogate somewhere inside
            return json.dumps(fields, default=str)


def printable_lines(text: str) -> str:
    """Many lines, each `printable`."""
    return "\n".join(printable(line) for line in text.split("\n"))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """A table as wide as the terminal; `empty` is said when there are no rows."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if _is_terminal() else 200)
    left = iter(rows)
    is_first = True
    while part := list(islice(left, TABLE_ROWS)):
        table = Table(*columns, box=None, pad_edge=False, header_style="bold", show_header=is_first)
        for row in part:
            # Text, not markup: what a publisher writes in brackets is not ours to interpret.
            table.add_row(*(Text("" if value is None else printable(str(value))) for value in row))
        console.print(table)
        is_first = False
    if is_first:
        say(empty)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Pairs of a name and a value, one to a line; a value too long for it goes on below itself."""
    from rich.console import Console

    Console(width=None if _is_terminal() else 200).print(facts_table(facts))


def facts_table(facts: Iterable[tuple[str, str]]) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in facts:
        table.add_row(Text(printable(name), style="bold"), Text(printable(value)))
    return table


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on the terminal, if there is one: call what it gives with (done, total, note)."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, note="")
        yield lambda done, total, note: progress.update(task, completed=done, total=total, note=note)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def from_now(at: float | None) -> str:
    """A time for people: how long ago, or in how long."""
    return ago(at, time.time())
