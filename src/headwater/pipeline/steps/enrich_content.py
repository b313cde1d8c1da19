"""`enrich_content`: the full text of an article, with what its page says of itself.

    the feed's own text → its page, by trafilatura → the page in a real browser, where it needs scripts

The first level that gives an article is taken. A page that is a block page, a consent wall, a paywall or made by
scripts alone is named as such. The stored item keeps what its source delivered; the full text is its result.
"""

import base64
from typing import Any, Literal
from urllib.parse import urljoin

from pydantic import Field

from headwater.errors import FailureKind, FetchError, StepError, Text
from headwater.fetch.message import Request
from headwater.formats.fingerprint import fingerprint
from headwater.formats.html import sanitize_html
from headwater.formats.links import resolve_html
from headwater.formats.pages.obstacles import Obstacle, find_obstacle, has_paywall
from headwater.markup import paragraphs_of
from headwater.model import Result
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepResult
from headwater.processes.pool import ChildPool
from headwater.services import browser
from headwater.services.requests import fetcher_of, raise_as_step_error

Level = Literal["feed", "page", "browser"]
# trafilatura keeps caches that only grow.
_children = ChildPool(__name__, tasks_per_child=200)
_KINDS = ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml")
_REFUSED = (FailureKind.FORBIDDEN, FailureKind.RATE_LIMITED, FailureKind.UNAUTHORIZED)
_CUT_SIGNS = ("…", "...", "[…]", "[...]", "read more", "continue reading", "阅读全文", "查看全文")
_NAMES: dict[Obstacle, Text] = {
    "block": Text("it is a block page: the site keeps programs out"),
    "consent": Text("it is a consent wall: the site wants cookies to be accepted first"),
    "paywall": Text("it is behind a paywall"),
    "script": Text("it is made by scripts alone, which only a browser runs"),
}


class EnrichConfig(StepConfig):
    levels: list[Level] = Field(
        default=["feed", "page", "browser"],
        min_length=1,
        description="Where the text is looked for, in this order; `browser` only where it is installed.",
    )
    format: Literal["text", "markdown", "html"] = Field(
        default="text", description="How the text in the step's output is written."
    )
    feed_characters: int = Field(
        default=1_500, ge=1, description="From this length on, the feed's own text counts as the full text."
    )
    thorough: bool = Field(
        default=False, description="Try harder on difficult pages, at several times the cost."
    )
    with_tables: bool = Field(default=True, description="Keep tables.")
    with_links: bool = Field(default=False, description="Keep the targets of links in Markdown.")
    min_characters: int = Field(
        default=100, ge=0, description="Less text than this counts as none; then the next level follows."
    )
    max_megabytes: float = Field(default=5, gt=0, le=100, description="The largest page that is read.")
    browser_seconds: float = Field(
        default=30, gt=0, le=120, description="How long a page may take in the browser."
    )


class EnrichContent(Step):
    step_type = "enrich_content"
    config_model = EnrichConfig
    timeout_seconds = 180.0
    retries = 3

    async def run(self, context: StepContext, config: EnrichConfig) -> StepResult:
        problem: StepError | None = None
        for level in config.levels:
            try:
                found = await _LEVELS[level](context, config)
            except StepError as error:
                problem = _worse(problem, error)
                continue
            if found is not None:
                html = found.pop("html")
                found["level"] = level
                text = paragraphs_of(html)
                results = (
                    Result("full_text", body=html, format="html", language=found["language"]),
                    Result("fingerprint", data=fingerprint(text)),
                )
                return StepResult(found, results=results)
        raise problem or StepError("the item has no address to fetch its text from")


def _worse(before: StepError | None, error: StepError) -> StepError:
    """What is told of two levels that failed: that it may pass, if either may; else the last."""
    return before if before is not None and before.passing and not error.passing else error


async def _from_feed(context: StepContext, config: EnrichConfig) -> dict[str, Any] | None:
    """What the source delivered, if that is a whole article."""
    item = context.content_item
    body = str(item.get("content") or "")
    text = paragraphs_of(body)
    if len(text) < config.feed_characters or text[-40:].lower().rstrip().endswith(_CUT_SIGNS):
        return None
    html = sanitize_html(resolve_html(body, item.get("url")))
    return {
        "url": item.get("url"),
        "text": html if config.format == "html" else text,
        "html": html,
        "format": "html" if config.format == "html" else "text",
        "word_count": len(text.split()),
        "language": item.get("language"),
        "obstacle": None,
    }


