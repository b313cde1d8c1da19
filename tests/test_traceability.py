"""Every requirement of the design documents has tests, and they are there."""

import re
from collections import Counter

import pytest
from docs.traceability import TESTS, Requirement, find_tests, read_requirements, traceability_page
from hypothesis import settings

from tests.properties import test_cadence_properties

TITLES, REQUIREMENTS = read_requirements()
EXISTING = find_tests()


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda each: each.id)
def test_a_requirement_has_tests_that_exist(requirement: Requirement) -> None:
    assert bool(requirement.tests) != bool(requirement.not_built), "tested, or marked as not built"
    assert not (requirement.changed and requirement.not_built)
    assert requirement.text and requirement.original
    assert requirement.document in TITLES
    missing = [test for test in requirement.tests if test not in EXISTING]
    assert not missing, "renamed or removed? say so in tests/requirements.toml"


def test_requirements_are_named_once() -> None:
    assert [name for name, count in Counter(each.id for each in REQUIREMENTS).items() if count > 1] == []


def test_no_document_is_forgotten() -> None:
    """The numbers that the documents themselves give to their requirements are all there."""
    ids = {each.id for each in REQUIREMENTS}
    assert {f"CADENCE-P{number}" for number in range(1, 13)} <= ids
    assert {f"COLLECTOR-{row}" for row in range(1, 19)} <= ids
    assert {f"COLLECTOR-FR-{number}" for number in range(1, 6)} <= ids
    assert {f"SITEMAP-DEGRADE-{level}" for level in (1, 2, 3)} <= ids
    assert {each.document for each in REQUIREMENTS} == {
        "CADENCE",
        "SITEMAP",
        "PIPELINE",
        "COLLECTOR",
        "REFRESH",
    }


def test_departures_are_told() -> None:
    """What the documents ask for and is done otherwise, or not at all, has rows that say so."""
    rows = {each.id: each for each in REQUIREMENTS}
    for row in (2, 3, 4, 5, 15, 16):
        assert "HEADWATER_POLICY=interval" in rows[f"COLLECTOR-{row}"].changed
    page = traceability_page()
    assert "**Changed:** " in page
    assert ("**Not built yet:** " in page) is any(each.not_built for each in REQUIREMENTS)


def test_the_twelve_properties_stand_under_their_lines() -> None:
    """# Feature: rss-smart-scheduler, Property N: {property_text}, each at least 100 examples."""
    text = (TESTS / "properties" / "test_cadence_properties.py").read_text(encoding="utf-8")
    found = re.findall(
        r"^# Feature: rss-smart-scheduler, Property (\d+): (.+)\n(?:@.*\n(?: .*\n|\)\n)*)*?@?(?:.*\n)*?def (test_\w+)",
        text,
        re.MULTILINE,
    )
    properties = {each.id: each for each in REQUIREMENTS if re.fullmatch(r"CADENCE-P\d+", each.id)}
    assert [int(number) for number, _, _ in found] == list(range(1, 13))
    for number, words, name in found:
        assert words == properties[f"CADENCE-P{number}"].original
        assert f"properties/test_cadence_properties.py::{name}" in properties[f"CADENCE-P{number}"].tests
        kept = getattr(test_cadence_properties, name)._hypothesis_internal_use_settings
        assert isinstance(kept, settings)
        assert kept.max_examples >= 100
