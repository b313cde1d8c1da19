"""Every example of the documents is run as it is printed, or says below it why the tests cannot.

The shell and Python examples of a page are run in their order by one shell, in its own home where Headwater is
installed. The internet is a stand-in on loopback. An example that cannot be run is followed by a line in italics that
says why, for readers too: *The tests do not run this: it needs Docker.* One that another test runs says how:
*The tests run this together with …*
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import Headwater
from tests.internet import Internet

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")])
RUN = ("sh", "python")
SHOWN = ("json", "toml", "yaml", "nginx", "ini", "text", "cron", "html", "xml")
REASON = re.compile(r"\s*\*(The tests [^*]+|测试[^*]+)\*")
# What a reason says: why the example cannot be run, or how another test runs it.
GOOD_REASON = re.compile(r"The tests (do not run this: \w+|run this \w+)|测试(不运行：|运行)")
# The targets of make that are run; `make test` would run itself.
MAKE = """case "$*" in
  demo) exec {make} --no-print-directory -C {root} -o .venv/.ready BIN={bin} demo ;;
  *) echo "the tests do not run make $*; say so below the example"; exit 1 ;;
esac"""
FRESH = ("README", "quickstart")  # pages that begin with an empty database
FOLDERS = {"news": range(1, 4), "News": range(4, 9)}


SERVING = """
python -m headwater serve > serve.log 2>&1 &
trap "kill $!" EXIT
until grep -q http:// serve.log; do sleep 0.2; kill -0 $!; done
"""
STEP = '{"step_type": "filter_content"}'
# Runs 1 to 18 have ended.
RUNS = f"""
echo '{{"name": "Old", "steps": [{STEP}, {STEP}, {STEP}]}}' > old.json
headwater pipeline add old.json
headwater runs start Old --source 1 --source 2 --source 3
python -m headwater worker &
until [ "$(headwater runs list --status completed --json | jq length)" = 18 ]; do sleep 0.2; done
kill $!; wait
"""
# The function that use-the-api.md defines, on a server that runs.
_API = re.search(
    r"^api\(\) .*\n", (ROOT / "docs/how-to/use-the-api.md").read_text(encoding="utf-8"), re.MULTILINE
)
assert _API is not None
CALLING = f"{SERVING}export KEY=$(headwater key add docs --scope admin --json | jq -r .key)\n{_API[0]}"
# What a page takes for granted.
PREPARE = {
    "docs/how-to/let-rules-read.md": CALLING,
    "docs/how-to/run-pipelines.md": RUNS,
    "docs/how-to/use-the-api.md": RUNS
    + SERVING
    + """
headwater key add other
headwater key add another
export KEY=$(headwater key add docs --scope admin --json | jq -r .key)
""",
}


@dataclass(frozen=True)
class Example:
    line: int
    language: str
    text: str
    excused: bool  # the page says why the tests do not run it


def examples(page: str) -> Iterator[Example]:
    for found in re.finditer(r"^( *)```(.*)\n((?:.*\n)*?)\1```$", page, re.MULTILINE):
        text = re.sub(rf"^{found[1]}", "", found[3], flags=re.MULTILINE)
        line = page.count("\n", 0, found.start()) + 1
        yield Example(line, found[2].strip(), text, REASON.match(page, found.end()) is not None)


def examples_to_run(path: Path) -> list[Example]:
    found = examples(path.read_text(encoding="utf-8"))
    return [each for each in found if each.language in RUN and not each.excused]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_examples_say_their_language(path: Path) -> None:
    for each in examples(path.read_text(encoding="utf-8")):
        known = f"{', '.join(RUN)} (which are run) or {', '.join(SHOWN)}"
        assert each.language in RUN + SHOWN, f"{named(path)}:{each.line}: after ``` comes {known}"


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_fence_is_an_example_and_every_reason_says_why(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    fences = re.findall(r"^[ >*-]*(?:```|~~~)", page, re.MULTILINE)
    assert len(fences) == 2 * len(list(examples(page))), "an example is between two lines of three backticks"
    for found in re.finditer(r"^```$" + REASON.pattern, page, re.MULTILINE):
        assert GOOD_REASON.match(found[1]), found[1]


def test_examples_are_found_with_their_reasons() -> None:
    excused = "```sh\na\n```\n\n*The tests do not run this: x.*\n"
    page = excused + "\n1. b\n   ```python\n   c\n     d\n   ```\n\n*Other* text\n"
    assert list(examples(page)) == [Example(1, "sh", "a\n", True), Example(8, "python", "c\n  d\n", False)]


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    hosts = {"example.org", *re.findall(r"https?://([a-z][a-z0-9.-]*\.[a-z]+)", text)}
    with Internet(tmp_path_factory.mktemp("internet"), tuple(sorted(hosts))) as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def furnished(internet: Internet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with eight sources and their items, to be copied."""
    folder = tmp_path_factory.mktemp("furnished")
    outlines = "".join(
        f'<outline text="{name}">'
        + "".join(
            f'<outline type="rss" text="Source {n}" xmlUrl="https://example.org/{n}.xml"/>' for n in numbers
        )
        + "</outline>"
        for name, numbers in FOLDERS.items()
    )
    (folder / "feeds.opml").write_text(f'<opml version="2.0"><body>{outlines}</body></opml>')
    headwater = Headwater(folder, f"sqlite:///{folder / 'headwater.db'}")
    headwater.environment |= internet_settings(internet)
    headwater.ok("import", "feeds.opml")
    headwater.ok("collect", "--all")
    return folder


