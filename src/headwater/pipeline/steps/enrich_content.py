"""`enrich_content`: the full text of an article from its own page, with what the page says of itself.

The stored item keeps what its source delivered: the text found here is this step's output, and later steps prefer it.
"""

import base64
from typing import Any, Literal
from urllib.parse import urljoin

from pydantic import Field

from headwater.errors import FetchError
from headwater.fetch.message import Request
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepError, StepResult
from headwater.pipeline.steps.children import ChildPool
from headwater.pipeline.steps.service import door_of, raise_as_step_error

# trafilatura keeps caches that only grow.
_children = ChildPool(__name__, tasks_per_child=200)


class EnrichConfig(StepConfig):
    format: Literal["text", "markdown", "html"] = Field(
        default="text", description="How the text is written. HTML is raw: sanitise it before showing it."
    )
    thorough: bool = Field(
        default=False, description="Try harder on difficult pages, at several times the cost."
    )
    with_tables: bool = Field(default=True, description="Keep tables.")
    with_links: bool = Field(default=False, description="Keep the targets of links.")
    min_characters: int = Field(
        default=100, ge=0, description="Less text than this counts as none, and the step fails."
    )
    max_megabytes: float = Field(default=5, gt=0, le=100, description="The largest page that is read.")


class EnrichContent(Step):
    step_type = "enrich_content"
    config_model = EnrichConfig
    extra = "enrich"
    needs = "trafilatura"
    timeout_seconds = 120.0
    retries = 3

    async def run(self, context: StepContext, config: EnrichConfig) -> StepResult:
        url = context.content_item.get("url")
        if not url:
            raise StepError("the item has no address to fetch its text from")
        request = Request(
            str(url),
            accept="text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
            max_bytes=int(config.max_megabytes * 1_000_000),
        )
        try:
            response = await door_of(context).get(request)
        except FetchError as error:
            raise_as_step_error(error)
        kind = (response.content_type or "text/html").partition(";")[0].strip().lower()
        if kind not in ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml"):
            raise StepError("{url} is no page to read: its type is {kind}", url=response.url, kind=kind)
        found = await _children.call(
            {
                "page": base64.b64encode(response.body).decode("ascii"),
                "url": response.url,
                **config.model_dump(include={"format", "thorough", "with_tables", "with_links"}),
            }
        )
        if len(found["text"]) < config.min_characters:
            raise StepError(
                "{url}: no article was found in the page ({count} {count:character|characters} of text)",
                url=response.url,
                count=len(found["text"]),
            )
        return StepResult(found)


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Extract the article of a page. Blocking, in a process of its own."""
    import trafilatura

    page = base64.b64decode(task["page"])
    options: dict[str, Any] = {
        "url": task["url"],
        "fast": not task["thorough"],
        "include_tables": task["with_tables"],
        "include_links": task["with_links"],
        "include_comments": False,
    }
    document = trafilatura.bare_extraction(page, with_metadata=True, **options)
    about: dict[str, Any] = document if isinstance(document, dict) else document.as_dict() if document else {}
    text = about.get("text") or ""
    if text and task["format"] != "text":
        text = trafilatura.extract(page, output_format=task["format"], **options) or text
    image = about.get("image")
    return {
        "url": task["url"],
        "text": text,
        "format": task["format"],
        "word_count": len((about.get("text") or "").split()),
        "title": about.get("title"),
        "author": about.get("author"),
        "published": about.get("date"),
        "site_name": about.get("sitename"),
        "description": about.get("description"),
        "language": about.get("language"),
        "image_url": urljoin(task["url"], image) if image else None,
        "categories": list(about.get("categories") or ()),
        "tags": list(about.get("tags") or ()),
    }
