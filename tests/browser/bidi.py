"""Firefox as a person has it, by the protocol that it speaks itself (WebDriver BiDi): no driver is needed."""

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

FIREFOX = which("firefox-esr") or which("firefox")
WAIT_SECONDS = 20.0
# What Firefox says of a request that was under way when its page was left.
LEFT = re.compile(
    "NetworkError when attempting to fetch resource|A ServiceWorker intercepted the request and encountered an"
)
KEYS = {"Enter": "\ue007", "Escape": "\ue00c"}


class Tab:
    """A page in Firefox. What scripts complain of is in `complaints`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self._context = self.ask("browsingContext.create", type="tab")["context"]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            said = json.loads(self._connection.recv(timeout=60))
            if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
                text = str(said["params"]["text"])
                self.complaints += [] if LEFT.search(text) else [text]
            if said.get("id") == number:
                assert said["type"] == "success", said
                return dict(said["result"])

    def size(self, width: int, height: int) -> None:
        self.ask(
            "browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height}
        )

    def goto(self, url: str) -> None:
        self.ask("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """What an expression gives, by way of JSON."""
        said = self.ask(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression}) ?? null))()",
            target={"context": self._context},
            awaitPromise=True,
        )
        assert said["type"] == "success", said
        return json.loads(said["result"]["value"])

    def wait_for(self, expression: str) -> None:
        """Until an expression is true, on whatever page is shown by then."""
        self._try(lambda: self.evaluate(f"Boolean({expression})"), expression)

    def _try(self, holds: Callable[[], bool], told: str) -> None:
        for _ in range(int(WAIT_SECONDS / 0.2)):
            try:
                if holds():
                    return
            except AssertionError:  # the page was just changing
                pass
            self.evaluate_pause()
        raise AssertionError(f"never true: {told}")

    def evaluate_pause(self) -> None:
        self.ask(
            "input.performActions",
            context=self._context,
            actions=[{"type": "none", "id": "wait", "actions": [{"type": "pause", "duration": 200}]}],
        )

    def press(self, *keys: str) -> None:
        actions = [
            {"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")
        ]
        self.ask(
            "input.performActions",
            context=self._context,
            actions=[{"type": "key", "id": "keys", "actions": actions}],
        )

    def click(self, selector: str) -> None:
        """Press the first visible element of a selector with the mouse."""
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find((each) => each.checkVisibility())"
        )
        self.wait_for(found)
        x, y = self.evaluate(
            f"(() => {{ const each = {found}; each.scrollIntoView({{ block: 'center' }});"
            " const box = each.getBoundingClientRect();"
            " return [Math.round(box.x + Math.min(box.width, 60) / 2), Math.round(box.y + box.height / 2)]; })()"
        )
        actions = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self.ask(
            "input.performActions",
            context=self._context,
            actions=[{"type": "pointer", "id": "mouse", "actions": actions}],
        )

    def type(self, selector: str, text: str) -> None:
        self.click(selector)
        self.press(*text)


@contextmanager
def firefox(profile: Path) -> Iterator[Tab]:
    """A tab of a Firefox without a window."""
    assert FIREFOX is not None
    (profile / "user.js").write_text(
        'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
        'user_pref("app.update.enabled", false);\nuser_pref("browser.aboutwelcome.enabled", false);\n'
        'user_pref("network.captive-portal-service.enabled", false);\n'
        'user_pref("network.connectivity-service.enabled", false);\n'
        'user_pref("intl.accept_languages", "en");\n'
    )
    process = subprocess.Popen(
        [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "WebDriver BiDi listening on" in line)
        address = re.findall(r"ws://\S+", line)[0]
        with connect(f"{address}/session", max_size=None, open_timeout=30) as connection:
            yield Tab(connection)
    finally:
        process.terminate()
        process.communicate(timeout=30)  # which also closes the pipe
