"""Letters in a real mailbox become items: each once, whatever happens to the mailbox; its flags stay as they are."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from headwater.collectors.base import FetchRequest, FetchResult, read_config
from headwater.collectors.mailbox import MailboxCollector, MailboxConfig, is_from
from headwater.errors import FailureKind, InputError, VisitError
from headwater.fetch.client import Fetcher
from headwater.model import Source
from headwater.sources.adding import read_new_source
from tests.dovecot import PASSWORD, Dovecot, dovecot, letter

NOW = 1_795_000_000.0


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Dovecot]:
    with dovecot() as server:
        yield server


@pytest.fixture
def server(shared_server: Dovecot, request: pytest.FixtureRequest) -> Dovecot:
    shared_server.user = f"user{abs(hash(request.node.nodeid))}"
    return shared_server


class Reading:
    """Visits to one mailbox, with the memory that the store would keep."""

    def __init__(self, server: Dovecot, fetcher: Fetcher, **config: Any) -> None:
        self.collector = MailboxCollector(lambda: NOW)
        url = f"imap://{server.user}@127.0.0.1:{server.port}/"
        wanted = read_new_source(url, "mail.imap", {"password": PASSWORD, **config})
        self.source = Source(1, "it", "mail.imap", wanted.url, wanted.config)
        self.memory: bytes | None = None
        self._fetcher = fetcher

    async def visit(self) -> FetchResult:
        config = read_config(MailboxConfig, self.source.config, "mail.imap")
        result = await self.collector.collect(FetchRequest(self.source, config, self._fetcher, self.memory))
        self.memory = result.memory
        return result

    async def titles(self) -> list[str]:
        return [item.title for item in (await self.visit()).items]


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(user_agent="test", allow=["127.0.0.1"], host_spacing_seconds=0) as made:
        yield made


@pytest.mark.slow
async def test_new_letters_are_found_once(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(letter(1), letter(2))
    reading = Reading(server, fetcher)
    assert await reading.titles() == ["Letter 1", "Letter 2"]
    again = await reading.visit()
    assert again.unchanged
    assert again.items == ()
    server.deliver(letter(3))
    assert await reading.titles() == ["Letter 3"]
    assert all(b"Seen" not in flags for flags in server.flags())


@pytest.mark.slow
async def test_empty_mailbox_is_no_failure(server: Dovecot, fetcher: Fetcher) -> None:
    reading = Reading(server, fetcher)
    assert await reading.titles() == []
    server.deliver(letter(1))
    assert await reading.titles() == ["Letter 1"]


@pytest.mark.slow
async def test_first_visit_takes_the_newest(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(*(letter(number) for number in range(6)))
    reading = Reading(server, fetcher, first=2)
    assert await reading.titles() == ["Letter 4", "Letter 5"]
    assert await reading.titles() == []


@pytest.mark.slow
async def test_letters_of_others_are_left(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(letter(1), letter(2, "Shop <shop@other.example>"), letter(3, "X <x@mail.garden.example>"))
    reading = Reading(server, fetcher, senders=["garden.example"])
    assert await reading.titles() == ["Letter 1", "Letter 3"]
    reading = Reading(server, fetcher, senders=["shop@other.example", "unknown@else.example"])
    assert await reading.titles() == ["Letter 2"]


@pytest.mark.slow
async def test_letters_are_marked_as_read_when_told(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(letter(1))
    await Reading(server, fetcher, mark_read=True).visit()
    assert b"Seen" in server.flags()[0]


@pytest.mark.slow
async def test_new_numbers_lose_and_double_nothing(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(letter(1), letter(2))
    reading = Reading(server, fetcher)
    before = {item.external_id for item in (await reading.visit()).items}
    server.deliver(letter(3))
    server.renumber()
    found = {item.external_id for item in (await reading.visit()).items}
    assert found == before | {"<letter-3@garden.example>"}  # known ones are told by their ids
    assert await reading.titles() == []


@pytest.mark.slow
async def test_more_letters_than_one_visit_takes_come_with_the_next(
    server: Dovecot, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.collectors.mailbox.MOST_LETTERS", 4)
    server.deliver(letter(0))
    reading = Reading(server, fetcher)
    found = await reading.titles()
    server.deliver(*(letter(number) for number in range(1, 10)))
    for _ in range(3):
        found += await reading.titles()
    assert found == [f"Letter {number}" for number in range(10)]
    assert await reading.titles() == []


@pytest.mark.slow
async def test_another_folder_is_read(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(letter(1), folder="Lists")
    assert await Reading(server, fetcher, folder="Lists").titles() == ["Letter 1"]


@pytest.mark.slow
async def test_missing_folder_names_those_there_are(server: Dovecot, fetcher: Fetcher) -> None:
    server.deliver(letter(1), folder="Lists")
    with pytest.raises(VisitError, match=r"Nope.*Lists") as caught:
        await Reading(server, fetcher, folder="Nope").visit()
    assert caught.value.kind is FailureKind.NOT_FOUND


@pytest.mark.slow
async def test_wrong_password_needs_its_owner(server: Dovecot, fetcher: Fetcher) -> None:
    with pytest.raises(VisitError) as caught:
        await Reading(server, fetcher, password="wrong").visit()
    assert caught.value.kind is FailureKind.UNAUTHORIZED
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("imaps://ann@mail.example.org/", "imaps://ann@mail.example.org/INBOX"),
        (
            "imaps://ann@example.org:secret@Mail.Example.org",
            "imaps://ann%40example.org@mail.example.org/INBOX",
        ),
        (
            "imaps://ann%40example.org:secret@Mail.Example.org",
            "imaps://ann%40example.org@mail.example.org/INBOX",
        ),
        ("imaps://ann@m.example:993/Lists/News", "imaps://ann@m.example/Lists/News"),
        ("imap://ann@m.example:1143/", "imap://ann@m.example:1143/INBOX"),
        (
            "imaps://ann@m.example?from=A@b.example,c.example",
            "imaps://ann@m.example/INBOX?from=A@b.example,c.example",
        ),
        ("imaps://m.example/", None),
        ("imaps://ann@m.example:99999/", None),
        ("imaps://", None),
    ],
)
def test_address_names_user_folder_and_senders(given: str, stored: str | None) -> None:
    if stored is None:
        with pytest.raises((InputError, ValueError)):
            read_new_source(given)
        return
    wanted = read_new_source(given)
    assert wanted.type.name == "mail.imap"
    assert wanted.url == stored
    assert "secret" not in wanted.url
    assert urlsplit(wanted.url).password is None
    assert wanted.config["user"]


def test_two_mailboxes_of_one_server_are_two_sources() -> None:
    one, two = (read_new_source(f"imaps://{user}@m.example/") for user in ("ann", "bob"))
    assert one.url != two.url


@pytest.mark.parametrize("sender", ['a"b', "a b@c.example", "x)\r\nA1 DELETE INBOX", "", "a,b@c.example"])
def test_senders_that_are_none_are_refused(sender: str) -> None:
    with pytest.raises(InputError):
        read_new_source("imaps://ann@m.example/", config={"senders": [sender]})


@pytest.mark.parametrize(
    ("sender", "wanted", "is_wanted"),
    [
        ("a@b.example", (), True),
        ("a@b.example", ("a@b.example",), True),
        ("a@b.example", ("c@b.example",), False),
        ("a@b.example", ("b.example",), True),
        ("a@b.example", ("@b.example",), True),
        ("a@x.b.example", ("b.example",), True),
        ("a@evil-b.example", ("b.example",), False),
        ("", ("b.example",), False),
    ],
)
def test_is_from_takes_addresses_and_domains(sender: str, wanted: tuple[str, ...], is_wanted: bool) -> None:
    assert is_from(sender, wanted) is is_wanted
