"""Plugins: what other packages bring works everywhere, and what is wrong with one harms that one alone."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from headwater import plugins
from headwater.collectors import types
from headwater.collectors.base import Collector, FetchRequest, FetchResult
from headwater.collectors.types import disabled_types, find_type, intervals_by_type, source_types
from headwater.errors import InputError
from headwater.pipeline.steps.base import Step
from headwater.plugins import COLLECTORS, STEPS, load_plugins
from tests.command import Headwater
from tests.origin import Origin

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "headwater-example-collector"
CACHES = (load_plugins, types._plugin_types, types._all_by_any_name, types.collector_of)


class Good(Collector):
    alias = "good"
    interval_minutes = 7

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        return FetchResult()


class WithOurAlias(Good):
    alias = "sitemap"


class WithoutPatience(Good):
    interval_minutes = 0


class CannotBeMade(Good):
    def __init__(self) -> None:
        raise ValueError("no key is set")


class Unfinished(Collector):
    pass


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """A list of entry points: what is put into it is installed."""
    entries: list[EntryPoint] = []
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: EntryPoints(each for each in entries if each.group == group)
    )
    for cached in CACHES:
        cached.cache_clear()
    yield entries
    for cached in CACHES:
        cached.cache_clear()


def entry(name: str, value: str, group: str = COLLECTORS) -> EntryPoint:
    return EntryPoint(name, value if ":" in value else f"{__name__}:{value}", group)


def test_a_plugin_is_a_type_like_any_other(installed: list[EntryPoint]) -> None:
    installed.append(entry("web.good", "Good"))
    assert find_type("good") is find_type("web_good") is find_type("WEB.GOOD")
    assert source_types()[-1].name == "web.good"
    assert intervals_by_type({}, {})["web.good"] == 7
    assert intervals_by_type({"good": 3}, {})["web.good"] == 3
    assert isinstance(types.collector_of("web.good"), Good)


def test_our_own_types_are_found_without_looking_for_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: pytest.fail("it looked"))
    load_plugins.cache_clear()
    for spelling in ("rss", "web_sitemap", "hackernews"):
        assert find_type(spelling).package is None


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("web.broken", "no_such_package:Thing", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("web.broken", "NoSuchClass", "AttributeError"),
        ("web.broken", "entry", "is not a class that extends Collector"),
        ("web.broken", "Unfinished", "does not define collect"),
        ("web.broken", "CannotBeMade", "ValueError: no key is set"),
        ("web.broken", "WithoutPatience", "interval_minutes = 0 is not between"),
        ("web.broken", "WithOurAlias", "sitemap is built in"),
        ("rss.feed", "Good", "rss.feed is built in"),
        ("Broken", "Good", "name of two parts"),
    ],
)
def test_a_broken_plugin_disables_itself_and_says_why(
    installed: list[EntryPoint], caplog: pytest.LogCaptureFixture, name: str, value: str, problem: str
) -> None:
    installed += [entry(name, value), entry("web.good", "Good")]
    assert find_type("good").name == "web.good", "the others work"
    (disabled,) = disabled_types()
    assert problem in disabled.problem.render("en")
    assert len([line for line in caplog.messages if f"the plugin {name} of" in line]) == 1
    if name == "web.broken":
        with pytest.raises(InputError, match="is disabled: ") as caught:
            find_type(name)
        assert "no source type" not in str(caught.value)
    assert find_type("rss.feed").package is None


@pytest.mark.parametrize(
    ("name", "written", "problem"),
    [
        ("leaving_plugin", "import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("interrupting_plugin", "raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    ],
)
def test_a_plugin_that_ends_the_program_does_not(
    installed: list[EntryPoint],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    written: str,
    problem: str,
) -> None:
    (tmp_path / f"{name}.py").write_text(written)
    monkeypatch.syspath_prepend(tmp_path)
    installed.append(entry("web.leaving", f"{name}:Thing"))
    assert problem in disabled_types()[0].problem.render("en")


def test_of_two_with_one_name_neither_is_used(installed: list[EntryPoint]) -> None:
    installed += [entry("web.good", "Good"), entry("web.good", "WithOurAlias")]
    with pytest.raises(InputError, match="2 packages bring one of this name"):
        find_type("web.good")


def test_steps_go_through_the_same_door(installed: list[EntryPoint]) -> None:
    installed += [entry("count_words", "Good", STEPS), entry("filter_content", "Good", STEPS)]
    found = load_plugins(STEPS, Step, frozenset({"filter_content"}))
    problems = {each.name: each.problem.render("en") for each in found.disabled}
    assert not found.usable
    assert "not a class that extends Step" in problems["count_words"]
    assert "built in" in problems["filter_content"]


@pytest.fixture(scope="session")
def example_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package as pip installs it, in its own directory; no network."""
    site = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"),
            *("--no-deps", "--no-build-isolation", "--no-compile", "--target", str(site), str(EXAMPLE)),
        ],
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(site)},
        capture_output=True,
        timeout=120,
    )
    return site


