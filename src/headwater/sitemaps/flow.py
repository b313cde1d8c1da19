"""The same job as a Prefect flow (`pip install headwater[prefect]`): scheduled, retried, watched by Prefect.

incremental_sitemap_to_rss_flow.serve(name="incremental-rss", cron="0 */2 * * *", parameters={…})
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from prefect import flow, task
from prefect.logging import get_run_logger

from headwater.collectors.sitemap_survey import Wishes
from headwater.config import load_settings
from headwater.errors import InputError
from headwater.fetch.client import make_fetcher
from headwater.sitemaps.feed import Channel, read_format
from headwater.sitemaps.run import Order, Outcome, make_feed
from headwater.sitemaps.state import IncrementalStateManager

RETRIES: Final = 2
RETRY_SECONDS: Final = 30
_CHANNEL: Final = frozenset(("title", "description", "link", "language", "self_link"))
_INCREMENTAL: Final[Mapping[str, str]] = {
    "baseline_items": "baseline_items",
    "max_unchanged_days": "days_to_keep",
    "cleanup_interval_days": "cleanup_interval_days",
    "mode": "mode",
    "include": "include",
    "exclude": "exclude",
}


@task(name="Sitemap to RSS", retries=RETRIES, retry_delay_seconds=RETRY_SECONDS)
async def incremental_fetch_with_fallback(
    order: Order, state_path: str, output_path: str, format: str
) -> Outcome:
    """One run. A damaged state is set aside and everything read again; a failing site gets another try."""
    with IncrementalStateManager(state_path) as manager:
        async with make_fetcher(load_settings()) as fetcher:
            return await make_feed(order, manager, fetcher, output=Path(output_path), format=format)


@flow(name="Incremental Sitemap to RSS")
async def incremental_sitemap_to_rss_flow(
    sitemap_url: str,
    site_name: str,
    channel_config: dict[str, Any],
    enable_incremental: bool = True,
    max_items: int = 50,
    fetch_titles: bool = True,
    incremental_config: dict[str, Any] | None = None,
    output_path: str | None = None,
    state_path: str = "./rss_states",
    format: str | None = None,
) -> dict[str, Any]:
    """Make or update the feed of a site from its sitemaps.

    The feed is written to `output_path` (./rss_feeds/SITE_NAME.xml); what was found comes back, with the document.
    `state_path` is a directory, or the address of a database that several machines share.
    """
    output = Path(output_path or f"./rss_feeds/{site_name}.xml")
    output.parent.mkdir(parents=True, exist_ok=True)
    order = Order(
        url=sitemap_url,
        site_name=site_name,
        wishes=_wishes(incremental_config or {}),
        channel=_channel(channel_config),
        max_items=max_items,
        fetch_titles=fetch_titles,
        incremental=enable_incremental,
    )
    outcome = await incremental_fetch_with_fallback(
        order, state_path, str(output), read_format(output, format)
    )
    get_run_logger().info(
        "%s: %s new, %s modified of %s addresses (%s, %s requests)",
        site_name,
        len(outcome.new_urls),
        len(outcome.modified_urls),
        outcome.total_urls,
        outcome.how,
        outcome.requests,
    )
    return {
        "site_name": site_name,
        "how": outcome.how,
        "new_urls": outcome.new_urls,
        "modified_urls": outcome.modified_urls,
        "total_urls": outcome.total_urls,
        "failures": outcome.failures,
        "output_path": str(output),
        "rss": outcome.document.decode(),
    }


def _channel(config: Mapping[str, Any]) -> Channel:
    _refuse_unknown("channel_config", config, _CHANNEL)
    return Channel(**config)


def _wishes(config: Mapping[str, Any]) -> Wishes:
    _refuse_unknown("incremental_config", config, _INCREMENTAL)
    if config.get("mode", "new") not in ("new", "new+modified", "smart"):
        raise InputError("there is no mode {mode}; choose new, new+modified or smart", mode=config["mode"])
    values: dict[str, Any] = {_INCREMENTAL[key]: value for key, value in config.items()}
    for key in ("include", "exclude"):
        values[key] = tuple(values.get(key, ()))
    return Wishes(**values)


def _refuse_unknown(name: str, config: Mapping[str, Any], known: Any) -> None:
    for key in config:
        if key not in known:
            raise InputError(
                "{name}: there is no key {key}; it takes {known}",
                name=name,
                key=key,
                known=", ".join(sorted(known)),
            )
