"""Lists in: whatever is wrong with one entry, the others are added and it is reported."""

from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import Connection, text

from headwater.errors import InputError, StoreError
from headwater.sources import lists
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.sources.addresses import MAX_URL_BYTES, read_url
from headwater.sources.lists import import_opml
from headwater.store.collecting.sources import Addition, add_sources, list_sources
from headwater.store.core.database import Store
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


def failing(statement: str) -> Callable[..., dict[tuple[str, str], int]]:
    """`add_sources`, but with an entry named "1" it runs into `statement`."""

    def add(
        connection: Connection, additions: Sequence[Addition], now: float, *, for_owner: bool
    ) -> dict[tuple[str, str], int]:
        added = add_sources(connection, additions, now, for_owner=for_owner)
        if any(each.name == "1" for each in additions):
            connection.execute(text(statement))
        return added

    return add


URLS = ("https://one.example/", "https://two.example/", "https://three.example/")


def test_an_entry_the_database_refuses_takes_no_other_with_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "add_sources", failing("INSERT INTO settings (key) VALUES (NULL)"))
    found, reasons = outcomes(store, opml(*URLS))
    assert found == ["added", "rejected", "added"]
    assert reasons[1]


def test_a_database_in_trouble_is_not_the_entrys_fault(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = "SELECT nonsense(" if store.is_sqlite else "SELECT pg_terminate_backend(pg_backend_pid())"
    monkeypatch.setattr(lists, "add_sources", failing(statement))
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


def test_import_with_duplicates_adds_each_address_once(store: Store) -> None:
    first = import_opml(store, opml(URLS[0]), NOON)
    report = import_opml(store, opml(*URLS, "http://two.example"), NOON)
    assert [entry.outcome for entry in report] == ["known", "added", "added", "known"]
    assert report[3].source_id == report[1].source_id
    assert report[0].source_id == first[0].source_id
    assert "is there already: source 1, 0" in (report[0].reason or "")


def test_import_of_more_entries_than_a_chunk_keeps_their_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "CHUNK", 7)
    urls = [f"https://{number}.example/" for number in range(30)]
    told: list[tuple[int, int]] = []
    report = import_opml(store, opml(*urls), NOON, lambda done, total: told.append((done, total)))
    assert [entry.url for entry in report] == urls
    assert [entry.source_id for entry in report] == list(range(1, 31))
    assert told == [(7, 30), (14, 30), (21, 30), (28, 30), (30, 30)]
