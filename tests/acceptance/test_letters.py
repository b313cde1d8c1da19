"""A thousand letters of many shapes: none lost, none doubled, nothing in them that runs, over kills at any moment."""

import json
import shutil
import signal
import smtplib
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from random import Random

import pytest

from headwater.formats.html import sanitize_html
from headwater.model import StoredItem
from headwater.store.core.database import Store
from headwater.store.reading.listing import newest_items, read_items
from headwater.store.reading.selection import Selection
from tests.command import Headwater
from tests.dovecot import PASSWORD, dovecot, free_port
from tests.letter_shapes import make_letter
from tests.origin import Origin

pytestmark = pytest.mark.slow

LETTERS = 1_000
KILLS = 8


def stored(url: str) -> list[StoredItem]:
    with Store.open(url) as store, store.reading() as connection:
        listed = newest_items(connection, Selection(), limit=2 * LETTERS)
        return read_items(connection, [item.id for item in listed])


def check_letters(url: str, count: int) -> None:
    """Each letter is there once, as it was sent, and nothing in it runs or counts."""
    items = stored(url)
    assert sorted(item.external_id for item in items) == sorted(
        f"<letter-{number}@garden.example>" for number in range(count)
    )
    for item in items:
        number = int(item.external_id[8:].partition("@")[0])
        assert str(number) in item.title
        assert item.version == 1
        shown = sanitize_html(item.content or "").lower()
        assert item.content
        for word in ("<script", "onerror", "javascript:", "<iframe", "count.example"):
            assert word not in shown


class Serving:
    """`headwater serve`, killed and started again."""

    def __init__(self, headwater: Headwater, port: int) -> None:
        self._headwater = headwater
        self._environment = {
            "HEADWATER_MAIL_LISTEN": f"lmtp://127.0.0.1:{port}",
            "HEADWATER_MAIL_DOMAIN": "news.example",
            "HEADWATER_PORT": "0",
            "HEADWATER_PROCESSES": "0",
        }
        self._process: subprocess.Popen[str] | None = None
        self._port = port

    def start(self) -> None:
        self._process = self._headwater.start("serve", **self._environment)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                smtplib.LMTP("127.0.0.1", self._port).close()
                return
            except OSError:
                time.sleep(0.05)
        pytest.fail("the receiver did not start")

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=60)


@contextmanager
def mail_server(port: int, letters: int) -> Iterator[threading.Thread]:
    """Something that hands letters over and keeps each until it is told that it is safe, as mail servers do."""

    def send() -> None:
        for number in range(letters):
            while not _hand_over(port, make_letter(number)):
                time.sleep(0.05)

    thread = threading.Thread(target=send)
    thread.start()
    yield thread
    thread.join(240)
    assert not thread.is_alive()


def _hand_over(port: int, letter: bytes) -> bool:
    try:
        with smtplib.LMTP("127.0.0.1", port, timeout=30) as client:
            client.sendmail("bounces@garden.example", ["garden@news.example"], letter)
    except (OSError, smtplib.SMTPException):
        return False
    return True


def test_letters_handed_over_survive_kills(tmp_path: Path, database_url: str) -> None:
    headwater = Headwater(tmp_path, database_url)
    headwater.ok("source", "add", "inbox:garden")
    port = free_port()
    serving, rng = Serving(headwater, port), Random(7)
    serving.start()
    with mail_server(port, LETTERS) as sending:
        for _ in range(KILLS):
            time.sleep(rng.uniform(0.2, 2.0))
            if not sending.is_alive():
                break
            serving.kill()
            serving.start()
    serving.stop()
    check_letters(database_url, LETTERS)


def test_letters_in_a_mailbox_survive_kills(tmp_path: Path, database_url: str) -> None:
    rng = Random(11)
    with dovecot() as server:
        headwater = Headwater(tmp_path, database_url)
        url = f"imap://ann@127.0.0.1:{server.port}/INBOX"
        headwater.ok("source", "add", url, "--config", f"password={PASSWORD}")
        server.deliver(*(make_letter(number) for number in range(LETTERS)))
        for _ in range(KILLS):
            process = headwater.start("collect", "--source", "1")
            time.sleep(rng.uniform(0.3, 3.0))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            _forget_leases(database_url)
        for _ in range(4):
            headwater.ok("collect", "--source", "1")
        assert all(b"Seen" not in flags for flags in server.flags())
    check_letters(database_url, LETTERS)


def _forget_leases(url: str) -> None:
    """What a killed collector held is free again, as it is once its lease has expired."""
    with Store.open(url) as store, store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM source_leases")


MAIN = """
compatibility_level = 3.6
queue_directory = {directory}/queue
data_directory = {directory}/data
maillog_file = {directory}/log
maillog_file_prefixes = {directory}
myhostname = mx.example
mydestination =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
relay_domains = news.example
transport_maps = inline:{{ news.example=lmtp:inet:127.0.0.1:{behind} }}
minimal_backoff_time = 2s
maximal_backoff_time = 4s
queue_run_delay = 2s
smtputf8_enable = no
"""
MASTER = """
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
lmtp unix - - n - - lmtp
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
"""


