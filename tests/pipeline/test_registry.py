"""Step types are found by name, and a broken plugin harms no other."""

import logging
import sys
from pathlib import Path

import pytest

from headwater import plugins
from headwater.errors import NotFoundError
from headwater.pipeline.registry import STEP_HANDLERS, find_step
from tests.plugins import forget, install


def test_the_types_of_plugins_are_known_beside_our_own(step_plugin: str) -> None:
    assert "note_test" in STEP_HANDLERS
    assert STEP_HANDLERS["note_test"].step_type == "note_test"
    assert len(STEP_HANDLERS) == len(list(STEP_HANDLERS)) == len(dict(STEP_HANDLERS))
    assert "base" not in STEP_HANDLERS
    assert "no_such_step" not in STEP_HANDLERS


def test_a_broken_plugin_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(
        tmp_path,
        "broken_test = tests.no_such_module:Step",
        "wrong_test = tests.plugin_steps:Note",
        "filter_content = tests.plugin_steps:Note",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    forget()
    try:
        with caplog.at_level(logging.WARNING, plugins.__name__):
            names = set(STEP_HANDLERS)
        with pytest.raises(NotFoundError, match="its step_type is note_test, not wrong_test"):
            find_step("wrong_test")
    finally:
        monkeypatch.undo()
        forget()
    assert "note_test" in names
    assert not {"broken_test", "wrong_test"} & names
    assert len(caplog.records) == 3, "one of our own cannot be replaced either"
    assert STEP_HANDLERS["filter_content"].step_type == "filter_content"
