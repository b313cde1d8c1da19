"""Charts have axes with round numbers, tell their values, and escape what is not theirs."""

import re

import pytest

from headwater.web.plot import Scene, Series, durations_chart, linear_scale, lines_chart, stacked_bars

SCENE = Scene("<b>", ["one", "two", "three"], [(0.0, "<i>"), (0.5, "noon")])


@pytest.mark.parametrize(
    ("peak", "top"), [(0, 1), (3, 3), (7, 8), (13, 15), (64, 80), (2_999, 3_000), (360, 400)]
)
def test_linear_scale_ends_at_a_round_number(peak: float, top: float) -> None:
    found, lines = linear_scale(peak, "{:g}".format)
    assert found == top
    assert lines[0] == ("0", 1.0) and lines[-1][1] == 0.0
    assert 2 <= len(lines) <= 6


def test_stacked_bars_stand_on_each_other_and_tell_their_values() -> None:
    svg = stacked_bars([Series("New", [4, 0, 2], "c1"), Series("Old", [4, 1, 0], "c4")], SCENE)
    assert svg.count('class="fill c1"') == 2, "nothing is drawn for zero"
    first = re.findall(r'class="fill c\d" x="3.33%" y="([\d.]+)" width="26.67%" height="([\d.]+)"', svg)
    assert first == [("95.0", "95.0"), ("0.0", "95.0")]
    assert "<title>one\nNew: 4\nOld: 4</title>" in svg
    assert 'aria-label="&lt;b&gt;"' in svg and "&lt;i&gt;" in svg
    assert "style=" not in svg, "the policy forbids it"


def test_lines_are_broken_where_a_value_is_missing() -> None:
    svg = lines_chart([Series("Items", [1, None, 3], is_filled=True)], SCENE)
    assert svg.count('class="stroke c1"') == 2
    assert svg.count('class="area c1"') == 2


def test_durations_are_joined_over_gaps_and_measured_against_a_goal() -> None:
    scene = Scene("Delay", SCENE.places, (), tell="{:.0f} s".format, goal=(900.0, "Target"))
    svg = durations_chart([Series("Median", [30, None, 3_000])], scene)
    assert svg.count('class="stroke c1"') == 1
    assert 'class="goal"' in svg and "Target" in svg
    assert "20 s" in svg and "7200 s" in svg


def test_charts_of_nothing_are_empty_charts() -> None:
    empty = Scene("Nothing", [], [])
    assert "<rect" not in stacked_bars([Series("New", [])], empty)
    assert "<svg" in durations_chart([Series("Median", [])], empty)
