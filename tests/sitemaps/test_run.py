"""A run tells of what changed once, keeps its feed, and survives bad days: three ways of going wrong, for real."""

import contextlib
from pathlib import Path

import pytest

from headwater.collectors.sitemap_survey import Wishes
from headwater.errors import BusySiteError, VisitError
from headwater.sitemaps import run as run_module
from headwater.sitemaps.state import Commit, IncrementalStateManager
from tests.origin import Answer, Origin
from tests.sitemaps.site import DAY, Site, name_of

PAGES = {f"p{n:02}": f"2024-01-{n:02}" for n in range(1, 29)}


@pytest.fixture
def site(origin: Origin, tmp_path: Path) -> Site:
    site = Site(origin, tmp_path)
    site.publish(**PAGES)
    return site


async def test_first_the_newest_then_only_what_changed(site: Site) -> None:
    outcome = await site.run()
    assert (outcome.how, len(outcome.new_urls), outcome.total_urls) == ("baseline", 10, 28)
    assert site.shown()[:2] == ["p28", "p27"]
    site.origin.requests.clear()
    assert await site.news() == []
    assert len(site.origin.requests) == 1
    site.publish(p03="2024-03-01", new="2024-03-02")
    site.origin.requests.clear()
    assert await site.news() == ["new", "p03*"]
    assert sorted(request.path for request in site.origin.requests) == ["/new", "/p03", "/sitemap.xml"]
    assert site.shown()[:3] == ["new", "p03", "p28"]
    assert len(site.shown()) == 12


async def test_an_unchanged_sitemap_is_one_conditional_request_and_the_file_stays(site: Site) -> None:
    site.origin.route("/sitemap.xml", body=site.document(), etag='"1"')
    await site.run()
    written = site.output.stat().st_mtime_ns
    site.origin.requests.clear()
    outcome = await site.run()
    assert [request.headers.get("if-none-match") for request in site.origin.requests] == ['"1"']
    assert (outcome.written, site.output.stat().st_mtime_ns) == (False, written)
    site.output.unlink()
    assert (await site.run()).written
    assert len(site.shown()) == 10
    with IncrementalStateManager(site.folder / "rss_states") as manager:
        state = await manager.get_site_state("site")
    assert (state.last_sitemap_etag, len(state.processed_urls)) == ('"1"', 28)


async def test_fifty_thousand_addresses_of_which_twenty_changed(site: Site) -> None:
    site.dates = {f"q{n}": f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(49_990)}
    site.publish()
    await site.run()
    site.origin.requests.clear()
    site.publish(
        **{f"q{n}": "2025-01-01" for n in range(0, 40_000, 4_000)},
        **{f"r{n}": "2025-01-02" for n in range(10)},
    )
    outcome = await site.run()
    assert (len(outcome.new_urls), len(outcome.modified_urls)) == (10, 10)
    assert len(site.origin.received("/sitemap.xml")) == 1
    assert len(site.origin.requests) == 21
    assert len(site.shown()) == 30


async def test_other_wishes_start_again(site: Site) -> None:
    await site.run()
    site.wishes = Wishes(include=("/p0",))
    outcome = await site.run()
    assert (outcome.how, len(outcome.new_urls)) == ("baseline", 9)
    assert site.shown() == [f"p0{n}" for n in range(9, 0, -1)]


async def test_every_run_cleans_up(site: Site) -> None:
    await site.run()
    gone = site.dates.pop("p05")
    site.publish()
    await site.run()

    async def is_known() -> bool:
        with IncrementalStateManager(site.folder / "rss_states") as manager:
            return site.origin.url("/p05") in (await manager.get_site_state("site")).processed_urls

    site.now += 29 * DAY
    site.publish(a="2025-01-01")
    await site.run()
    assert await is_known()
    site.now += 2 * DAY
    site.publish(b="2025-01-02")
    await site.run()
    assert not await is_known()
    site.publish(p05=gone)
    assert await site.news() == ["p05"], "thirty days after it left, it is new"


async def test_everything_again_when_asked(site: Site) -> None:
    site.options = {"incremental": False, "max_items": 20}
    for _ in range(2):
        outcome = await site.run()
        assert (outcome.how, len(outcome.new_urls)) == ("full", 20)
    assert len(site.shown()) == 20
    assert not (site.folder / "rss_states").exists()


# -- the three degradations ----------------------------------------------------------------------------------


