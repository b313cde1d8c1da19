"""A page as a real browser shows it, once its scripts have run: the system's Chromium, driven by playwright.

The browser runs in a child process, and every connection it makes goes through the guarded proxy: pages, scripts, and
what they ask for, on this machine and in this network too. It keeps nothing from one page to the next.
"""

import asyncio
import contextlib
import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from headwater.errors import PassingStepError, StepError
from headwater.processes.pool import ChildPool
from headwater.services.requests import ServiceContext, fetcher_of, raise_as_step_error

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MOST_BYTES = 60_000_000  # of all that a page makes the browser fetch
_MOST_CHARACTERS = 5_000_000  # of the page
_QUIET_SECONDS = 8.0  # in which a page may go on to fetch after it has loaded
_OPTIONS = (
    "--proxy-bypass-list=<-loopback>",  # by default what is on this machine is reached without the proxy
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--mute-audio",
)
_children = ChildPool(__name__, tasks_per_child=20, most_idle=1)


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page after its scripts have run."""

    url: str
    status: int
    html: str


def find_browser() -> str | None:
    """The system's Chromium."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def is_installed() -> bool:
    return find_spec("playwright") is not None and find_browser() is not None


async def show_page(outside: ServiceContext, url: str, seconds: float) -> ShownPage:
    """Open a page and wait until it is quiet, so long at most."""
    if not url.lower().startswith(
        ("http://", "https://")
    ):  # files are read by the browser itself, past the proxy
        raise StepError("{url}: only http and https addresses are fetched.", url=url)
    async with fetcher_of(outside).open_to_child(max_bytes=_MOST_BYTES) as proxy:
        task = {"url": url, "proxy": proxy.url, "seconds": seconds, "program": find_browser()}
        try:
            async with asyncio.timeout(seconds + 30.0):
                shown = await _children.call(task)
        except TimeoutError:
            raise PassingStepError(
                "{url}: the browser did not answer within {seconds:g} s", url=url, seconds=seconds
            ) from None
        except StepError:
            if proxy.refusal is not None:
                raise_as_step_error(proxy.refusal)
            raise
    return ShownPage(**shown)


_kept: dict[str, Any] = {}  # in a child: playwright, and the browser it has started


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Show a page. Blocking, in a separate process."""
    from playwright.sync_api import Error

    context = _open_context(task)
    try:
        page = context.new_page()
        page.set_default_timeout(task["seconds"] * 1000)
        response = page.goto(task["url"], wait_until="load")
        with contextlib.suppress(Error):  # some pages never stop
            page.wait_for_load_state("networkidle", timeout=_QUIET_SECONDS * 1000)
        html = page.content()
    except Error as error:
        problem = str(error).splitlines()[0].removeprefix("Page.goto: ")[:200]
        raise PassingStepError(
            "{url}: the browser could not show it: {problem}", url=task["url"], problem=problem
        ) from None
    finally:
        with contextlib.suppress(Error):  # the browser has crashed
            context.close()
    return {"url": page.url, "status": response.status if response else 0, "html": html[:_MOST_CHARACTERS]}


def _open_context(task: dict[str, Any]) -> Any:
    """A fresh profile of the browser, which is started if it has not been yet, or if a page has brought it down."""
    from playwright.sync_api import Error, sync_playwright

    if not _kept:
        _kept["driver"] = sync_playwright().start()
        _kept["browser"] = _launch(task["program"])
    scheme, _, rest = task["proxy"].partition("://")
    secret, _, place = rest.rpartition("@")
    user, _, password = secret.partition(":")
    options = {
        "proxy": {"server": f"{scheme}://{place}", "username": user, "password": password},
        "accept_downloads": False,
        "service_workers": "block",
    }
    try:
        return _kept["browser"].new_context(**options)
    except Error:
        _kept["browser"] = _launch(task["program"])
        return _kept["browser"].new_context(**options)


def _launch(program: str) -> Any:
    options = [*_OPTIONS, "--no-sandbox"] if os.geteuid() == 0 else list(_OPTIONS)
    return _kept["driver"].chromium.launch(executable_path=program, args=options, headless=True)
