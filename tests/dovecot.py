"""A real IMAP server (Debian's dovecot) on loopback, with its own mailboxes, for as long as a test lasts."""

import email.utils
import grp
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from imaplib import IMAP4
from pathlib import Path

import pytest

PASSWORD = "swordfish"
CONFIGURATION = """
protocols = imap
listen = 127.0.0.1
base_dir = {directory}/run
state_dir = {directory}/state
log_path = {directory}/log
mail_location = maildir:{directory}/mail/%u
ssl = {ssl}
{certificate}
disable_plaintext_auth = no
default_login_user = {login_user}
default_internal_user = {internal_user}
default_internal_group = {group}
first_valid_uid = 1
first_valid_gid = 1
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={directory}/home/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {secure_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def letter(number: int = 1, sender: str = "Garden Letters <news@garden.example>", **headers: str) -> bytes:
    """A letter as programs write them."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = "reader@example.org"
    message["Subject"] = f"Letter {number}"
    message["Date"] = email.utils.formatdate(1_790_000_000 + 3600 * number)
    message["Message-ID"] = f"<letter-{number}@garden.example>"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(f"Text of letter {number}.")
    message.add_alternative(f"<p>Text of <b>letter {number}</b>.</p>", subtype="html")
    return message.as_bytes()


@dataclass
class Dovecot:
    directory: Path
    port: int
    secure_port: int
    user: str = "ann"  # whose mailbox is meant where none is named

    @contextmanager
    def session(self, user: str | None = None) -> Iterator[IMAP4]:
        client = IMAP4("127.0.0.1", self.port)
        client.login(user or self.user, PASSWORD)
        try:
            yield client
        finally:
            client.logout()

    def deliver(self, *letters: bytes, user: str | None = None, folder: str = "INBOX") -> None:
        with self.session(user) as client:
            if folder != "INBOX":
                client.create(folder)
            for each in letters:
                status, said = client.append(folder, "", None, each)
                assert status == "OK", said

    def flags(self, user: str | None = None, folder: str = "INBOX") -> list[bytes]:
        with self.session(user) as client:
            client.select(folder, readonly=True)
            _, found = client.fetch("1:*", "(FLAGS)")
        return [each for each in found if isinstance(each, bytes)]

    def renumber(self, user: str | None = None) -> None:
        """Give all letters new numbers, and the folder another UIDVALIDITY."""
        for path in (self.directory / "mail" / (user or self.user)).glob("dovecot*"):
            path.unlink()
        time.sleep(1.1)  # the new one is made of the time in seconds


@contextmanager
def dovecot(*, certificate: Path | None = None) -> Iterator[Dovecot]:
    """The server; as root its processes run as the users that Debian's package makes, who must reach its files."""
    with tempfile.TemporaryDirectory(prefix="headwater-dovecot-") as made:
        Path(made).chmod(0o755)
        with _running(Path(made), certificate) as server:
            yield server


@contextmanager
def _running(directory: Path, certificate: Path | None) -> Iterator[Dovecot]:
    program = shutil.which("dovecot") or shutil.which("dovecot", path="/usr/sbin")
    if program is None:
        pytest.fail("dovecot is not installed; this test needs it: apt-get install dovecot-imapd")
    port, secure_port = free_port(), free_port()
    configuration = directory / "dovecot.conf"
    for name in ("run", "state", "mail", "home"):
        (directory / name).mkdir()
    is_root = os.getuid() == 0
    owner = pwd.getpwuid(65_534) if is_root else pwd.getpwuid(os.getuid())
    for name in ("mail", "home"):
        os.chown(directory / name, owner.pw_uid, owner.pw_gid)
    names = f"ssl_cert = <{certificate}\nssl_key = <{certificate}" if certificate else ""
    configuration.write_text(
        CONFIGURATION.format(
            directory=directory,
            ssl="yes" if certificate else "no",
            certificate=names,
            login_user="dovenull" if is_root else owner.pw_name,
            internal_user="dovecot" if is_root else owner.pw_name,
            group="dovecot" if is_root else grp.getgrgid(os.getgid()).gr_name,
            uid=owner.pw_uid,
            gid=owner.pw_gid,
            password=PASSWORD,
            port=port,
            secure_port=secure_port,
        )
    )
    process = subprocess.Popen([program, "-F", "-c", configuration], stderr=subprocess.PIPE)
    try:
        _wait_until_open(process, port, directory)
        yield Dovecot(directory, port, secure_port)
    finally:
        process.terminate()
        process.wait(10)
        assert process.stderr is not None
        process.stderr.close()


def _wait_until_open(process: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
                if probe.recv(4) == b"* OK":
                    return
        except OSError:
            time.sleep(0.05)
    log = directory / "log"
    assert process.stderr is not None
    process.terminate()
    said = process.stderr.read().decode(errors="replace") + (log.read_text() if log.exists() else "")
    pytest.fail(f"dovecot did not start: {said}")
