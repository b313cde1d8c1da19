"""Telling chat services through apprise, in a child process that can reach the network only through the guard.

apprise speaks to its services over HTTP by a library that takes our proxy. Any other connection or datagram that the
child tries to send is refused, and so are the services that would need one (mqtt, mailto, rsyslog …) or that speak to
this machine itself (syslog, dbus …). Redirects are not followed: what is sent to one service is for it alone.
"""

import os
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from headwater.errors import PassingStepError, StepError
from headwater.processes.pool import ChildPool

children = ChildPool(__name__, tasks_per_child=100)

NOT_OVER_HTTP = frozenset(
    {
        *("aprs", "growl", "irc", "ircs", "mailto", "mailtos", "mqtt", "mqtts", "rsyslog", "smpp", "smpps"),
        *("xmpp", "xmpps"),
        # on this machine
        *("blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"),
    }
)
_allowed_port = 0
_GUARDED = ("connect", "connect_ex", "sendto", "sendmsg")  # every way by which a socket is told an address
_originals: dict[str, Callable[..., Any]] = {name: getattr(socket.socket, name) for name in _GUARDED}


def _find_address(name: str, arguments: tuple[Any, ...]) -> Any:
    """The address among a call's arguments; None for a message to where the socket is connected already."""
    if name == "sendmsg":
        return arguments[3] if len(arguments) > 3 else None
    return arguments[-1]


def _guarded(name: str) -> Callable[..., Any]:
    def call(self: socket.socket, *arguments: Any) -> Any:
        address = _find_address(name, arguments)
        if address is not None and not (
            isinstance(address, tuple) and address[:2] == ("127.0.0.1", _allowed_port)
        ):
            raise OSError("connections other than through the proxy are refused")
        return _originals[name](self, *arguments)

    return call


def _close_other_ways() -> None:
    for name in _GUARDED:
        setattr(socket.socket, name, _guarded(name))
    from requests import Session

    Session.get_redirect_target = lambda self, resp: None  # type: ignore[method-assign]


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Send one notification to every service. Blocking, in a separate process."""
    global _allowed_port  # noqa: PLW0603 - one task at a time, each with its own proxy
    os.environ.update(task["environment"])
    _allowed_port = task["proxy_port"]
    import apprise

    _close_other_ways()
    services = apprise.Apprise()
    for number, url in enumerate(task["urls"], start=1):
        scheme = urlsplit(url).scheme.lower()
        if scheme in NOT_OVER_HTTP:
            raise StepError(
                "apprise_urls: number {number} is a service ({scheme}) that is not reached over HTTP; only services"
                " that are can be used here",
                number=number,
                scheme=scheme,
            )
        if not services.add(url):
            raise StepError(
                "apprise_urls: number {number} is not an address that apprise knows", number=number
            )
    if not services.notify(title=task["title"], body=task["body"], body_format=apprise.NotifyFormat.TEXT):
        raise PassingStepError("apprise could not deliver the message to every service")
    return {"services": len(services)}