async def test_one_bad_address_among_good_ones_is_skipped(site: Site) -> None:
    await site.run()
    site.origin.route("/gone", status=404)
    site.origin.route("/broken", Answer(b"<title>x</title>", fault="reset"))
    site.publish(good="2025-01-01", gone="2025-01-02", broken="2025-01-03")
    body = site.document().replace("</urlset>", "<url><loc>http://[bad</loc></url></urlset>")
    site.origin.route("/sitemap.xml", body=body)
    assert await site.news() == ["broken", "good"]
    assert site.shown()[:2] == ["broken", "good"]
    assert await site.news() == []


async def test_an_exception_in_the_middle_leaves_the_last_good_state(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.run()
    feed = site.output.read_bytes()
    site.publish(new="2025-01-01")

    def break_down(*args: object) -> str:
        raise RuntimeError("the middle")

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "merge_entries", break_down)
        with pytest.raises(RuntimeError, match="the middle"):
            await site.run()
    assert site.output.read_bytes() == feed
    assert await site.news() == ["new"]
    assert await site.news() == []


@pytest.mark.parametrize("damage", ["no database", "torn pages", "torn memory"])
async def test_a_damaged_state_falls_back_to_everything(
    site: Site, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    await site.run()
    database = site.folder / "rss_states" / "rss_incremental.db"
    if damage == "no database":
        database.write_bytes(b"this is not a database" * 1000)
    elif damage == "torn pages":
        data = bytearray(database.read_bytes())
        for start in range(4096, len(data), 4096):
            data[start : start + 2000] = b"\xff" * 2000
        database.write_bytes(data)
    else:
        with IncrementalStateManager(site.folder / "rss_states") as manager:
            before = await manager.begin("site")
            await manager.commit("site", before, Commit(b"nonsense", "[]"))
    site.publish(new="2025-01-01")
    outcome = await site.run()
    assert outcome.how == "baseline"
    assert "damaged" in caplog.text
    assert site.shown()[:2] == ["new", "p28"]
    if damage != "torn memory":
        assert list(database.parent.glob("rss_incremental.damaged-*.db"))
        assert len(site.shown()) == 29, "everything, not the newest ten"
    assert await site.news() == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=503),
        Answer("<urlset></urlset>"),
        Answer("<urlset><url><loc>http://127.0.0.1/else</loc></url>"),
        Answer("<urlset><url><loc>http://127.0.0.1/else</loc></url></urlset>", fault="cut-body"),
    ],
    ids=["failing", "empty", "half", "cut"],
)
async def test_a_bad_sitemap_changes_nothing(site: Site, answer: Answer) -> None:
    await site.run()
    feed = site.output.read_bytes()
    site.origin.route("/sitemap.xml", answer)
    with contextlib.suppress(VisitError):
        assert (await site.run()).new_urls == []
    assert site.output.read_bytes() == feed
    site.publish(new="2025-01-01")
    assert await site.news() == ["new"]


async def test_of_two_runs_at_once_one_is_written(site: Site) -> None:
    with IncrementalStateManager(site.folder / "rss_states") as manager:
        before = await manager.begin("site")
        await manager.commit("site", before, Commit(b"one", "[]"))
        with pytest.raises(BusySiteError):
            await manager.commit("site", before, Commit(b"two", "[]"))


async def test_pages_report_their_progress(site: Site) -> None:
    seen: list[tuple[int, int]] = []
    await site.run(lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 10)
    assert seen[-1] == (10, 10)


async def test_page_that_is_gone_is_among_the_failures(site: Site) -> None:
    await site.run()
    site.publish(gone="2024-03-01", busy="2024-03-02", here="2024-03-03")
    site.origin.route("/gone", status=404)
    site.origin.route("/busy", status=503)
    outcome = await site.run()
    assert sorted(map(name_of, outcome.new_urls)) == ["busy", "here"]
    assert sorted(outcome.failures) == [
        f"{site.origin.url('/busy')}: the server has a problem (status 503).",
        f"{site.origin.url('/gone')}: there is nothing at this address (status 404).",
    ]


@pytest.mark.parametrize(("interval", "back_as_news"), [(0.0, True), (7.0, True), (30.0, False)])
async def test_clean_up_waits_for_its_interval(site: Site, interval: float, back_as_news: bool) -> None:
    """A page that left is forgotten at the first clean-up after its days; until then it is known when it comes back."""
    site.wishes = Wishes(days_to_keep=5, cleanup_interval_days=interval)
    await site.run()
    date = site.dates.pop("p01")
    site.publish(other="2024-03-01")
    await site.run()  # it has left, and this is a clean-up: the first
    site.now += 8 * DAY
    site.publish(another="2024-03-02")
    await site.run()
    site.publish(p01=date)
    assert (await site.news() == ["p01"]) is back_as_news
