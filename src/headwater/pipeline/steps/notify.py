"""Telling chat services through apprise, in a child process that can reach the network only through the guard.

apprise speaks to its services over HTTP by a library that takes our proxy. Any other connection the child tries to
make is refused, so services that speak something else (mqtt, mailto, syslog …) do not work here.
"""

import os
import socket
from typing import Any

from headwater.pipeline.steps.base import PassingStepError, StepError
from headwater.pipeline.steps.children import ChildPool

children = ChildPool(__name__, tasks_per_child=100)

_allowed_port = 0
_connect = socket.socket.connect


def _connect_to_proxy_only(self: socket.socket, address: Any) -> None:
    if not (isinstance(address, tuple) and address[:2] == ("127.0.0.1", _allowed_port)):
        raise OSError("connections other than through the proxy are refused")
    _connect(self, address)


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Send one notification to every service. Blocking, in a process of its own."""
    global _allowed_port  # noqa: PLW0603 - one task at a time, each with a proxy of its own
    os.environ.update(task["environment"])
    _allowed_port = task["proxy_port"]
    socket.socket.connect = _connect_to_proxy_only  # type: ignore[method-assign, assignment]
    import apprise

    services = apprise.Apprise()
    for number, url in enumerate(task["urls"], start=1):
        if not services.add(url):
            raise StepError("apprise_urls: number {number} is no address that apprise knows", number=number)
    if not services.notify(title=task["title"], body=task["body"], body_format=apprise.NotifyFormat.TEXT):
        raise PassingStepError("apprise could not deliver the message to every service")
    return {"services": len(services)}