async def _from_page(context: StepContext, config: EnrichConfig) -> dict[str, Any] | None:
    url = context.content_item.get("url")
    if not url:
        return None
    request = Request(
        str(url),
        accept="text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
        max_bytes=int(config.max_megabytes * 1_000_000),
    )
    try:
        response = await fetcher_of(context).get(request)
    except FetchError as error:
        if error.kind in _REFUSED and error.http_status is not None:
            raise StepError(
                "{problem} ({obstacle})",
                problem=Text(error.template, **error.values),
                obstacle=_NAMES["block"],
            ) from None
        raise_as_step_error(error)
    kind = (response.content_type or "text/html").partition(";")[0].strip().lower()
    if kind not in _KINDS:
        raise StepError("{url} is not a page to read: its type is {kind}", url=response.url, kind=kind)
    return await _extract(response.body, response.url, config)


async def _from_browser(context: StepContext, config: EnrichConfig) -> dict[str, Any] | None:
    url = context.content_item.get("url")
    if not url or not browser.is_installed():
        return None
    shown = await browser.show_page(context, str(url), config.browser_seconds)
    return await _extract(shown.html.encode("utf-8", "replace"), shown.url, config)


_LEVELS = {"feed": _from_feed, "page": _from_page, "browser": _from_browser}


async def _extract(page: bytes, url: str, config: EnrichConfig) -> dict[str, Any]:
    found = await _children.call(
        {
            "page": base64.b64encode(page).decode("ascii"),
            "url": url,
            **config.model_dump(include={"format", "thorough", "with_tables", "with_links"}),
        }
    )
    count = len(paragraphs_of(found["html"]))
    if count >= config.min_characters:
        found["obstacle"] = "paywall" if found.pop("has_paywall", False) else None
        return found
    if (obstacle := found.get("obstacle")) is not None:
        raise StepError(
            "{url}: no article was found in the page: {obstacle}", url=url, obstacle=_NAMES[obstacle]
        )
    raise StepError(
        "{url}: no article was found in the page ({count} {count:character|characters} of text)",
        url=url,
        count=count,
    )


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Extract the article of a page, and say what the page is if it has none. Blocking, in a separate process."""
    import trafilatura

    page = base64.b64decode(task["page"])
    whole = page.decode("utf-8", "replace")
    tree = trafilatura.load_html(page)
    if tree is None:
        return {"text": "", "html": "", "obstacle": find_obstacle(whole, task["url"])}
    about = trafilatura.extract_metadata(tree, default_url=task["url"])
    options: dict[str, Any] = {
        "url": task["url"],
        "fast": not task["thorough"],
        "include_tables": task["with_tables"],
        "include_comments": False,
    }
    html = trafilatura.extract(
        tree,
        output_format="html",
        include_links=True,
        include_images=True,
        include_formatting=True,
        **options,
    )
    html = sanitize_html(resolve_html(html or "", task["url"])).strip()
    text = paragraphs_of(html)
    words = len(text.split())
    if task["format"] == "html":
        text = html
    elif task["format"] == "markdown" and text:
        text = (
            trafilatura.extract(tree, output_format="markdown", include_links=task["with_links"], **options)
            or text
        )
    return {
        "url": task["url"],
        "text": text,
        "html": html,
        "format": task["format"],
        "word_count": words,
        "title": about.title,
        "author": about.author,
        "published": about.date,
        "site_name": about.sitename,
        "description": about.description,
        "language": about.language or _language_of_page(tree),
        "image_url": urljoin(task["url"], about.image) if about.image else None,
        "categories": list(about.categories or ()),
        "tags": list(about.tags or ()),
        "has_paywall": has_paywall(whole),
        "obstacle": find_obstacle(whole, task["url"]),
    }


def _language_of_page(tree: Any) -> str | None:
    """What the page says: `<html lang="en-GB">`."""
    named = tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    return named.strip()[:35] or None
