"""What the five design documents ask for, and which tests prove it: tests/requirements.toml as objects and as a page.

Tests are found by reading the files, so that nothing of theirs needs to be importable.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
TEXT = """# What was asked for, and the tests that prove it

Headwater was built from five design documents. These are their requirements with the tests that fail when one is not
met. Where something is done in another way than its document says, the row says *changed* and why; what is *not built
yet* is listed too. A requirement that is neither tested nor marked as not built fails the build. The list is
`tests/requirements.toml`. Where two documents contradict each other, one way was chosen and the others are settings:
[scheduling](../scheduling.md) and the [decisions](../decisions/README.md) say which.

COUNTS
"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing a document asks for. Tests are named as `path under tests/::name`.

    `changed`: how and why it is done otherwise. `not_built`: what there is instead.
    """

    id: str
    text: str
    original: str
    tests: tuple[str, ...] = ()
    changed: str = ""
    not_built: str = ""

    @property
    def document(self) -> str:
        return self.id.partition("-")[0]


def read_requirements() -> tuple[dict[str, str], list[Requirement]]:
    """The documents' titles by name, and all requirements in their order."""
    content: dict[str, Any] = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))
    titles = {each["name"]: each["title"] for each in content["document"]}
    return titles, [
        Requirement(**each | {"tests": tuple(each.get("tests", ()))}) for each in content["requirement"]
    ]


def find_tests() -> set[str]:
    """Every test there is."""
    return set(_tests_in_files())


def _tests_in_files() -> Iterator[str]:
    for path in TESTS.rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(TESTS)}::{node.name}"


def traceability_page() -> str:
    titles, requirements = read_requirements()
    by_document = {name: [each for each in requirements if each.document == name] for name in titles}
    counts = "".join(
        f"| {name} | {titles[name]} | {len(rows)} | {sum(bool(each.changed) for each in rows)}"
        f" | {sum(bool(each.not_built) for each in rows)} |\n"
        for name, rows in by_document.items()
    )
    head = "| document | about | requirements | changed | not built yet |\n|---|---|---|---|---|\n"
    text = TEXT.replace("COUNTS", head + counts)
    for name, rows in by_document.items():
        text += f"\n## {name}: {titles[name]}\n\n| | requirement | in the document | proven by |\n|---|---|---|---|\n"
        text += "".join(
            f"| {each.id} | {each.text}{_remark(each)} | {each.original} | {'<br>'.join(map(_link, each.tests))} |\n"
            for each in rows
        )
    return text


def _remark(requirement: Requirement) -> str:
    if requirement.not_built:
        return f"<br>**Not built yet:** {requirement.not_built}"
    return f"<br>**Changed:** {requirement.changed}" if requirement.changed else ""


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../tests/{path})"
