"""A WebSub hub on loopback: takes subscriptions, asks back whether they are meant, and pushes with a signature."""

import hmac
import threading
import urllib.error
import urllib.request
from typing import Self
from urllib.parse import parse_qs, urlencode

from tests.origin import Answer, Origin, Received

CHALLENGE = "say this again, <b>hub</b>"


class Hub:
    """`asked` holds every request for a subscription as its fields; `verified` what callbacks answered."""

    def __init__(self, lease_seconds: int = 1_000, status: int = 202, verifies: bool = True) -> None:
        self.lease_seconds = lease_seconds
        self.status = status
        self.verifies = verifies
        self.asked: list[dict[str, str]] = []
        self.verified: list[tuple[int, str]] = []
        self.changed = threading.Condition()
        self._origin = Origin()

    def __enter__(self) -> Self:
        self._origin.__enter__()
        self._origin.route("/hub", self._take)
        return self

    def __exit__(self, *exc: object) -> None:
        self._origin.close()

    @property
    def url(self) -> str:
        return self._origin.url("/hub")

    def feed(self, topic: str, *numbers: int) -> bytes:
        items = "".join(
            f"<item><title>Post {n}</title><guid>{n}</guid><link>http://one.example/{n}</link></item>"
            for n in numbers
        )
        links = f'<atom:link rel="hub" href="{self.url}"/><atom:link rel="self" href="{topic}"/>'
        return (
            '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>One</title>'
            f"{links}{items}</channel></rss>"
        ).encode()

    def wait_until_verified(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.verified) >= count, 20)

    def push(self, body: bytes, *, method: str = "sha256", secret: str | None = None) -> int:
        """Deliver to the last subscriber; the status of the answer."""
        fields = self.asked[-1]
        signature = hmac.new((secret or fields["hub.secret"]).encode(), body, method).hexdigest()
        headers = {"Content-Type": "application/rss+xml", "X-Hub-Signature": f"{method}={signature}"}
        return _call(urllib.request.Request(fields["hub.callback"], data=body, headers=headers))[0]

    def _take(self, request: Received) -> Answer:
        fields = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        self.asked.append(fields)
        if 200 <= self.status < 300 and self.verifies:
            threading.Thread(target=self._verify, args=(fields,), daemon=True).start()
        return Answer(status=self.status)

    def _verify(self, fields: dict[str, str]) -> None:
        query = {
            "hub.mode": fields["hub.mode"],
            "hub.topic": fields["hub.topic"],
            "hub.challenge": CHALLENGE,
            "hub.lease_seconds": str(self.lease_seconds),
        }
        answer = _call(urllib.request.Request(f"{fields['hub.callback']}?{urlencode(query)}"))
        with self.changed:
            self.verified.append(answer)
            self.changed.notify_all()


def _call(request: urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
