"""Feed addresses that follow from a page's address by a rule of the site, so that no request is needed.

Pure text work on well-known hosts. What needs a look at the page is in `discover`.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

Rule = Callable[[SplitResult, list[str]], list[str]]

_CHANNEL = re.compile(r"UC[A-Za-z0-9_-]{22}\Z")
_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")


def known_feeds(url: str) -> list[str]:
    """Feed addresses for a page on a site whose rule is known, best first; empty for all others."""
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").lower().removeprefix("www.")
    except ValueError:
        return []
    if parts.scheme.lower() not in ("http", "https") or not host:
        return []
    path = [segment for segment in parts.path.split("/") if segment]
    for suffix, rule in _RULES:
        if host == suffix or host.endswith("." + suffix):
            return rule(parts, path)
    if path and _is_mastodon(path):
        # Mastodon and its kin publish a profile's posts beside it, on whatever host.
        return [f"{parts.scheme}://{parts.netloc}/{path[0]}.rss"]
    return []


def _is_mastodon(path: list[str]) -> bool:
    return len(path) == 1 and path[0].startswith("@") and _NAME.match(path[0][1:]) is not None


_YOUTUBE: Final = "https://www.youtube.com/feeds/videos.xml"


def youtube_channel_feed(channel: str) -> list[str]:
    """The feed of a channel by its id."""
    return [f"{_YOUTUBE}?channel_id={channel}"] if _CHANNEL.match(channel) else []


def _youtube(parts: SplitResult, path: list[str]) -> list[str]:
    query = parse_qs(parts.query)
    if playlist := query.get("list"):
        return [f"{_YOUTUBE}?playlist_id={playlist[0]}"]
    if len(path) >= 2 and path[0] == "channel":
        return youtube_channel_feed(path[1])
    if len(path) >= 2 and path[0] == "user" and _NAME.match(path[1]):
        return [f"{_YOUTUBE}?user={path[1]}"]
    return []  # a handle such as /@name: the page itself tells


def _reddit(parts: SplitResult, path: list[str]) -> list[str]:
    if path and path[-1] in (".rss", ".json"):
        path = path[:-1]
    if not path:
        return ["https://www.reddit.com/.rss"]
    if path[0] in ("r", "user", "u", "domain") and len(path) >= 2:
        path = [("user" if path[0] == "u" else path[0]), *path[1:]]
        return [f"https://www.reddit.com/{'/'.join(path)}/.rss"]
    return []


def _github(parts: SplitResult, path: list[str]) -> list[str]:
    if (parts.hostname or "").lower() not in ("github.com", "www.github.com"):
        return []
    match path:
        case [owner] if _NAME.match(owner):
            return [f"https://github.com/{owner}.atom"]
        case [owner, repo, *rest]:
            base = f"https://github.com/{owner}/{repo.removesuffix('.git')}"
            match rest:
                case ["commits", branch, *_]:
                    return [f"{base}/commits/{branch}.atom"]
                case ["tags", *_]:
                    return [f"{base}/tags.atom"]
                case ["discussions", *_]:
                    return [f"{base}/discussions.atom"]
                case ["wiki", *_]:
                    return [f"{base}/wiki.atom"]
                case _:
                    return [f"{base}/releases.atom", f"{base}/commits.atom", f"{base}/tags.atom"]
        case _:
            return []


def _gitlab(parts: SplitResult, path: list[str]) -> list[str]:
    if len(path) < 2:
        return []
    project = "/".join(path[: path.index("-")] if "-" in path else path)
    return [f"https://gitlab.com/{project}/-/tags?format=atom", f"https://gitlab.com/{project}.atom"]


def _medium(parts: SplitResult, path: list[str]) -> list[str]:
    host = (parts.hostname or "").lower().removeprefix("www.")
    if host != "medium.com":  # name.medium.com
        return [f"https://{host}/feed"]
    if path and path[0] == "tag" and len(path) >= 2:
        return [f"https://medium.com/feed/tag/{path[1]}"]
    return [f"https://medium.com/feed/{path[0]}"] if path and path[0] != "feed" else []


def _on_host(suffix: str) -> Rule:
    """Sites whose every blog is a host of its own with the feed at one path."""

    def rule(parts: SplitResult, path: list[str]) -> list[str]:
        host = (parts.hostname or "").lower()
        return [f"https://{host}{suffix}"] if host.removeprefix("www.").count(".") >= 2 else []

    return rule


def _stack_exchange(parts: SplitResult, path: list[str]) -> list[str]:
    host = (parts.hostname or "").lower()
    match path:
        case ["questions", "tagged", tag, *_]:
            return [f"https://{host}/feeds/tag/{tag}"]
        case ["questions", number, *_] if number.isdigit():
            return [f"https://{host}/feeds/question/{number}"]
        case ["users", number, *_] if number.isdigit():
            return [f"https://{host}/feeds/user/{number}"]
        case _:
            return [f"https://{host}/feeds"]


def _bluesky(parts: SplitResult, path: list[str]) -> list[str]:
    if len(path) >= 2 and path[0] == "profile":
        return [f"https://bsky.app/profile/{path[1]}/rss"]
    return []


def _dev_to(parts: SplitResult, path: list[str]) -> list[str]:
    if not path:
        return ["https://dev.to/feed"]
    if path[0] == "t" and len(path) >= 2:
        return [f"https://dev.to/feed/tag/{path[1]}"]
    return [f"https://dev.to/feed/{path[0]}"]


def _pypi(parts: SplitResult, path: list[str]) -> list[str]:
    if len(path) >= 2 and path[0] == "project":
        return [f"https://pypi.org/rss/project/{path[1]}/releases.xml"]
    return ["https://pypi.org/rss/updates.xml", "https://pypi.org/rss/packages.xml"]


def _arxiv(parts: SplitResult, path: list[str]) -> list[str]:
    if len(path) >= 2 and path[0] == "list":
        return [f"https://rss.arxiv.org/rss/{path[1]}"]
    return []


def _hackernews(parts: SplitResult, path: list[str]) -> list[str]:
    return ["https://news.ycombinator.com/rss"]


def _lemmy(parts: SplitResult, path: list[str]) -> list[str]:
    host = (parts.hostname or "").lower()
    if len(path) >= 2 and path[0] in ("c", "u"):
        return [f"https://{host}/feeds/{path[0]}/{path[1]}.xml"]
    return []


def _vimeo(parts: SplitResult, path: list[str]) -> list[str]:
    if not path or path[0].isdigit():
        return []
    return [f"https://vimeo.com/{'/'.join(path[:2]) if path[0] == 'channels' else path[0]}/videos/rss"]


def _codeberg(parts: SplitResult, path: list[str]) -> list[str]:
    if len(path) >= 2:
        base = f"https://codeberg.org/{path[0]}/{path[1]}"
        return [f"{base}/releases.rss", f"{base}.rss"]
    return [f"https://codeberg.org/{path[0]}.rss"] if path else []


def _letterboxd(parts: SplitResult, path: list[str]) -> list[str]:
    return [f"https://letterboxd.com/{path[0]}/rss/"] if path and _NAME.match(path[0]) else []


_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("youtube.com", _youtube),
    ("youtu.be", _youtube),
    ("reddit.com", _reddit),
    ("github.com", _github),
    ("gitlab.com", _gitlab),
    ("medium.com", _medium),
    ("substack.com", _on_host("/feed")),
    ("wordpress.com", _on_host("/feed/")),
    ("blogspot.com", _on_host("/feeds/posts/default")),
    ("tumblr.com", _on_host("/rss")),
    ("bearblog.dev", _on_host("/feed/")),
    ("hashnode.dev", _on_host("/rss.xml")),
    ("livejournal.com", _on_host("/data/rss")),
    ("stackoverflow.com", _stack_exchange),
    ("stackexchange.com", _stack_exchange),
    ("serverfault.com", _stack_exchange),
    ("superuser.com", _stack_exchange),
    ("bsky.app", _bluesky),
    ("dev.to", _dev_to),
    ("pypi.org", _pypi),
    ("arxiv.org", _arxiv),
    ("news.ycombinator.com", _hackernews),
    ("lemmy.world", _lemmy),
    ("lemmy.ml", _lemmy),
    ("vimeo.com", _vimeo),
    ("codeberg.org", _codeberg),
    ("letterboxd.com", _letterboxd),
)
