"""Tests of the door to the network. They talk only to origins on loopback that they start themselves."""

from typing import Any

from headwater.fetch import Fetcher

USER_AGENT = "Headwater/test (+https://headwater.example/about)"


def door(**options: Any) -> Fetcher:
    """A Fetcher that may reach loopback and hurries."""
    settings: dict[str, Any] = {
        "user_agent": USER_AGENT,
        "allow": ["127.0.0.0/8", "::1"],
        "host_spacing_seconds": 0.0,
        "total_seconds": 5.0,
        "max_bytes": 1_000_000,
    }
    return Fetcher(**(settings | options))
