"""newsboat, as Debian has it, reads from a running server: what is read and starred flows both ways.

newsboat is driven by keys in its own terminal; what it did is looked up in the server's database, and what it
knows in its own. In this mode it has no folders: other clients' requests cover these.
"""

import os
import pty
import select
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from headwater.store.core.database import Store
from headwater.store.people.app_passwords import add_app_password
from headwater.store.people.entries import EntryFilter, list_places, read_entries
from headwater.store.people.reading import mark_read
from headwater.store.people.users import get_user
from tests.acceptance.test_push import free_port
from tests.acceptance.test_reverse_proxy import serving
from tests.command import Headwater
from tests.origin import Origin

NEWSBOAT = shutil.which("newsboat")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        NEWSBOAT is None and "CI" not in os.environ, reason="newsboat is missing: apt-get install newsboat"
    ),
]
USER = 1
PATIENCE_SECONDS = 60.0
ITEM = """<item><guid>{name}</guid><title>{name}</title><link>https://{name}.example/</link>
<pubDate>Wed, 01 Jan 2025 0{hour}:00:00 GMT</pubDate><description>About {name}</description></item>"""
CONFIG = """
urls-source "feedhq"
feedhq-url "http://127.0.0.1:{port}"
feedhq-login "{name}"
feedhq-password "{password}"
feedhq-flag-star "s"
feedhq-min-items 100
feedhq-show-special-feeds no
confirm-exit no
cleanup-on-quit no
text-width 60
"""


def feed(title: str, *names: str) -> str:
    items = "".join(ITEM.format(name=name, hour=hour) for hour, name in enumerate(names))
    return f'<rss version="2.0"><channel><title>{title}</title>{items}</channel></rss>'


class Newsboat:
    """newsboat with its own home, and a configuration where it looks for one."""

    def __init__(self, home: Path, config: str) -> None:
        self._directory = home / ".newsboat"
        self._directory.mkdir(parents=True)
        (self._directory / "config").write_text(config)
        self._arguments = [str(NEWSBOAT)]
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }

    def reload(self) -> None:
        done = subprocess.run(
            [*self._arguments, "-x", "reload"],
            env=self._environment,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done

    def items(self) -> dict[str, bool]:
        """The items that it has, and whether it takes each for unread."""
        with sqlite3.connect(self._directory / "cache.db") as connection:
            return {
                title: bool(unread)
                for title, unread in connection.execute("SELECT title, unread FROM rss_item")
            }

    def feeds(self) -> set[str]:
        with sqlite3.connect(self._directory / "cache.db") as connection:
            return {row[0] for row in connection.execute("SELECT title FROM rss_feed")}

    def press(self, *steps: tuple[str, str]) -> None:
        """Press keys in its terminal, each after a text has appeared there."""
        process, terminal = pty.fork()
        if process == 0:
            os.environ.clear()
            os.environ.update(self._environment | {"LINES": "40", "COLUMNS": "120"})
            os.execv(self._arguments[0], self._arguments)  # noqa: S606
        try:
            for text, keys in steps:
                self._wait_for(terminal, text)
                os.write(terminal, keys.encode())
            self._drain(terminal)
        finally:
            os.close(terminal)
            os.waitpid(process, 0)

    def _wait_for(self, terminal: int, text: str) -> None:
        seen = ""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in seen:
            assert time.monotonic() < deadline, f"{text!r} did not appear in {seen[-2000:]!r}"
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 65_536).decode("utf-8", "replace")
        time.sleep(0.3)  # until it listens to keys again

    def _drain(self, terminal: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                if select.select([terminal], [], [], 0.2)[0] and not os.read(terminal, 65_536):
                    return
            except OSError:  # it has ended
                return


def titles(store: Store, *, is_read: bool | None = None, is_starred: bool | None = None) -> set[str]:
    with store.reading() as connection:
        places = list_places(connection, USER, EntryFilter(is_read=is_read, is_starred=is_starred), limit=100)
        return {entry.item.title for entry in read_entries(connection, USER, [each.id for each in places])}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_newsboat_reads_marks_and_stars_and_survives_restart(
    tmp_path: Path, database_url: str, origin: Origin
) -> None:
    headwater = Headwater(tmp_path, database_url)
    origin.route("/one", body=feed("First feed", "red", "green", "blue"))
    origin.route("/two", body=feed("Second feed", "cat", "dog"))
    headwater.ok("source", "add", origin.url("/one"), "--folder", "News")
    headwater.ok("source", "add", origin.url("/two"))
    port = free_port()
    with Store.open(database_url) as store:
        with store.writing() as connection:
            _, password = add_app_password(connection, user_id=USER, name="newsboat", now=time.time())
            name = get_user(connection, USER).name
        config = CONFIG.format(port=port, name=name, password=password)
        newsboat = Newsboat(tmp_path / "newsboat", config)
        with serving(headwater, port):
            newsboat.reload()
            assert newsboat.feeds() == {"First feed", "Second feed"}
            assert newsboat.items() == dict.fromkeys(("red", "green", "blue", "cat", "dog"), True)
            # Read on the server: newsboat learns it.
            with store.writing() as connection:
                places = list_places(connection, USER, EntryFilter(), limit=100)
                entries = read_entries(connection, USER, [each.id for each in places])
                green = next(entry.item.id for entry in entries if entry.item.title == "green")
                mark_read(connection, USER, [green], True)
            newsboat.reload()
            assert {title for title, unread in newsboat.items().items() if unread} == {
                "red",
                "blue",
                "cat",
                "dog",
            }
            # Read and starred in newsboat: the server learns it.
            newsboat.press(
                ("First feed", "\r"),
                ("blue", "\r"),
                ("About blue", "q"),
                ("Mark All Read", "\x05"),
                ("Flags", "s\r"),
                ("updated", "q"),
                ("Your feeds", "q"),
            )
            wait_until(lambda: "blue" in titles(store, is_read=True) or "red" in titles(store, is_read=True))
            opened = (titles(store, is_read=True) - {"green"}).pop()
            wait_until(lambda: len(titles(store, is_starred=True)) == 1)
            # What newsboat shows as "Starred items".
            stream = f"http://127.0.0.1:{port}/reader/atom/user%2F-%2Fstate%2Fcom.google%2Fstarred"
            wanted = Request(stream, headers={"Authorization": f"GoogleLogin auth={name}/{password}"})
            with urlopen(wanted) as answer:
                assert b'<title type="text">blue</title>' in answer.read()
            before = titles(store, is_read=True), titles(store, is_starred=True)
            assert opened in before[0]
        with serving(headwater, port):
            newsboat.reload()
            assert (titles(store, is_read=True), titles(store, is_starred=True)) == before
            assert {title for title, unread in newsboat.items().items() if not unread} == before[0]
