"""npm and PubMed by their public APIs: what becomes an item, what a visit costs, and what they refuse."""

from typing import Any

from headwater.errors import FailureKind
from headwater.sources.adding import read_new_source
from tests.collectors.visits import Visits, told
from tests.fake_services import PAGE, as_json, query_of
from tests.origin import Answer, Origin, Received


def package(*versions: str, **more: Any) -> Answer:
    """A packument as the registry's API documents it."""
    times = {each: f"2026-11-0{place}T10:00:00.000Z" for place, each in enumerate(versions, 1)}
    described = {each: {"description": "Pads <left>", "_npmUser": {"name": "ann"}} for each in versions}
    described |= more
    return as_json(
        {
            "name": "@scope/pad",
            "description": "Pads",
            "time": {"created": "2026-11-01T10:00:00.000Z", "modified": "2026-11-09T10:00:00.000Z", **times},
            "versions": described,
        },
        etag=f'"{len(versions)}"',
    )


async def test_versions_of_a_package_become_items_newest_first(origin: Origin) -> None:
    origin.route("/@scope%2Fpad", package("1.0.0", "1.1.0-rc.1", "1.1.0+build-2"))
    url = origin.url("/@scope/pad")
    async with Visits(origin, "api.npm", url) as runs:
        result = await runs.visit()
        new, old = result.items
        assert (new.external_id, new.title) == ("@scope/pad@1.1.0+build-2", "@scope/pad 1.1.0+build-2")
        assert (old.url, old.author) == ("https://www.npmjs.com/package/@scope/pad/v/1.0.0", "ann")
        assert (old.summary, result.left_out_count) == ("<p>Pads &lt;left&gt;</p>", 1)
        assert (await runs.visit()).unchanged
        origin.route("/@scope%2Fpad", package("1.0.0", "1.1.0-rc.1", "1.1.0+build-2", "2.0.0"))
        assert await runs.cost() == (1, 1)
    async with Visits(origin, "api.npm", url, {"prereleases": True, "limit": 2}) as runs:
        assert [item.title.split()[1] for item in (await runs.visit()).items] == ["2.0.0", "1.1.0+build-2"]


def test_both_spellings_of_a_scoped_package_are_one_source() -> None:
    one, other = (
        read_new_source(f"https://registry.npmjs.org/{name}", "api.npm").url for name in ("@a/b", "@a%2Fb")
    )
    assert one == other


async def test_package_that_is_gone_or_not_as_it_was_is_told(origin: Origin) -> None:
    origin.route("/gone", as_json({"error": "not_found"}, status=404))
    async with Visits(origin, "api.npm", origin.url("/gone")) as runs:
        assert told(await runs.failure()) == (FailureKind.NOT_FOUND, 404)
        origin.route("/gone", as_json({"name": "x"}))
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/gone", as_json({"name": "x", "time": {"unpublished": {"name": "ann"}}}))
        assert (await runs.visit()).items == ()


class Pubmed:
    """ESearch and ESummary as NCBI documents them (retmode=json)."""

    def __init__(self, origin: Origin) -> None:
        self.articles: list[int] = []
        self.limited = False
        origin.route("/esearch.fcgi", self._search)
        origin.route("/esummary.fcgi", self._summary)

    def _search(self, request: Received) -> Answer:
        query = query_of(request)
        assert (query["db"], query["retmode"], query["sort"]) == ("pubmed", "json", "date")
        if self.limited:
            return as_json({"error": "API rate limit exceeded", "api-key": "x", "count": "4", "limit": "3"})
        if query["term"] == "(":
            return as_json({"esearchresult": {"ERROR": "Unbalanced parentheses"}})
        found = sorted(self.articles, reverse=True)[: int(query["retmax"])]
        return as_json({"esearchresult": {"count": str(len(found)), "idlist": [str(each) for each in found]}})

    def _summary(self, request: Received) -> Answer:
        ids = query_of(request)["id"].split(",")
        said: dict[str, Any] = {"uids": ids}
        for each in ids:
            said[each] = {
                "uid": each,
                "title": f"On <i>trees</i> {each}.",
                "authors": [{"name": "Ash A"}, {"name": "Birch B"}],
                "fulljournalname": "Trees",
                "pubdate": "2026 Nov",
                "sortpubdate": "2026/11/01 00:00",
                "pubtype": ["Review"],
            }
        said[ids[-1]] = (
            said[ids[-1]] if len(ids) < 3 else {"uid": ids[-1], "error": "cannot get document summary"}
        )
        return as_json({"result": said})


def pubmed(origin: Origin, term: str = "trees", **config: Any) -> Visits:
    given = {"base_url": origin.url("").rstrip("/"), **config}
    return Visits(
        origin,
        "api.pubmed",
        f"https://pubmed.ncbi.nlm.nih.gov/?term={term}",
        given,
        secrets={"KEY": "n0t-told"},
    )


async def test_articles_that_are_new_are_asked_for(origin: Origin) -> None:
    server = Pubmed(origin)
    async with pubmed(origin) as runs:
        assert await runs.cost() == (0, 1)
        server.articles = [1, 2]
        result = await runs.visit()
        item = result.items[0]
        assert (item.external_id, item.title, item.author) == ("2", "On trees 2.", "Ash A, Birch B")
        assert (item.url, item.summary) == ("https://pubmed.ncbi.nlm.nih.gov/2/", "<p>Trees. 2026 Nov</p>")
        assert (result.metadata.title, item.categories) == ("PubMed: trees", ("Review",))
        assert await runs.cost() == (0, 1)
        server.articles += [3]
        assert await runs.cost() == (1, 2)
        assert query_of(origin.requests[-1])["id"] == "3"
        server.articles += [4, 5, 6]
        assert await runs.cost() == (2, 2), "one that cannot be told is left for the next visit"


async def test_what_ncbi_refuses_is_told_without_the_key(origin: Origin) -> None:
    server = Pubmed(origin)
    async with pubmed(origin, "(") as runs:
        error = await runs.failure()
        assert told(error)[0] is FailureKind.CLIENT_ERROR
        assert "Unbalanced parentheses" in str(error)
    async with pubmed(origin, "") as runs:
        assert "has no search term" in str(await runs.failure())
    server.limited = True
    async with pubmed(origin, api_key="${KEY}") as runs:
        error = await runs.failure()
        assert told(error) == (FailureKind.RATE_LIMITED, 200)
        assert query_of(origin.requests[-1])["api_key"] == "n0t-told"
        assert "n0t-told" not in str(error)
    origin.route("/esearch.fcgi", body=PAGE, content_type="text/html")
    async with pubmed(origin) as runs:
        assert "a web page where JSON was expected" in str(await runs.failure())
