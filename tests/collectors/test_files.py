"""Tables, calendars, directories and buckets as sources: what a visit costs, brings, leaves out and refuses."""

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from headwater.collectors.calendar import CalendarCollector
from headwater.errors import FailureKind, InputError
from headwater.sources.adding import read_new_source
from tests.collectors.visits import Visits, told
from tests.fake_services import query_of
from tests.origin import Answer, Origin, Received

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC).timestamp()
ROWS = "Title,Link,Date,Place,Tags\nOne,/1,2026-11-01,Here,a; b\nTwo,/2,2026-11-02,,\n"


async def test_rows_become_items_newest_first(origin: Origin) -> None:
    url = origin.route("/list.csv", body=ROWS, content_type="text/csv", etag='"1"')
    async with Visits(origin, "file.table", url) as runs:
        two, one = (await runs.visit()).items
        assert (two.title, two.url, two.content) == ("Two", origin.url("/2"), None)
        assert (one.title, one.content, one.categories) == (
            "One",
            "<dl><dt>Place</dt><dd>Here</dd></dl>",
            ("a", "b"),
        )
        assert (await runs.visit()).unchanged
        origin.route("/list.csv", body=ROWS + "Three,/3,2026-11-03,,\n", content_type="text/csv")
        assert await runs.cost() == (1, 1)


async def test_row_without_id_and_address_is_told_by_all_that_it_says(origin: Origin) -> None:
    url = origin.route("/list.csv", body="a,b\n1,2\n1,2\n1,3\n", content_type="text/csv")
    async with Visits(origin, "file.table", url) as runs:
        assert await runs.cost() == (2, 1)
        assert await runs.cost() == (0, 1)


async def test_columns_may_be_named_and_must_be_there(origin: Origin) -> None:
    url = origin.route("/list.csv", body="x,y\nOne,<b>bold</b>\n", content_type="text/csv")
    async with Visits(origin, "file.table", url, {"title": "x", "content": "y", "id": "x"}) as runs:
        (item,) = (await runs.visit()).items
        assert (item.external_id, item.title, item.content) == ("One", "One", "<b>bold</b>")
        origin.route("/list.csv", body="a,b\nOne,2\n", content_type="text/csv")
        error = await runs.failure()
    assert told(error)[0] is FailureKind.CHANGED_STRUCTURE
    assert "has no column x; there are: a, b" in str(error)


@pytest.mark.parametrize(("newest_last", "titles"), [(False, ["1", "2"]), (True, ["4", "5"])])
async def test_long_table_is_cut_at_its_old_end(origin: Origin, newest_last: bool, titles: list[str]) -> None:
    url = origin.route("/list.csv", body="title,x\n1,a\n2,a\n3,a\n4,a\n5,a\n", content_type="text/csv")
    async with Visits(origin, "file.table", url, {"limit": 2, "newest_last": newest_last}) as runs:
        result = await runs.visit()
    assert [item.title for item in result.items] == titles
    assert result.beyond_count == 3


async def test_table_that_lists_nothing_any_more_is_an_alarm(origin: Origin) -> None:
    url = origin.route("/list.csv", body=ROWS, content_type="text/csv")
    async with Visits(origin, "file.table", url) as runs:
        await runs.visit()
        origin.route("/list.csv", body="Title,Link\n", content_type="text/csv")
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/list.csv", body="<html>Sign in</html>", content_type="text/html")
        assert told(await runs.failure())[0] is FailureKind.NOT_A_FEED


def calendar(*events: str) -> str:
    body = "".join(f"BEGIN:VEVENT\r\n{each}\r\nEND:VEVENT\r\n" for each in events)
    return f"BEGIN:VCALENDAR\r\nX-WR-CALNAME:Town\r\n{body}END:VCALENDAR\r\n"


COUNCIL = (
    "UID:1\r\nSUMMARY:Council\r\nDTSTART;TZID=Europe/Berlin:20261201T180000\r\nDTEND;TZID=Europe/Berlin:20261201T200000\r\n"
    "LOCATION:Hall <1>\r\nDESCRIPTION:Agenda\r\nCREATED:20261101T000000Z"
)
MARKET = "UID:2\r\nSUMMARY:Market\r\nDTSTART:20200107T090000Z\r\nRRULE:FREQ=WEEKLY"
FAIR = "UID:3\r\nSUMMARY:Fair\r\nDTSTART;VALUE=DATE:20270901\r\nDTEND;VALUE=DATE:20270904"


def at(days: float) -> Callable[[], float]:
    return lambda: NOW + days * 86_400


async def test_events_to_come_become_items_when_they_are_near(origin: Origin) -> None:
    url = origin.route(
        "/c.ics", body=calendar(FAIR, COUNCIL, MARKET), content_type="text/calendar", etag='"1"'
    )
    async with Visits(origin, "file.calendar", url, collector=CalendarCollector(at(0))) as runs:
        result = await runs.visit()
        assert (result.metadata.title, result.left_out_count) == ("Town", 1)
        market, council = result.items
        assert (council.external_id, council.title) == ("1", "Council")
        assert council.content == (
            "<p><b>2026-12-01 18:00–20:00 (Europe/Berlin)</b><br>Hall &lt;1&gt;</p><p>Agenda</p>"
        )
        assert council.extras == {
            "event": {
                "starts_at": "2026-12-01T18:00:00+01:00",
                "ends_at": "2026-12-01T20:00:00+01:00",
                "place": "Hall <1>",
            }
        }
        assert (market.external_id, market.published_at) == ("2/20261124T090000Z", None)
        assert await runs.cost() == (0, 1)
        # The calendar is as it was, and the next market is another item; in spring the fair comes near.
        runs.collector = CalendarCollector(at(7))
        assert await runs.cost() == (1, 1)
        runs.collector = CalendarCollector(at(200))
        found = {item.title: item for item in (await runs.visit()).items}
        assert found["Fair"].summary == "<b>2027-09-01 – 2027-09-03</b>"
        assert "Council" not in found


