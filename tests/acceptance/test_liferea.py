"""Liferea, as Debian has it, reads from a running server through its source "Google Reader API".

It is driven by keys on its own display; what it did is looked up in the server's database, and what it knows in
its own. The account stands in its list of feeds from the start: the dialog that asks for it is not driven. Liferea 1.14
does not take over what was read elsewhere (it looks for that in the first category alone, and with backslashes), so
reading flows from it to the server; stars flow both ways.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headwater.store.core.database import Store
from headwater.store.people.app_passwords import add_app_password
from headwater.store.people.entries import EntryFilter, list_places, read_entries
from headwater.store.people.marks import set_starred
from headwater.store.people.users import get_user
from tests.acceptance.test_newsboat import feed, titles
from tests.acceptance.test_push import free_port
from tests.acceptance.test_reverse_proxy import serving
from tests.command import Headwater
from tests.origin import Origin

PROGRAMS = ("liferea", "Xvfb", "dbus-run-session", "xdotool")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"{', '.join(MISSING)} missing: apt-get install liferea xvfb dbus xdotool"
    ),
]
USER = 1
PATIENCE_SECONDS = 90.0
NEXT_UNREAD, TOGGLE_READ, TOGGLE_STAR, UPDATE, QUIT = "ctrl+n", "ctrl+m", "ctrl+t", "ctrl+u", "ctrl+q"
FEEDS = """<?xml version="1.0" encoding="UTF-8"?>
<opml version="1.0"><head><title>Feeds</title></head><body>
<outline title="Headwater" text="Headwater" type="source" id="account" expanded="true" sourceType="fl_google_reader"
 xmlUrl="{address}" htmlUrl="" updateInterval="-1" username="{name}" password="{password}"/></body></opml>
"""


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@pytest.fixture
def display(tmp_path: Path) -> Iterator[str]:
    """The name of an X display without a screen."""
    reading, writing = os.pipe()
    arguments = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1000x800x24", "-nolisten", "tcp"]
    with (tmp_path / "xvfb.log").open("w") as log:
        process = subprocess.Popen(arguments, pass_fds=[writing], stdout=log, stderr=log)
    os.close(writing)
    try:
        number = os.read(reading, 20).decode().strip()
        assert number, (tmp_path / "xvfb.log").read_text()
        yield f":{number}"
    finally:
        os.close(reading)
        process.terminate()
        process.wait(PATIENCE_SECONDS)


class Liferea:
    """Liferea with its own home, which has an account on the server."""

    def __init__(self, home: Path, display: str, address: str, name: str, password: str) -> None:
        self.home = home
        (home / ".config" / "liferea").mkdir(parents=True)
        (home / "run").mkdir(mode=0o700)
        (home / ".config" / "liferea" / "feedlist.opml").write_text(
            FEEDS.format(address=address, name=name, password=password)
        )
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DISPLAY": display,
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(home / "run"),
            "GSETTINGS_BACKEND": "memory",
            "NO_AT_BRIDGE": "1",
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "WEBKIT_DISABLE_COMPOSITING_MODE": "1",
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        with (self.home / "log").open("a") as log:
            process = subprocess.Popen(
                ["dbus-run-session", "--", "liferea", "--disable-plugins"],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            self._drive("search", "--sync", "--onlyvisible", "--name", "^Liferea$", "windowfocus")
            yield
            self.press(QUIT)
            process.wait(PATIENCE_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)

    def press(self, key: str) -> None:
        """Press a key in its window: keys go to where the mouse is."""
        self._drive("mousemove", "300", "300", "key", key)

    def _drive(self, *arguments: str) -> None:
        subprocess.run(["xdotool", *arguments], env=self.environment, check=True, timeout=PATIENCE_SECONDS)

    def items(self) -> dict[str, tuple[bool, bool]]:
        """The items that it has, and whether it takes each for read and for starred."""
        path = self.home / ".local" / "share" / "liferea" / "liferea.db"
        if not path.exists():
            return {}
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
                rows = connection.execute("SELECT title, read, marked FROM items").fetchall()
        except sqlite3.OperationalError:  # it is just making its tables
            return {}
        return {title: (bool(is_read), bool(is_starred)) for title, is_read, is_starred in rows}

    def starred(self) -> set[str]:
        return {title for title, (_, is_starred) in self.items().items() if is_starred}

    def read(self) -> set[str]:
        return {title for title, (is_read, _) in self.items().items() if is_read}

    def feeds(self) -> str:
        """Its list of what the account has."""
        path = self.home / ".cache" / "liferea" / "plugins" / "account.opml"
        return path.read_text() if path.exists() else ""


def star(store: Store, title: str) -> None:
    with store.writing() as connection:
        places = list_places(connection, USER, EntryFilter(), limit=100)
        entries = read_entries(connection, USER, [each.id for each in places])
        found = next(entry.item.id for entry in entries if entry.item.title == title)
        set_starred(connection, USER, [found], True, time.time())


def test_liferea_reads_marks_and_stars_and_survives_restart(
    tmp_path: Path, database_url: str, origin: Origin, display: str
) -> None:
    headwater = Headwater(tmp_path, database_url)
    origin.route("/one", body=feed("First feed", "red", "green", "blue"))
    origin.route("/two", body=feed("Second feed", "cat", "dog"))
    headwater.ok("source", "add", origin.url("/one"), "--folder", "News")
    headwater.ok("source", "add", origin.url("/two"))
    port = free_port()
    with Store.open(database_url) as store:
        with store.writing() as connection:
            _, password = add_app_password(connection, user_id=USER, name="liferea", now=time.time())
            name = get_user(connection, USER).name
        address = f"http://127.0.0.1:{port}/api/greader.php"
        liferea = Liferea(tmp_path / "liferea", display, address, name, password)
        with serving(headwater, port), liferea.running():
            unread = dict.fromkeys(("red", "green", "blue", "cat", "dog"), (False, False))
            wait_until(lambda: liferea.items() == unread, "all items are there and unread")
            listed = liferea.feeds()
            assert listed.index("News") < listed.index("First feed") < listed.index("Second feed")
            assert 'type="folder"' in listed
            liferea.press(NEXT_UNREAD)
            wait_until(lambda: len(titles(store, is_read=True)) == 1, "what it opened is read on the server")
            (opened,) = titles(store, is_read=True)
            assert opened in unread
            liferea.press(TOGGLE_STAR)
            wait_until(lambda: titles(store, is_starred=True) == {opened}, "its star is on the server")
            liferea.press(TOGGLE_READ)
            wait_until(lambda: titles(store, is_read=True) == set(), "it is unread again on the server")
            liferea.press(TOGGLE_READ)
            wait_until(lambda: titles(store, is_read=True) == {opened}, "and read again")
            other = min(unread.keys() - {opened})
            star(store, other)
            liferea.press(UPDATE)
            wait_until(lambda: liferea.starred() == {opened, other}, "it learns of the server's star")
        with serving(headwater, port), liferea.running():
            added = feed("Second feed", "cat", "dog", "emu")
            origin.route("/two", body=added)
            headwater.ok("collect", "--all")
            liferea.press(UPDATE)
            wait_until(lambda: "emu" in liferea.items(), "what arrived since is there")
            assert (liferea.read(), liferea.starred()) == ({opened}, {opened, other})
            assert titles(store, is_read=True) == {opened}
            assert titles(store, is_starred=True) == {opened, other}