def served(headwater: Headwater) -> tuple[str, Any]:
    """The page of the first source and what the API says of the collector, from its own server."""
    process = headwater.start("serve", HEADWATER_PORT="0")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        key = headwater.json("key", "add", "reader")["key"]
        with urllib.request.urlopen(f"{address}sources/1", timeout=20) as answer:
            page = answer.read().decode()
        request = urllib.request.Request(
            f"{address}api/collector/status", headers={"Authorization": f"Bearer {key}"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return page, json.load(answer)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def example_is_listed(headwater: Headwater) -> bool:
    return "headwater-example-collector 1.0" in headwater.ok("plugins")


@pytest.mark.slow
def test_the_example_works_once_it_is_installed(
    example_site: Path, tmp_path: Path, database_url: str, origin: Origin
) -> None:
    headwater = Headwater(tmp_path, database_url)
    url = origin.route(
        "/changes.txt", body="- one\n- two\nnot an item\n", content_type="text/plain", etag='"1"'
    )
    assert "there is no source type lines" in headwater.refused("source", "add", url, "--type", "lines")

    assert headwater.ok("plugins").startswith("There are no plugins.")
    headwater.environment["PYTHONPATH"] = str(example_site)
    assert example_is_listed(headwater)
    names = {(row["kind"], row["name"]): row["problem"] for row in headwater.json("plugins")}
    assert names == {("collector", "example.lines"): None, ("step", "count_words"): None}
    refused = headwater.refused("source", "add", url, "--type", "lines", "--config", "colour=red")
    assert "config of example.lines: there is no key colour" in refused
    added = headwater.json("source", "add", url, "--type", "lines", "--config", "marker=-")
    assert added["type"] == "example.lines"
    assert [item["title"] for item in headwater.json("items")] == ["two", "one"]
    intervals = {"FETCH_INTERVAL_LINES": "3", "HEADWATER_POLICY": "interval"}
    report = headwater.json("collect", "--source", str(added["id"]), **intervals)
    assert report["unchanged"] == 1, "the second visit is conditional"
    plan = headwater.json("source", "show", str(added["id"]))["plan_reason"]
    assert plan["interval"] == 180

    template = {"name": "Words", "steps": [{"step_type": "count_words", "config": {"field": "title"}}]}
    (tmp_path / "words.json").write_text(json.dumps(template))
    headwater.ok("pipeline", "add", str(tmp_path / "words.json"))
    runs = headwater.work_until_ended(*headwater.json("runs", "start", "Words", "--all")["started"])
    assert [run["steps"][0]["output_data"] for run in runs] == [{"words": 1}, {"words": 1}]

    page, status = served(headwater)
    assert "example.lines" in page
    assert [source["type"] for source in status["sources"]] == ["lines"]

    # Uninstalled: its sources stay, their visits say what is missing, and nothing else suffers.
    del headwater.environment["PYTHONPATH"]
    headwater.run("collect", "--source", str(added["id"]), HEADWATER_POLICY="interval")
    shown = headwater.json("source", "show", str(added["id"]))
    assert "there is no source type example.lines" in shown["last_error"]


@pytest.mark.slow
def test_the_examples_own_tests_pass(example_site: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(EXAMPLE)],
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(example_site)},
        cwd=example_site,
        timeout=120,
        capture_output=True,
    )
