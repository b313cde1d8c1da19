"""Signing in for the first time, and who is signed in, from the command line."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.command import Headwater


class Browser:
    """A browser that keeps cookies and follows nothing."""

    def __init__(self, address: str) -> None:
        self.address = urlsplit(address)
        self.cookies: SimpleCookie = SimpleCookie()

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        connection = HTTPConnection(str(self.address.hostname), self.address.port, timeout=60)
        cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in self.cookies.items())
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, body, {**headers, **({"Cookie": cookie} if cookie else {})})
            answer = connection.getresponse()
            for value in answer.headers.get_all("set-cookie", []):
                self.cookies.load(value)
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def sign_in(self, secret: str, path: str = "/login", **headers: str) -> int:
        _, page = self.ask("GET", path, **headers)
        found = re.search(r'name="form_token" value="([^"]+)"', page)
        assert found, page
        fields = urlencode({"form_token": found[1], "secret": secret, "next": "/"})
        return self.ask("POST", "/login", fields, **headers)[0]


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Iterator[Headwater]:
    yield Headwater(tmp_path, database_url)


@contextmanager
def serving(headwater: Headwater, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`serve` on a free port, and its address."""
    process = headwater.start("serve", HEADWATER_PORT="0", **environment)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[-1].replace("0.0.0.0", "127.0.0.1")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def link_in(line: str) -> str:
    found = re.search(r"http://localhost:\d+/login\?link=(\S+)", line)
    assert found, line
    return found[1]


def test_the_first_start_for_others_prints_a_link_and_no_key(headwater: Headwater) -> None:
    with serving(headwater, HEADWATER_HOST="0.0.0.0") as (process, address):
        assert process.stdout is not None
        link = link_in(process.stdout.readline())
        assert "headwater sign-in-link" in process.stdout.readline()
        stranger, owner = Browser(address), Browser(address)
        assert stranger.ask("GET", "/")[0] == 303
        assert stranger.ask("GET", "/api/sources")[0] == 401
        assert stranger.ask("GET", "/healthz")[0] == 200
        assert owner.sign_in(link, f"/login?link={link}") == 303
        assert owner.ask("GET", "/settings")[0] == 200
        assert stranger.sign_in(link) == 401, "it works once"
    assert headwater.json("key", "list") == []
    (session,) = headwater.json("session", "list")
    assert (session["signed_in_by"], session["scopes"]) == ("link", ["read", "refresh", "admin"])
    with serving(headwater, HEADWATER_HOST="0.0.0.0") as (process, address):
        assert Browser(address).ask("GET", "/")[0] == 303
        owner.address = urlsplit(address)
        assert owner.ask("GET", "/")[0] == 200, "a session outlives the process"
        assert headwater.ok("session", "end", str(session["id"])) == "ended 1 session\n"
        assert owner.ask("GET", "/")[0] == 303
        process.terminate()
        rest, _ = process.communicate(timeout=60)
        assert "login" not in rest, "no link while someone can sign in"


def test_on_this_machine_alone_no_link_is_needed(headwater: Headwater) -> None:
    with serving(headwater) as (process, address):
        assert Browser(address).ask("GET", "/settings")[0] == 200
        process.terminate()
        rest, _ = process.communicate(timeout=60)
    assert rest == ""
    assert headwater.json("key", "list") == []


@pytest.mark.parametrize("name", ["HEADWATER_ADMIN_PASSWORD", "HEADWATER_PASSWORD"])
def test_a_password_is_a_way_in_from_the_first_start(headwater: Headwater, name: str) -> None:
    environment = {"HEADWATER_HOST": "0.0.0.0", name: "correct horse"}
    with serving(headwater, **environment) as (process, address):
        browser = Browser(address)
        assert browser.ask("GET", "/")[0] == 303
        assert browser.sign_in("correct horse") == 303
        assert browser.ask("GET", "/settings")[0] == 200
        process.terminate()
        rest, _ = process.communicate(timeout=60)
    assert "link" not in rest


def test_sign_in_link_is_printed_alone_and_signs_in(headwater: Headwater) -> None:
    with serving(headwater, HEADWATER_HOST="0.0.0.0", HEADWATER_PUBLIC_URL="https://news.example/") as (
        _,
        address,
    ):
        code, out, err = headwater.run("sign-in-link", HEADWATER_PUBLIC_URL="https://news.example/")
        assert (code, out.count("\n")) == (0, 1)
        assert out.startswith("https://news.example/login?link=")
        assert "once" in err
        browser = Browser(address)
        assert browser.sign_in(out.strip().partition("=")[2]) == 303
    assert len(headwater.json("session", "list")) == 1
    assert headwater.ok("session", "end", "--all") == "ended 1 session\n"
    assert headwater.ok("session", "list") == "No one is signed in.\n"
    assert "there is no session 9" in headwater.refused("session", "end", "9")
    assert "--all" in headwater.refused("session", "end")
