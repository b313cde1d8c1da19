"""The documentation cannot lie: what is made from the code is current, and every link leads somewhere."""

import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from docs.generate import EXAMPLES, FOR_PLUGINS, PAGES, step_types

import headwater
from headwater.cli.app import app
from headwater.collectors.types import TYPES, config_model_of
from headwater.config import FOREIGN_PREFIX, INTERVAL_VARIABLE, SECRET_PREFIX, load_settings
from headwater.publish.gallery import GALLERY
from headwater.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def links(path: Path) -> Iterator[tuple[Path, str]]:
    """What a document links to within the project: files, and the places in them."""
    text = re.sub(r"`[^`\n]*`", "", without_code(path.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text):
        if not target.startswith(("http://", "https://", "mailto:")):
            file, _, place = target.partition("#")
            yield (path.parent / file).resolve() if file else path, place


def places(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    found: Counter[str] = Counter()
    anchors = set()
    for heading in re.findall(r"^#+ +(.+?) *$", without_code(path.read_text(encoding="utf-8")), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return anchors


@each_document
def test_links_lead_somewhere(path: Path) -> None:
    for target, place in links(path):
        assert target.exists(), target
        assert not place or place in places(target), f"{target.name} has no heading #{place}"


def test_tests_named_in_documents_exist() -> None:
    for path in DOCUMENTS:
        for named in re.findall(r"`(tests/[\w/.]+)", path.read_text(encoding="utf-8")):
            assert (ROOT / named).exists(), f"{path.name}: {named}"


def test_chinese_readme_has_the_links_of_the_english_one() -> None:
    english, chinese = (
        {target for target, _ in links(ROOT / name)} for name in ("README.md", "README.zh-CN.md")
    )
    swapped = {
        ROOT / "README.zh-CN.md": ROOT / "README.md",
        ROOT / "docs/quickstart.md": ROOT / "docs/quickstart.zh-CN.md",
        ROOT / "docs/images/dashboard.png": ROOT / "docs/images/dashboard-zh.png",
    }
    assert {swapped.get(target, target) for target in english} - chinese == set()


def test_chinese_quickstart_has_the_examples_of_the_english_one() -> None:
    def commands(name: str) -> list[str]:
        return [" ".join(line) for line in command_lines(ROOT / "docs" / name)]

    assert commands("quickstart.zh-CN.md") == commands("quickstart.md")


def test_every_document_is_reached_from_the_index() -> None:
    reached, waiting = set(), [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [target for target, _ in links(page) if target.suffix == ".md"]
    assert [str(path.relative_to(ROOT)) for path in DOCUMENTS if path not in reached] == []


def test_every_document_is_in_the_sites_navigation() -> None:
    """But for single decisions, which their own list leads to."""
    navigation = set(
        re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    )
    pages = {str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")}
    assert navigation == {page for page in pages if not re.match(r"decisions/\d", page)}


def test_the_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        check=True,
    )
    assert (tmp_path / "reference" / "traceability" / "index.html").is_file()
    assert (tmp_path / "quickstart.zh-CN" / "index.html").is_file()


def command_lines(path: Path) -> Iterator[list[str]]:
    """What is typed at `headwater` in a document's examples, as arguments."""
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^ *```(?:sh|console|shell|bash|)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:[^\s=]*/)?headwater( .*)?$", line.strip()):
                typed = shlex.shlex(found[1] or "", posix=True, punctuation_chars="|&;<>")
                typed.whitespace_split = True
                yield list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), typed))


def parse_arguments(arguments: list[str]) -> None:
    """As the command itself would, without doing anything; raises where it would complain."""
    command: Any = typer.main.get_command(app)
    context = None
    while True:
        context = command.make_context(command.name, list(arguments), parent=context)
        if not hasattr(command, "commands"):
            return
        arguments = [*context._protected_args, *context.args]
        command = command.commands[arguments.pop(0)]


@each_document
def test_examples_of_commands_can_be_typed(path: Path) -> None:
    for arguments in command_lines(path):
        try:
            parse_arguments(arguments)
        except (typer.Exit, KeyError) as error:
            assert isinstance(error, typer.Exit), f"headwater {' '.join(arguments)}: no such command"
        except Exception as error:
            raise AssertionError(f"headwater {' '.join(arguments)}: {error}") from error


def test_every_entry_of_the_gallery_has_its_instructions() -> None:
    text = (ROOT / "docs/how-to/use-the-gallery.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.+?)(?=^## |\Z)", text, re.M | re.S))
    for entry in GALLERY:
        example = re.search(rf"headwater gallery use {entry.key}\b(.+?)```", sections[entry.name], re.S)
        assert example, entry.key
        needed = {field.key for field in entry.fields if field.default is None}
        assert needed <= set(re.findall(r"--set (\w+)=", example[1])), "all that it needs"


def test_a_wrong_example_would_be_noticed() -> None:
    parse_arguments(["source", "add", "https://example.org/", "--type", "rss"])
    for wrong in (
        ["source", "ad"],
        ["source", "add", "--tpye", "rss"],
        ["refresh", "--al"],
        ["key", "revoke", "x"],
    ):
        with pytest.raises(Exception, match=r"."):
            parse_arguments(wrong)


@each_document
def test_commands_and_options_named_in_passing_exist(path: Path) -> None:
    text = without_code(path.read_text(encoding="utf-8"))
    for words in (line.split() for line in re.findall(r"`(headwater [^`]+)`", text)):
        command: Any = typer.main.get_command(app)
        options = {name for each in command.params for name in each.opts + each.secondary_opts}
        for word in words[1:]:
            if word.startswith("-"):
                assert word.partition("=")[0] in options | {"-h", "--help", "…"}, " ".join(words)
            elif hasattr(command, "commands") and re.fullmatch(r"[a-z][a-z-]*", word):
                assert word in command.commands, " ".join(words)
                command = command.commands[word]
                options |= {name for each in command.params for name in each.opts + each.secondary_opts}


@each_document
def test_settings_named_in_documents_exist(path: Path) -> None:
    known = {name for setting in SETTINGS for name in setting.env}
    known |= {
        "FETCH_INTERVAL_LINES",
        "FETCH_INTERVAL_EXAMPLE_LINES",
    }  # of the type that the example of a plugin adds
    known |= {
        INTERVAL_VARIABLE + spelt.upper().replace(".", "_")
        for kind in TYPES
        for spelt in (kind.name, kind.alias or "")
    }
    for name in re.findall(
        r"\b(?:HEADWATER|COLLECTOR|FETCH_INTERVAL)_[A-Z_]*[A-Z]\b(?!\w)", path.read_text(encoding="utf-8")
    ):
        assert name in known or name.startswith((SECRET_PREFIX, FOREIGN_PREFIX)), name


@each_document
def test_make_targets_named_in_documents_exist(path: Path) -> None:
    targets = re.findall(r"^([a-z%-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    patterns = [target.replace("%", "[a-z]+") for target in targets]
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        assert any(re.fullmatch(pattern, name) for pattern in patterns), f"make {name}"


def test_make_help_tells_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in re.findall(r"^([a-z-]+):", makefile, re.MULTILINE):
        assert re.search(rf"^ *make {target}\b", told, re.MULTILINE), target


def test_the_example_environment_is_true(tmp_path: Path) -> None:
    """Every line of it can be used as it stands, and says what holds anyway."""
    lines = re.findall(r"^#([A-Z_]+=.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    names = {line.partition("=")[0] for line in lines}
    assert {setting.env[0] for setting in SETTINGS} <= names
    assert {
        "COLLECTOR_TICK",
        "COLLECTOR_CONCURRENCY",
        "FETCH_INTERVAL_RSS",
        "FETCH_INTERVAL_TWITTER_FEED",
    } <= names
    plain = load_settings(directory=tmp_path, environment={})
    (tmp_path / ".env").write_text("\n".join(line for line in lines if not line.endswith("=")))
    used = load_settings(directory=tmp_path, environment={})
    for setting in SETTINGS:
        assert getattr(used, setting.name) == getattr(plain, setting.name), setting.name
    for kind in TYPES:
        assert used.fetch_intervals.get(kind.name, kind.interval_minutes) == kind.interval_minutes


def test_every_key_of_a_config_is_in_the_reference() -> None:
    page = PAGES["docs/reference/types.md"]()
    for kind in TYPES:
        for name, field in config_model_of(kind.name).model_fields.items():
            assert field.description, f"{kind.name}: {name} has no description"
            assert re.search(rf"^\| `{name}` \|.*{re.escape(field.description)}", page, re.MULTILINE), name
    assert "| `fetch_interval_minutes` | a number from 0.01 to 525600 |" in page
    assert "| `password` | text |  | yes |" in page


def test_every_key_of_a_step_is_in_the_reference() -> None:
    page = PAGES["docs/reference/steps.md"]()
    assert page.count("\n## `") >= 7
    for step in step_types():
        for name, field in step.config_model.model_fields.items():
            assert field.description, f"{step.step_type}: {name} has no description"
    assert "| `api_key` | text | `${OPENAI_API_KEY}` | yes |" in page
    assert "| `max_input_characters` | a whole number from 100 to 900000 | `60000` |  |" in page
    assert re.search(r"^\| `max_output_tokens` \| a whole number \|  \|  \|", page, re.MULTILINE)


def test_python_reference_shows_what_plugins_are_given() -> None:
    page = PAGES["docs/reference/python.md"]()
    for thing in FOR_PLUGINS:
        assert f"\n### `{thing.__name__}`\n" in page
        if is_dataclass(thing):
            assert all(f"\n| `{field.name}` | " in page for field in fields(thing))
    assert all(f"```python\n{example}```" in page for example in EXAMPLES.values())
    assert "| `requests` | `int` | `1` |" in page


def test_the_public_api_is_what_it_was() -> None:
    """Adding a name is a decision, taking one away a broken promise: change this list on purpose only."""
    assert headwater.__all__ == [
        "Enclosure",
        "Entry",
        "FailureKind",
        "Feed",
        "HeadwaterError",
        "Hints",
        "IncrementalResult",
        "IncrementalStateCorrupted",
        "IncrementalStateManager",
        "ParseError",
        "Person",
        "SiteState",
        "SitemapEntry",
        "__version__",
        "parse",
    ]
    for name in headwater.__all__:
        assert getattr(headwater, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = headwater.nonsense


def test_the_public_names_are_shown() -> None:
    assert dir(headwater) == sorted(headwater.__all__)


def test_the_picture_of_rooms_is_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    rooms = {room for layer in layers for room in layer.split(" | ")}
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| room |") : page.index("## Read it")]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = {room for cell in first_cells for room in re.findall(r"`(\w+)`", cell)}
    assert shown == rooms


def test_scaling_counts_with_the_figures_of_performance() -> None:
    """Visits a second and a core's milliseconds are reckoned from one table of CPU seconds per 1,000 visits."""
    performance, scaling = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("performance.md", "scaling.md")
    )
    row = r"^\| Headwater, {} \| ([\d.]+)[^|]*\| ([\d.]+)[^|]*\| ([\d.]+)"
    measured = [re.search(row.format(kind), performance, re.MULTILINE) for kind in ("SQLite", "PostgreSQL")]
    [held] = re.findall(r"^\| visits a second that a core's CPU allows.*$", scaling, re.MULTILINE)
    told = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]{2,}", held)]
    reckoned = [1000 / float(found[phase]) for found in measured if found for phase in (2, 3, 1)]
    assert told == pytest.approx(reckoned, rel=0.1)
    [costs] = re.findall(r"visits a second · ([\d.]+) ms \(([\d.]+) ms where nothing is new\)", scaling)
    assert [float(cost) for cost in costs] == pytest.approx([1000 / reckoned[1], 1000 / reckoned[0]], rel=0.1)