async def test_calendar_by_webcal_and_what_it_takes(origin: Origin) -> None:
    assert read_new_source("webcal://e.org/c.ics").url == "https://e.org/c.ics"
    assert read_new_source("webcal://e.org/c.ics").type.name == "file.calendar"
    url = origin.route("/c.ics", body=calendar(COUNCIL, MARKET, FAIR), content_type="text/calendar")
    config = {"recurrences": 3, "days_ahead": 10, "days_back": 30}
    async with Visits(origin, "file.calendar", url, config, collector=CalendarCollector(at(0))) as runs:
        assert [item.title for item in (await runs.visit()).items] == ["Market"] * 3
        origin.route("/c.ics", body="<html>", content_type="text/html")
        assert told(await runs.failure())[0] is FailureKind.NOT_A_FEED
    with pytest.raises(InputError):
        read_new_source("https://e.org/c.ics", "calendar", {"days_ahead": 0})


def directory(path: str, *names: str) -> str:
    rows = "".join(
        f'<a href="{quote(name)}">{name}</a>  0{place}-Nov-2026 10:20   {place}000\n'
        for place, name in enumerate(names, 1)
    )
    return f"<html><head><title>Index of {path}</title></head><body><pre><a href='../'>../</a>\n{rows}</pre>"


async def test_files_of_a_directory_become_items_newest_first(origin: Origin) -> None:
    url = origin.route(
        "/pub/",
        body=directory("/pub/", "a.iso", "notes.txt", "b c.mp3"),
        content_type="text/html",
        etag='"1"',
    )
    async with Visits(origin, "file.listing", url, {"exclude": ["*.TXT"]}) as runs:
        result = await runs.visit()
        song, image = result.items
        assert (song.title, song.url) == ("b c.mp3", origin.url("/pub/b%20c.mp3"))
        assert (song.enclosures[0].media_type, song.enclosures[0].length) == ("audio/mpeg", 3000)
        assert (image.title, result.left_out_count) == ("a.iso", 1)
        assert (await runs.visit()).unchanged


async def test_directories_below_are_read_as_deep_as_is_said(origin: Origin) -> None:
    url = origin.route(
        "/pub/", body=directory("/pub/", "a.iso", "old/", "new/"), content_type="text/html", etag='"1"'
    )
    origin.route("/pub/new/", body=directory("/pub/new/", "n.iso", "deep/"), content_type="text/html")
    origin.route("/pub/old/", body=directory("/pub/old/", "o.iso"), content_type="text/html")
    async with Visits(origin, "file.listing", url, {"depth": 1}) as runs:
        assert await runs.cost() == (3, 3)
        assert await runs.cost() == (0, 3), "what is below may have changed though the directory has not"
    async with Visits(origin, "file.listing", url, {"depth": 3, "max_pages": 2, "folders": True}) as runs:
        assert {item.title for item in (await runs.visit()).items} == {"a.iso", "old", "new", "n.iso", "deep"}


class Bucket:
    """A bucket that lists its objects by name, a few a page, as S3 documents ListObjectsV2."""

    def __init__(self, origin: Origin, per_page: int = 10) -> None:
        self.keys: list[str] = []
        self.per_page = per_page
        self.url = origin.route("/", self._answer) + "?list-type=2"

    def _answer(self, request: Received) -> Answer:
        query = query_of(request)
        if query.get("prefix") == "secret/":
            return Answer("<Error><Code>AccessDenied</Code></Error>", status=403)
        keys = sorted(self.keys)
        start = keys.index(query["continuation-token"]) if "continuation-token" in query else 0
        page, rest = keys[start : start + self.per_page], keys[start + self.per_page :]
        contents = "".join(
            f"<Contents><Key>{key}</Key><Size>1</Size>"
            f"<LastModified>2026-11-01T10:{int(key.split('-')[1]) % 60:02}:00.000Z</LastModified></Contents>"
            for key in page
        )
        more = f"<NextContinuationToken>{rest[0]}</NextContinuationToken>" if rest else ""
        return Answer(
            "<?xml version='1.0'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Name>data</Name>"
            f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>{more}{contents}</ListBucketResult>"
        )


async def test_bucket_is_read_to_its_end_and_the_newest_are_taken(origin: Origin) -> None:
    bucket = Bucket(origin)
    bucket.keys = [f"{chr(97 + each % 26)}-{each}" for each in range(35)]
    async with Visits(origin, "file.listing", bucket.url, {"limit": 5}) as runs:
        result = await runs.visit()
        assert [item.title.split("-")[1] for item in result.items] == ["34", "33", "32", "31", "30"]
        assert (result.requests, result.beyond_count, result.metadata.title) == (4, 30, "data")
        bucket.keys.append("m-59")  # in the middle of the list
        assert await runs.cost() == (1, 4)
    async with Visits(origin, "file.listing", bucket.url, {"max_pages": 2}) as runs:
        assert await runs.cost() == (20, 2)


async def test_bucket_that_is_closed_says_so(origin: Origin) -> None:
    bucket = Bucket(origin)
    async with Visits(origin, "file.listing", bucket.url + "&prefix=secret/") as runs:
        assert told(await runs.failure()) == (FailureKind.FORBIDDEN, 403)
