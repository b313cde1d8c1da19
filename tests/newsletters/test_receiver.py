"""Letters that a mail server hands over are stored before they are accepted, each once, and nothing else is taken."""

import asyncio
import smtplib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headwater.config import load_settings
from headwater.errors import SettingError
from headwater.model import Source, StoredItem
from headwater.newsletters.receiver import MOST_CONNECTIONS, Receiver, read_listening
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import get_source, remove_source, set_schedule_enabled
from headwater.store.core.database import Store
from headwater.store.reading.listing import newest_items, read_items
from headwater.store.reading.selection import Selection
from tests.dovecot import letter

NOW = 1_795_000_000.0


class Post:
    """A running receiver, and what a mail server does with it."""

    def __init__(self, store: Store, port: int, *, is_lmtp: bool) -> None:
        self.store = store
        self.port = port
        self._kind = smtplib.LMTP if is_lmtp else smtplib.SMTP

    @contextmanager
    def session(self) -> Iterator[smtplib.SMTP]:
        client = self._kind("127.0.0.1", self.port)
        try:
            yield client
        finally:
            client.close()

    def send(self, data: bytes, *to: str, sender: str = "bounces@garden.example") -> dict[str, Any]:
        with self.session() as client:
            return client.sendmail(sender, list(to or ("garden@news.example",)), data)

    def raw(self, *lines: bytes) -> bytes:
        """What the server says to these lines, sent as they are."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(b"".join(lines))
            connection.shutdown(socket.SHUT_WR)
            said = b""
            while chunk := connection.recv(65_536):
                said += chunk
        return said

    def items(self, source: Source) -> list[StoredItem]:
        with self.store.reading() as connection:
            listed = newest_items(connection, Selection(source_ids=(source.id,)), limit=1_000)
            return read_items(connection, [item.id for item in listed])


@contextmanager
def receiving(store: Store, listen: str = "lmtp://127.0.0.1:0", **settings: Any) -> Iterator[Post]:
    made = load_settings(
        environment={}, overrides={"mail_listen": listen, "mail_domain": "news.example", **settings}
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    receiver = Receiver(store, made, listen, lambda: NOW)
    asyncio.run_coroutine_threadsafe(receiver.__aenter__(), loop).result(10)
    try:
        yield Post(store, receiver.port, is_lmtp=receiver.is_lmtp)
    finally:
        asyncio.run_coroutine_threadsafe(receiver.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def inbox(store: Store, name: str = "garden", **config: Any) -> Source:
    with store.writing() as connection:
        return add_unvisited(connection, read_new_source(f"inbox:{name}", "mail.inbox", config), NOW)


@pytest.mark.parametrize("listen", ["lmtp://127.0.0.1:0", "smtp://127.0.0.1:0"])
def test_letter_is_stored_before_it_is_accepted(store: Store, listen: str) -> None:
    source = inbox(store)
    with receiving(store, listen) as post:
        post.send(letter(1))
        (item,) = post.items(source)
    assert (item.title, item.author) == ("Letter 1", "Garden Letters")
    with store.reading() as connection:
        assert get_source(connection, source.id).name == "Garden Letters"


def test_same_letter_again_changes_nothing(store: Store) -> None:
    source = inbox(store)
    with receiving(store) as post:
        post.send(letter(1))
        post.send(letter(1))
        (item,) = post.items(source)
    assert item.version == 1


def test_letter_to_two_sources_reaches_both(store: Store) -> None:
    one, two = inbox(store, "one"), inbox(store, "two")
    with receiving(store) as post:
        post.send(letter(1), "one@news.example", "TWO+mark@news.example")
        assert len(post.items(one)) == len(post.items(two)) == 1


@pytest.mark.parametrize("address", ["unknown@news.example", "garden@elsewhere.example", "garden"])
def test_unknown_address_is_refused(store: Store, address: str) -> None:
    inbox(store)
    with receiving(store) as post, pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        post.send(letter(1), address)
    assert caught.value.recipients[address][0] in (501, 550)


def test_letter_of_unwanted_sender_is_refused(store: Store) -> None:
    source = inbox(store, senders=["garden.example"])
    with receiving(store) as post:
        with pytest.raises(smtplib.SMTPDataError) as caught:
            post.send(letter(1, "Spam <spam@elsewhere.example>"))
        assert caught.value.smtp_code == 550
        post.send(letter(2))
        assert [item.title for item in post.items(source)] == ["Letter 2"]


def test_letter_for_paused_source_may_come_again(store: Store) -> None:
    source = inbox(store)
    with store.writing() as connection:
        set_schedule_enabled(connection, source.id, False, NOW)
    with receiving(store) as post, pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        post.send(letter(1))
    assert caught.value.recipients["garden@news.example"][0] == 450


def test_letter_for_removed_source_is_refused(store: Store) -> None:
    source = inbox(store)
    with store.writing() as connection:
        remove_source(connection, source.id, NOW)
    with receiving(store) as post, pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        post.send(letter(1))
    assert caught.value.recipients["garden@news.example"][0] == 550


def test_letter_too_large_is_refused(store: Store) -> None:
    source = inbox(store)
    with receiving(store, mail_max_megabytes=1) as post:
        with post.session() as client, pytest.raises(smtplib.SMTPResponseException) as caught:
            client.sendmail("a@b.example", ["garden@news.example"], b"x" * 1_500_000)
        assert caught.value.smtp_code == 552
        said = post.raw(
            b"LHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<garden@news.example>\r\nDATA\r\n",
            b"From: a@b.example\r\n\r\n" + b"y" * 1_500_000 + b"\r\n.\r\nNOOP\r\nQUIT\r\n",
        )
        assert said.splitlines()[-3:] == [
            b"552 5.3.4 the letter is too large",
            b"250 2.0.0 ok",
            b"221 2.0.0 bye",
        ]
        assert post.items(source) == []


def test_unfinished_letter_is_not_stored(store: Store) -> None:
    source = inbox(store)
    with receiving(store) as post:
        post.raw(
            b"LHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<garden@news.example>\r\nDATA\r\n",
            b"From: a@b.example\r\n\r\nx",
        )
        assert post.items(source) == []


@pytest.mark.parametrize("end", [b"\n.\n", b"\r\n.\n", b"\n.\r\n", b"\r.\r", b"\r\n.\r"])
def test_letter_cannot_hide_another(store: Store, end: bytes) -> None:
    """What other servers take for the end of a letter is none (SMTP smuggling)."""
    source = inbox(store)
    hidden = (
        b"MAIL FROM:<x@y.example>\r\nRCPT TO:<garden@news.example>\r\nDATA\r\nFrom: x@y.example\r\n\r\nhidden"
    )
    with receiving(store) as post:
        post.raw(
            b"LHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<garden@news.example>\r\nDATA\r\n",
            b"From: a@b.example\r\nMessage-ID: <one@b.example>\r\n\r\nx"
            + end
            + hidden
            + b"\r\n.\r\nQUIT\r\n",
        )
        (item,) = post.items(source)
    assert item.external_id == "<one@b.example>"


def test_lines_with_dots_are_kept(store: Store) -> None:
    source = inbox(store)
    with receiving(store) as post:
        post.send(b"From: a@b.example\r\n\r\n.first\r\n..second\r\n.\r\nlast")
        (item,) = post.items(source)
    assert item.content == "<p>.first<br>\n..second<br>\n.<br>\nlast</p>"


def test_empty_letter_is_answered(store: Store) -> None:
    inbox(store)
    with receiving(store) as post:
        said = post.raw(b"LHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<garden@news.example>\r\nDATA\r\n.\r\nQUIT\r\n")
    assert said.splitlines()[-2:] == [b"250 2.6.0 stored", b"221 2.0.0 bye"]


@pytest.mark.parametrize(
    "lines",
    [
        b"GET / HTTP/1.1\r\n" * 20,
        b"MAIL FROM:<a@b>\r\n" * 20,
        b"LHLO x\r\nRCPT TO:<garden@news.example>\r\n" * 20,
        b"LHLO x\r\nDATA\r\n" * 20,
        b"EHLO x\r\n" * 20,
        b"x" * 1_000_000 + b"\r\n",
        b"\x00\xff" * 5_000,
        b"LHLO x\r\nMAIL FROM:" + b"<" * 2_000 + b"\r\n",
    ],
)
def test_nonsense_is_refused_and_ends(store: Store, lines: bytes) -> None:
    inbox(store)
    with receiving(store) as post:
        said = post.raw(lines).splitlines()
        assert said[0] == b"220 headwater LMTP"
        assert any(line[:1] in b"45" for line in said[1:]) or len(said) == 1
        post.send(letter(1))


def test_many_connections_do_not_keep_others_out_for_long(store: Store) -> None:
    inbox(store)
    with receiving(store) as post:
        idle = [socket.create_connection(("127.0.0.1", post.port)) for _ in range(MOST_CONNECTIONS)]
        for each in idle:
            each.recv(100)
        with socket.create_connection(("127.0.0.1", post.port), timeout=10) as late:
            assert late.recv(100).startswith(b"421")
        for each in idle:
            each.close()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                post.send(letter(1))
                break
            except (smtplib.SMTPException, ConnectionError):
                time.sleep(0.05)
        else:
            pytest.fail("no letter was taken after the others had left")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "lmtp://x:99999", "2424"])
def test_wrong_address_to_listen_on_is_named(address: str) -> None:
    with pytest.raises(SettingError):
        read_listening(address)
