"""The documentation cannot lie: what is made from the code is current, and every link leads somewhere."""

import re
from pathlib import Path

import pytest
from docs.generate import PAGES, step_types

import headwater
from headwater.collectors.types import TYPES, config_model_of

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) + re.findall(
        r'(?:src|href)="([^"#]+)"', text
    ):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_named_in_documents_exist(path: Path) -> None:
    known = set(
        re.findall(r"^## `(headwater[^`]*)`", PAGES["docs/reference/commands.md"](), flags=re.MULTILINE)
    )
    for line in re.findall(
        r"^(?:\$ )?(headwater [a-z].*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE
    ):
        words = line.split()
        assert " ".join(words[:2]) in known or " ".join(words[:3]) in known, line


def test_every_key_of_a_config_is_in_the_reference() -> None:
    page = PAGES["docs/reference/types.md"]()
    for kind in TYPES:
        for name, field in config_model_of(kind.name).model_fields.items():
            assert field.description, f"{kind.name}: {name} has no description"
            assert re.search(rf"^\| `{name}` \|.*{re.escape(field.description)}", page, re.MULTILINE), name
    assert "| `fetch_interval_minutes` | a number from 0.01 to 525600 |" in page
    assert "| `password` | text | yes |" in page


def test_every_key_of_a_step_is_in_the_reference() -> None:
    page = PAGES["docs/reference/steps.md"]()
    assert page.count("\n## `") >= 7
    for step in step_types():
        for name, field in step.config_model.model_fields.items():
            assert field.description, f"{step.step_type}: {name} has no description"
    assert "| `api_key` | text | yes |" in page
    assert re.search(r"^\| `max_output_tokens` \| a whole number \|  \|", page, re.MULTILINE)


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