@contextmanager
def postfix(directory: Path, port: int, behind: int) -> Iterator[None]:
    """A real Postfix that takes letters at `port` and hands those for news.example over."""
    program = shutil.which("postfix") or shutil.which("postfix", path="/usr/sbin")
    if program is None:
        pytest.fail("postfix is not installed; this test needs it: apt-get install postfix")
    for name in ("queue", "data", "etc"):
        (directory / name).mkdir(parents=True)
    directory.chmod(0o755)
    shutil.chown(directory / "data", "postfix")
    values = {"directory": directory, "port": port, "behind": behind}
    (directory / "etc" / "main.cf").write_text(MAIN.format(**values))
    (directory / "etc" / "master.cf").write_text(MASTER.format(**values))
    command = [program, "-c", str(directory / "etc")]
    started = subprocess.run([*command, "start"], capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    try:
        yield
    finally:
        subprocess.run([*command, "stop"], capture_output=True)


def test_real_mail_server_hands_letters_over(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    import tempfile

    database_url = f"sqlite:///{tmp_path}/headwater.db"
    headwater = Headwater(tmp_path, database_url)
    headwater.ok("source", "add", "inbox:garden")
    headwater.ok("source", "add", "inbox:choosy", "--config", 'senders=["other.example"]')
    port, behind = free_port(), free_port()
    serving = Serving(headwater, behind)
    with tempfile.TemporaryDirectory(prefix="headwater-postfix-") as made, postfix(Path(made), port, behind):
        with smtplib.SMTP(
            "127.0.0.1", port, timeout=30
        ) as client:  # before Headwater runs: Postfix keeps them
            for number in range(50):
                to = ["garden@news.example", "choosy@news.example"]
                client.sendmail("bounces@garden.example", to, make_letter(number))
        serving.start()
        end = time.monotonic() + 90
        while len(stored(database_url)) < 50 and time.monotonic() < end:
            time.sleep(0.3)
        serving.stop()
    check_letters(database_url, 50)
    listed = json.loads(headwater.ok("source", "list", "--json"))
    assert {source["url"] for source in listed} == {"inbox://garden", "inbox://choosy"}


def _with_attachment(number: int, size: int) -> bytes:
    message = EmailMessage()
    message["From"] = "Garden <news@garden.example>"
    message["Subject"] = f"Letter {number}"
    message["Message-ID"] = f"<letter-{number}@garden.example>"
    message.set_content("The picture is attached.")
    message.add_attachment(b"x" * size, maintype="image", subtype="tiff", filename="garden.tiff")
    return message.as_bytes()


def _deep(levels: int) -> bytes:
    """A letter in a letter in a letter."""
    parts = "".join(
        f'Content-Type: multipart/mixed; boundary="b{level}"\r\n\r\n--b{level}\r\n' for level in range(levels)
    )
    head = "From: news@garden.example\r\nSubject: Deep\r\nMessage-ID: <deep@garden.example>\r\n"
    return (head + parts + "Content-Type: text/plain\r\n\r\nEnd").encode()


def test_mail_bomb_is_refused_while_letters_and_visits_go_on(tmp_path: Path, origin: Origin) -> None:
    database_url = f"sqlite:///{tmp_path}/headwater.db"
    headwater = Headwater(tmp_path, database_url)
    feed = origin.route("/feed", body="<rss><channel><item><guid>1</guid></item></channel></rss>")
    headwater.ok("source", "add", feed, "--interval", "0.02", "--policy", "interval")
    headwater.ok("source", "add", "inbox:garden")
    port = free_port()
    headwater.environment |= {"HEADWATER_MIN_INTERVAL_SECONDS": "1", "COLLECTOR_TICK": "1"}
    serving = Serving(headwater, port)
    serving.start()
    answers: list[int] = []

    def bomb(number: int) -> None:
        for size in (45_000_000, 60_000_000):
            try:
                with smtplib.LMTP("127.0.0.1", port, timeout=60) as client:
                    letter = _with_attachment(900 + number, size)
                    client.sendmail("bounces@garden.example", ["garden@news.example"], letter)
                    answers.append(250)
            except smtplib.SMTPResponseException as error:
                answers.append(error.smtp_code)
            except smtplib.SMTPRecipientsRefused as error:
                answers.extend(code for code, _ in error.recipients.values())
            except OSError:
                answers.append(0)  # cut off

    before = len(origin.requests)
    bombers = [threading.Thread(target=bomb, args=(number,)) for number in range(6)]
    for each in bombers:
        each.start()
    _hand_over(port, _deep(3_000))
    _hand_over(port, b"X-Bomb: x\r\n" * 200_000 + make_letter(800))
    for number in range(20):
        assert _hand_over(port, make_letter(number)), "an honest letter is taken meanwhile"
    assert _hand_over(port, _with_attachment(20, 20_000_000)), "20 MB attached is not a bomb"
    for each in bombers:
        each.join(120)
    # A server that refuses by size says so at MAIL FROM (552), or cuts off what goes on all the same.
    assert len(answers) == 12
    assert 250 not in answers, answers
    end = time.monotonic() + 60
    while len(origin.requests) < before + 2 and time.monotonic() < end:
        time.sleep(0.2)
    assert len(origin.requests) >= before + 2, "collecting goes on"
    serving.stop()
    ids = {item.external_id for item in stored(database_url) if item.source_name != "127.0.0.1"}
    assert {f"<letter-{number}@garden.example>" for number in range(21)} <= ids
    assert not any(f"<letter-{900 + number}@garden.example>" in ids for number in range(6))
