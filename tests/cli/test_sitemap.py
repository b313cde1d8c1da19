"""`headwater sitemap-to-feed` and `headwater sitemap restore` as a user has them."""

from pathlib import Path

import orjson
import pytest

from headwater import parse
from tests.command import Headwater
from tests.origin import Origin
from tests.sitemaps.site import Site


@pytest.fixture
def site(origin: Origin, tmp_path: Path) -> Site:
    site = Site(origin, tmp_path)
    site.publish(**{f"p{n:02}": f"2024-01-{n:02}" for n in range(1, 29)})
    return site


def test_one_command_and_no_set_up(site: Site, tmp_path: Path) -> None:
    command = Headwater(tmp_path, None)
    site.origin.route("/robots.txt", body=f"Sitemap: {site.origin.url('/sitemap.xml')}")
    out = command.ok("sitemap-to-feed", site.origin.url("/"), "--output", "feed.xml")
    assert out.startswith("feed.xml: 10 new, 0 modified of 28 addresses")
    site.publish(p01="2025-01-01", new="2025-01-02")
    report = command.json("sitemap-to-feed", site.origin.url("/"), "--output", "feed.xml")
    assert report["new_urls"] == [site.origin.url("/new")]
    assert report["modified_urls"] == [site.origin.url("/p01")]
    assert (report["how"], report["written"], report["requests"]) == ("incremental", True, 3)
    # Another file is another feed.
    assert len(command.json("sitemap-to-feed", site.origin.url("/"), "-o", "b.xml")["new_urls"]) == 10
    command.ok("sitemap", "restore")
    again = command.json("sitemap-to-feed", site.origin.url("/"), "--output", "feed.xml")
    assert len(again["new_urls"]) == 1


def test_formats_and_options(site: Site, tmp_path: Path) -> None:
    command = Headwater(tmp_path, None)
    url = site.origin.url("/sitemap.xml")
    options = (
        "--no-titles",
        "--baseline",
        "3",
        "--title",
        "T",
        "--self-url",
        "https://e.org/f",
        "--include",
        "/p1",
    )
    for name, more, format in (
        ("a.atom", (), "atom-1.0"),
        ("a.json", (), "json-1.1"),
        ("a.rss", (), "rss-2.0"),
        ("a.txt", ("--format", "atom"), "atom-1.0"),
    ):
        command.ok("sitemap-to-feed", url, "-o", name, *options, *more)
        feed = parse((tmp_path / name).read_bytes())
        assert (feed.format, feed.title, feed.self_link) == (format, "T", "https://e.org/f")
        assert [entry.title for entry in feed.entries] == ["p19", "p18", "p17"]
    assert orjson.loads((tmp_path / "a.json").read_bytes())["version"].endswith("1.1")


def test_where_the_state_is_can_be_chosen(site: Site, tmp_path: Path) -> None:
    command = Headwater(tmp_path, None)
    url = site.origin.url("/sitemap.xml")
    command.ok("sitemap-to-feed", url, "-o", "a.xml", HEADWATER_DATA_DIR=str(tmp_path / "volume"))
    assert (tmp_path / "volume" / "rss_states" / "rss_incremental.db").is_file()
    command.ok("sitemap-to-feed", url, "-o", "b.xml", "--state", "elsewhere")
    assert (tmp_path / "elsewhere" / "rss_incremental.db").is_file()


def test_what_is_wrong_is_one_line(site: Site, tmp_path: Path) -> None:
    command = Headwater(tmp_path, None)
    url = site.origin.url("/sitemap.xml")
    assert "choose one of rss, atom, json" in command.refused(
        "sitemap-to-feed", url, "-o", "x", "--format", "pdf"
    )
    assert "it is a directory" in command.refused("sitemap-to-feed", url, "-o", ".")
    assert "cannot write" in command.refused("sitemap-to-feed", url, "-o", "no/such/place.xml")
    assert "there is no backup 2020-01-01" in command.refused(
        "sitemap", "restore", "2020-01-01", "--state", "s"
    )
    site.origin.route("/broken.xml", body="<urlset><url><loc>http://x.example/</loc>")
    assert "delivered only in part" in command.refused(
        "sitemap-to-feed", site.origin.url("/broken.xml"), "-o", "x.xml"
    )
    assert not (tmp_path / "x.xml").exists()


@pytest.mark.parametrize("place", ["address", "word"])
def test_state_in_a_database_is_shared_by_machines(
    site: Site, tmp_path: Path, database_url: str, place: str
) -> None:
    state = database_url if place == "address" else "database"
    url, output = site.origin.url("/sitemap.xml"), str(tmp_path / "feed.xml")
    one = Headwater(tmp_path, database_url)
    assert len(one.json("sitemap-to-feed", url, "-o", output, "--state", state)["new_urls"]) == 10
    (tmp_path / "other").mkdir()
    other = Headwater(tmp_path / "other", database_url)
    assert other.json("sitemap-to-feed", url, "-o", output, "--state", state)["new_urls"] == []
    site.publish(new="2025-01-02", gone="2025-01-03")
    site.origin.route("/gone", status=404)
    _, out, err = other.run("sitemap-to-feed", url, "-o", output, "--state", state, "--json")
    report = orjson.loads(out)
    assert "there is nothing at this address" in err
    assert report["new_urls"] == [site.origin.url("/new")]
    assert len(report["failures"]) == 1
    assert one.json("sitemap-to-feed", url, "-o", output, "--state", state)["new_urls"] == []
    assert not list(tmp_path.rglob("rss_incremental.db"))
    assert other.refused("sitemap", "restore", "--state", state).startswith(
        "a state in a database has no separate backups"
    )
