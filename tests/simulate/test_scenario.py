"""The scenarios that come with the product keep their bounds."""

from pathlib import Path

import pytest

from headwater.errors import InputError
from headwater.simulate.scenario import list_scenarios, load_scenario, run_scenario

QUICK = """
[[case]]
name = "one"
days = 3
sources = [{ name = "a", per_day = 10 }]
expect = [{ measure = "visits_per_day", at_least = 1, at_most = 20 }, { measure = "missed", at_most = -1 }]
"""


@pytest.mark.parametrize("name", list_scenarios())
def test_scenario_keeps_its_bounds(name: str) -> None:
    findings = list(run_scenario(load_scenario(name)))
    assert findings
    assert [finding.to_json() for finding in findings if not finding.is_met] == []


def test_scenario_from_a_file_says_which_bounds_are_met(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(QUICK, encoding="utf-8")
    first, second = run_scenario(load_scenario(str(path)))
    assert (first.is_met, first.bound, first.days) == (True, "1–20", "0–")
    assert (second.is_met, second.seen, second.measure) == (False, 0.0, "missed")


@pytest.mark.parametrize(
    "text", ["", "case = 1", "[[case]]\nname = 'x'", QUICK.replace("per_day", "per_week"), "[[["]
)
def test_scenario_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is not a scenario"):
        load_scenario(str(path))
    with pytest.raises(InputError, match="punctual"):
        load_scenario("nowhere")
