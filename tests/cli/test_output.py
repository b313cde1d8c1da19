"""What reaches a terminal is shown, never obeyed; what machines read stays exact."""

import io
import json
import logging
import re
from pathlib import Path

import pytest

import headwater.cli
from headwater.cli.app import run
from headwater.cli.output import PrintableFormatter, print_json, printable, progress_bar
from tests.command import Headwater
from tests.origin import Origin

EVIL = "\x1b]0;owned\x07\x1b[2Jone\x9b31m \u202etwo\u2066"
HARMLESS = "]0;owned[2Jone31m two"
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, HARMLESS),
        ("two\nlines\r\nand\ta tab\u2028more", "two lines and a tab more"),
        ("晨报 — naïve 👩‍🚀 עברית", "晨报 — naïve 👩‍🚀 עברית"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("", ""),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_command_shows_what_a_publisher_wrote_raw(tmp_path: Path, origin: Origin) -> None:
    command = Headwater(tmp_path, None)
    feed = json.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": EVIL,
            "items": [{"id": "1", "title": EVIL, "url": f"http://one.example/{EVIL}"}],
        }
    )
    (tmp_path / "feed.json").write_text(feed)
    origin.route("/feed", body=feed, content_type="application/feed+json")
    said = command.ok("source", "add", origin.url("/feed"))
    assert HARMLESS in said
    for arguments in (("items",), ("source", "list"), ("source", "show", "1"), ("parse", "feed.json")):
        shown = command.ok(*arguments)
        assert "owned" in shown, arguments
        said += shown
    said += command.ok("export")
    said += command.ok("source", "list", "--json") + command.ok("items", "--json")
    said += command.ok("parse", "feed.json", "--json")
    assert OBEYED.findall(said) == []
    assert EVIL in command.json("items")[0]["title"], "what machines read is exact"


def test_errors_and_tracebacks_are_shown_not_obeyed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["parse", f"{EVIL}.xml"], ["--debug", "parse", f"{EVIL}.xml"], [EVIL]):
        assert run(arguments) == 2
        said = capsys.readouterr().err
        assert "owned" in said
        assert OBEYED.findall(said) == []
        assert ("Traceback" in said) == ("--debug" in arguments)


def test_a_log_record_is_one_line_and_a_traceback_keeps_its_lines() -> None:
    error = (ValueError, ValueError(f"{EVIL}\nsecond line"), None)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "%s", (f"{EVIL}\nfake line",), error)
    assert PrintableFormatter("%(levelname)s %(message)s").format(record).split("\n") == [
        f"ERROR {HARMLESS} fake line",
        f"ValueError: {HARMLESS}",
        "second line",
    ]


def test_json_means_what_it_meant(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"title": EVIL})
    said = capsys.readouterr().out
    assert OBEYED.findall(said) == []
    assert json.loads(said) == {"title": EVIL}


def test_a_terminal_without_the_letters_still_shows_the_rest(tmp_path: Path) -> None:
    (tmp_path / "feed.json").write_text(
        '{"version": "https://jsonfeed.org/version/1.1", "title": "晨报 1", "items": []}', encoding="utf-8"
    )
    command = Headwater(tmp_path, None)
    assert "Title: ?? 1" in command.ok("parse", "feed.json", PYTHONIOENCODING="latin-1")
    assert command.json("parse", "feed.json", PYTHONIOENCODING="latin-1")["title"] == "晨报 1"


def test_commands_print_through_one_door() -> None:
    directory = Path(headwater.cli.__file__).parent
    for path in directory.glob("*.py"):
        if path.name != "output.py":
            assert "typer.echo" not in path.read_text(encoding="utf-8"), path.name


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_for_terminals_and_not_for_programs(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("[b]Visiting", quiet=quiet) as advance:
        advance(1, 2, "7 new items")
    shown = terminal.getvalue()
    assert ("[b]Visiting" in shown and "7 new items" in shown and "1/2" in shown) != quiet
    assert bool(shown) != quiet
