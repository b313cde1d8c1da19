"""Makes the step types of tests/plugin_steps.py known the way a plugin's are: by a distribution's entry points."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.pipeline import registry
from headwater.plugins import load_plugins

STEPS = {
    "note_test": "Note",
    "make_test": "Make",
    "where_test": "Where",
    "fail_test": "Fail",
    "bug_test": "Bug",
    "absent_test": "Absent",
    "post_test": "Post",
    "deadly_test": "Deadly",
    "stubborn_test": "Stubborn",
    "heavy_test": "Heavy",
    "dying_test": "Dying",
    "talk_test": "Talk",
}
ROOT = Path(__file__).parents[1]


def install(directory: Path, *more: str) -> str:
    """Write the plugin's metadata, with `more` entry points, into `directory`; returns the PYTHONPATH that finds it."""
    metadata = directory / "headwater_test_steps-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: headwater-test-steps\nVersion: 1.0\n")
    lines = [f"{name} = tests.plugin_steps:{kind}" for name, kind in STEPS.items()]
    (metadata / "entry_points.txt").write_text("\n".join(("[headwater.steps]", *lines, *more)) + "\n")
    return os.pathsep.join((str(directory), str(ROOT)))


@pytest.fixture
def step_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The test's step types are known in this process and, by the PYTHONPATH it gives, in others."""
    path = install(tmp_path / "plugin")
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "plugin"), *sys.path])
    forget()
    yield path
    monkeypatch.undo()
    forget()


def forget() -> None:
    registry._handler.cache_clear()
    load_plugins.cache_clear()
