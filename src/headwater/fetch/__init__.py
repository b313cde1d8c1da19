"""The only door to the network. `Fetcher` is loaded on first use, because not every command goes through it."""

from typing import TYPE_CHECKING, Any

from headwater.fetch.message import Auth, BasicAuth, BearerAuth, Hop, Request, Response

if TYPE_CHECKING:
    from headwater.fetch.client import Fetcher

__all__ = ["Auth", "BasicAuth", "BearerAuth", "Fetcher", "Hop", "Request", "Response"]


def __getattr__(name: str) -> Any:
    if name == "Fetcher":
        from headwater.fetch.client import Fetcher

        return Fetcher
    raise AttributeError(name)