def internet_settings(internet: Internet) -> dict[str, str]:
    return {
        "HEADWATER_PROXY": internet.proxy,
        "http_proxy": internet.proxy,  # for curl
        "https_proxy": internet.proxy,
        "SSL_CERT_FILE": str(internet.ca_file),
        "CURL_CA_BUNDLE": str(internet.ca_file),
    }


def make_home(home: Path, furnished: Path, *, fresh: bool) -> None:
    """What a reader of the page has: the command, some files, and a database unless the page begins with none."""
    bin_folder = home / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    commands = {
        "headwater": f'exec {sys.executable} -m tests.snippet_command "$@"',
        "python": f'exec {sys.executable} "$@"',
        "make": MAKE.format(make=shutil.which("make"), root=ROOT, bin=bin_folder),
    }
    for name, run in commands.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{run}\n")
        (bin_folder / name).chmod(0o755)
    (bin_folder / "activate").write_text("")
    shutil.copy(furnished / "feeds.opml", home / "feeds.opml")
    shutil.copy(furnished / "feeds.opml", home / "subscriptions.opml")
    (home / "feed.xml").write_text("<rss version='2.0'><channel><title>T</title></channel></rss>")
    (home / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")  # a refusal fails the example
    (home / "template.json").write_text('{"name": "short", "steps": [{"step_type": "filter_content"}]}')
    page = (ROOT / "docs" / "how-to" / "run-pipelines.md").read_text(encoding="utf-8")
    (home / "videos.json").write_text(next(each.text for each in examples(page) if each.language == "json"))
    if not fresh:
        data = home / ".local" / "share" / "headwater"
        data.mkdir(parents=True, mode=0o700)
        shutil.copy(furnished / "headwater.db", data / "headwater.db")
        (data / "headwater.db").chmod(0o600)


def script_of(path: Path, home: Path) -> str:
    """The page's examples in their order, as one script that ends with the first that fails."""
    lines = ["set -eo pipefail"]
    for each in examples_to_run(path):
        lines.append(f"echo '--- {path.name}:{each.line}'")
        if each.language == "python":
            (home / f"line_{each.line}.py").write_text(each.text, encoding="utf-8")
            lines.append(f"python line_{each.line}.py")
        else:
            lines.append(each.text)
    return "\n".join(lines)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("path", [path for path in PAGES if examples_to_run(path)], ids=named)
def test_examples_of_a_page_run_as_printed(
    path: Path, internet: Internet, furnished: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    make_home(home, furnished, fresh=path.name.startswith(FRESH))
    environment = {
        "PATH": f"{home / '.venv' / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "HEADWATER_LANGUAGE": "en",
        "HEADWATER_PORT": "0",
        "HEADWATER_HOST_SPACING_SECONDS": "0",
        "HEADWATER_SECRET_EXAMPLE_TOKEN": "token",
        "HEADWATER_SECRET_HOOK_SECRET": "secret",
    } | internet_settings(internet)
    internet.serve_log = home / "serve.log"
    script = "set -e\n" + PREPARE.get(named(path), "") + script_of(path, home)
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=360)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, out[-3000:]
