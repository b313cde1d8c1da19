"""Run by a test in a process of its own: serves the flow as its document shows it.

python served_flow.py SITEMAP_URL
"""

import sys
from typing import Any

from headwater.sitemaps.flow import incremental_sitemap_to_rss_flow

INCREMENTAL_CONFIGS: dict[str, dict[str, Any]] = {
    "example": {
        "sitemap_url": sys.argv[1],
        "site_name": "example_blog",
        "enable_incremental": True,
        "channel_config": {
            "title": "Example Updates (Incremental)",
            "description": "Latest posts - incremental updates",
        },
        "incremental_config": {"max_unchanged_days": 30, "baseline_items": 10, "cleanup_interval_days": 7},
    }
}


def deploy_incremental_rss_feeds() -> None:
    for name, config in INCREMENTAL_CONFIGS.items():
        incremental_sitemap_to_rss_flow.serve(
            name=f"incremental-rss-{name}",
            cron="0 */2 * * *",
            parameters={**config, "max_items": 20, "fetch_titles": True},
        )


if __name__ == "__main__":
    deploy_incremental_rss_feeds()
