"""Lists in: whatever is wrong with one entry, the others are added and it is reported."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text

from headwater.collect import lists
from headwater.collect.adding import MAX_URL_BYTES, NewSource, add_unvisited, read_new_source, read_url
from headwater.collect.lists import import_opml
from headwater.errors import InputError, StoreError
from headwater.model import Source
from headwater.store.database import Store
from headwater.store.sources import list_sources
from tests.clock import NOON


def opml(*urls: str) -> bytes:
    outlines = "".join(f'<outline text="{number}" xmlUrl="{url}"/>' for number, url in enumerate(urls))
    return f'<opml version="2.0"><body>{outlines}</body></opml>'.encode()


def outcomes(store: Store, data: bytes) -> tuple[list[str], list[str]]:
    report = import_opml(store, data, NOON)
    with store.reading() as connection:
        stored = [source.url for source in list_sources(connection)]
    assert stored == [entry.url for entry in report if entry.outcome == "added"]
    return [entry.outcome for entry in report], [entry.reason or "" for entry in report]


def failing(statement: str) -> Callable[[Connection, NewSource, float], Source]:
    """`add_unvisited`, but an entry named "1" runs into `statement`."""

    def add(connection: Connection, wanted: NewSource, now: float) -> Source:
        source = add_unvisited(connection, wanted, now)
        if wanted.name == "1":
            connection.execute(text(statement))
        return source

    return add


URLS = ("https://one.example/", "https://two.example/", "https://three.example/")


def test_an_entry_the_database_refuses_takes_no_other_with_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "add_unvisited", failing("INSERT INTO settings (key) VALUES (NULL)"))
    found, reasons = outcomes(store, opml(*URLS))
    assert found == ["added", "rejected", "added"]
    assert reasons[1]


def test_a_database_in_trouble_is_not_the_entrys_fault(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = "SELECT nonsense(" if store.is_sqlite else "SELECT pg_terminate_backend(pg_backend_pid())"
    monkeypatch.setattr(lists, "add_unvisited", failing(statement))
    with pytest.raises(StoreError):
        import_opml(store, opml(*URLS), NOON)


def test_a_very_long_address_is_rejected_alone(store: Store) -> None:
    found, reasons = outcomes(store, opml(URLS[0], f"https://two.example/{'a' * 3_000}", URLS[2]))
    assert found == ["added", "rejected", "added"]
    assert "is too long for an address: 3020 bytes, where 2000 are allowed" in reasons[1]
    assert len(reasons[1]) < 200


def test_the_longest_address_can_be_stored(store: Store) -> None:
    """Of characters that neither compress well nor take one byte each."""
    path = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(600))
    url = f"https://one.example/{path}"
    assert len(url.encode()) > MAX_URL_BYTES - 200
    with store.writing() as connection:
        assert add_unvisited(connection, read_new_source(url), NOON).url == url
    with pytest.raises(InputError, match="too long"):
        read_url(url + path)


def test_names_hold_what_no_database_takes(store: Store) -> None:
    with store.writing() as connection:
        for number, name in enumerate(("a\x00b", "c\ud800d", "\x00")):
            wanted = read_new_source(f"https://one.example/{number}", name=name, folder=name)
            add_unvisited(connection, wanted, NOON)
        assert [source.name for source in list_sources(connection)] == ["ab", "c?d", "one.example"]


@pytest.mark.parametrize(
    "url", ["https://one.example/\x00", "https://one.example/\ud800", "https://o\x1bne.example"]
)
def test_an_address_with_what_no_address_has_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not an address of the web"):
        read_url(url)
