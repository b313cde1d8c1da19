"""`api.pubmed`: the newest articles that a search on PubMed finds, by NCBI's E-utilities.

A visit is one request for the numbers of the articles, and one for what is said of those that are not known yet. NCBI
takes three requests a second, more with one of its keys.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import Field

from headwater.collectors.answer import changed_structure, read_json, read_list, text_of
from headwater.collectors.base import (
    SECRET,
    Collector,
    FetchRequest,
    FetchResult,
    StructuredConfig,
    request_for,
)
from headwater.errors import FailureKind, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response, public_url
from headwater.formats.dates import parse_date
from headwater.formats.html import collapse, escape_text, plain_text
from headwater.model import Item, SourceMetadata

SITE: Final = "https://pubmed.ncbi.nlm.nih.gov"
AT_ONCE: Final = 200  # articles of one request


class PubmedConfig(StructuredConfig):
    may_be_empty: bool = Field(default=True, description="Whether an empty list is normal for this source.")
    limit: int = Field(
        default=50, ge=1, le=1_000, description="How many articles at most in one visit, the newest."
    )
    api_key: str | None = Field(
        default=None, description="A key of NCBI's, which allows more requests.", json_schema_extra=SECRET
    )
    base_url: str = Field(
        default="https://eutils.ncbi.nlm.nih.gov/entrez/eutils",
        pattern=r"^https?://",
        description="The address of NCBI's E-utilities.",
    )


class PubmedCollector(Collector):
    config_model = PubmedConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        config: PubmedConfig = fetch_request.config
        url = fetch_request.source.url
        term = " ".join(parse_qs(urlsplit(url).query).get("term", [""])[0].split())
        if not term:
            raise VisitError(
                FailureKind.NOT_FOUND,
                "{url} has no search term; give it as https://pubmed.ncbi.nlm.nih.gov/?term=…",
                url=public_url(url),
            )
        first = await _ask(
            fetch_request, "esearch", {"term": term, "retmax": str(config.limit), "sort": "date"}
        )
        numbers = [str(each) for each in read_list(_result(first, "esearchresult"), "idlist", url)]
        known = await fetch_request.known(numbers)
        new = [each for each in numbers if each not in known]
        items: list[Item] = []
        requests, received = first.requests, first.bytes_received
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            answer = await _ask(fetch_request, "esummary", {"id": ",".join(part)})
            requests, received = requests + answer.requests, received + answer.bytes_received
            said = _result(answer, "result")
            items += [item for each in part if (item := _item(each, said.get(each))) is not None]
        return replace(
            FetchResult.of(first),
            items=tuple(items),
            known_count=len(numbers) - len(new),
            metadata=SourceMetadata(f"PubMed: {term}"[:200], site_url=url),
            validators=NO_VALIDATORS,
            permanent_url=None,
            requests=requests,
            bytes_received=received,
        )


async def _ask(fetch_request: FetchRequest, tool: str, params: Mapping[str, str]) -> Response:
    config: PubmedConfig = fetch_request.config
    given = {"db": "pubmed", "retmode": "json", "tool": "headwater", **params}
    if config.api_key:
        given["api_key"] = config.api_key
    url = f"{config.base_url.rstrip('/')}/{tool}.fcgi?{urlencode(given)}"
    request = request_for(fetch_request.source, config, url)
    return await fetch_request.fetcher.get(
        replace(request, accept="application/json", validators=NO_VALIDATORS)
    )


def _result(response: Response, name: str) -> Mapping[str, Any]:
    """What an answer holds; VisitError for what NCBI says is wrong."""
    answer = read_json(response)
    result = answer.get(name) if isinstance(answer, Mapping) else None
    problem = answer.get("error") if isinstance(answer, Mapping) else None
    if isinstance(result, Mapping) and problem is None:
        problem = result.get("ERROR")
    if said := text_of(problem):
        raise VisitError(
            FailureKind.RATE_LIMITED if "rate limit" in said.lower() else FailureKind.CLIENT_ERROR,
            "{url}: PubMed answers: {problem}",
            http_status=response.status,
            url=public_url(response.url),
            problem=collapse(said)[:300],
        )
    if not isinstance(result, Mapping):
        raise changed_structure(response.url, name)
    return result


def _item(number: str, said: Any) -> Item | None:
    if not isinstance(said, Mapping) or "error" in said:
        return None
    authors = said.get("authors")
    names = [
        name
        for each in (authors if isinstance(authors, list) else ())
        if isinstance(each, Mapping) and (name := text_of(each.get("name")))
    ]
    journal = text_of(said.get("fulljournalname")) or text_of(said.get("source"))
    published = parse_date((text_of(said.get("sortpubdate")) or "").replace("/", "-") or None)
    kinds = said.get("pubtype")
    told = ". ".join(filter(None, (journal, text_of(said.get("pubdate")))))
    return Item(
        external_id=number,
        url=f"{SITE}/{number}/",
        title=collapse(plain_text(text_of(said.get("title")) or "")) or number,
        author=", ".join(names) or None,
        summary=f"<p>{escape_text(told)}</p>" if told else None,
        published_at=published.timestamp() if published else None,
        categories=tuple(
            kind for each in (kinds if isinstance(kinds, list) else ()) if (kind := text_of(each))
        ),
    )
