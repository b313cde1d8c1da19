"""What is wrong with a template is said when it is saved, with the step and the field."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import InputError, NotFoundError
from headwater.pipeline.templates import read_template, shown_steps
from headwater.store.core.database import Store
from headwater.store.pipelines.attaching import remove_template
from headwater.store.pipelines.templates import (
    DEFAULT_OUTLET,
    add_template,
    change_template,
    check_template,
    find_template,
    list_templates,
)
from headwater.store.reading.outlets import Outlet, add_outlet, list_outlets
from tests.pipeline.making import make_items, make_template, step

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("step_plugin")


def test_a_step_is_written_out_in_full() -> None:
    template = read_template({"name": "one", "steps": [{"step_type": "note_test", "is_critical": False}]})
    assert template.steps == (
        {
            "step_type": "note_test",
            "is_critical": False,
            "config": {},
            "timeout_seconds": None,
            "retries": 0,
        },
    )


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"step_type": "note"}], "step 1 (note): there is no step type note; there are "),
        ([{"is_critical": True}], "step 1: the field step_type is missing"),
        (["note_test"], "step 1: a step is an object: {"),
        (
            [step("note_test"), {"step_type": "note_test", "critical": True}],
            "step 2 (note_test): there is no field critical; it takes config, is_critical, retries, step_t",
        ),
        (
            [step("note_test", colour="red")],
            "step 1 (note_test): there is no field config.colour; it takes end_run, s",
        ),
        (
            [step("note_test", seconds=-1)],
            "step 1 (note_test): config.seconds = -1 is wrong: it takes 0 or more",
        ),
        ([step("note_test", token=12345)], "step 1 (note_test): config.token = *** is wrong"),
        ([step("note_test", text="forbidden")], "step 1 (note_test): config.text must not be forbidden"),
        ([step("note_test", timeout=0)], "step 1 (note_test): timeout_seconds = 0 is wrong"),
        ([step("note_test", retries="2")], "step 1 (note_test): retries = 2 is wrong"),
        (
            [step("absent_test")],
            "step 1 (absent_test) needs what is not installed: pip install 'headwater[video]'",
        ),
        ([], "template: steps = [] is wrong"),
    ],
)
def test_every_mistake_is_named(steps: list[Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_template({"name": "one", "steps": steps})
    assert str(caught.value).startswith(message)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"steps": [step("note_test")]}, "template: the field name is missing"),
        (
            {"name": "x", "steps": [step("note_test")], "colour": 1},
            "template: there is no field colour; it takes",
        ),
        ([], "template: the field name is missing"),
        ("note_test", "a template is an object with a name and steps, or a list of steps"),
        (None, "a template is an object with a name and steps, or a list of steps"),
        ({"name": 7, "steps": [step("note_test")]}, "template: name = 7 is wrong: it takes text"),
        ({"name": "", "steps": [step("note_test")]}, "template: name =  is wrong: it takes at least 1"),
        ({"name": "x", "steps": {"a": 1}}, "template: steps = {'a': 1} is wrong: it takes a list"),
        ({"name": "x", "steps": []}, "template: steps = [] is wrong: it takes at least 1"),
    ],
)
def test_mistakes_of_the_template_itself(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_template(data)
    assert str(caught.value).startswith(message)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "steps", "step_type", "config", "retries", "timeout_seconds", "x"]),
                inner,
            )
        ),
        max_leaves=12,
    )
)
@settings(deadline=None)
def test_read_template_of_anything_returns_or_says_what_is_wrong_in_plain_words(data: Any) -> None:
    try:
        read_template(data, "name")
    except InputError as error:
        assert not re.search(r"_Written|Input should|instance of|dictionary", str(error))


def test_template_that_is_a_list_takes_the_name_it_is_given() -> None:
    assert read_template([step("note_test")], "mine").name == "mine"
    assert read_template({"name": "own", "steps": [step("note_test")]}, "mine").name == "own"


def example_templates() -> list[Any]:
    """What documents show as templates and steps, in blocks of JSON and in files made by a shell."""
    found = []
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("README*.md")]):
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        blocks += re.findall(r"<<'END'\n(.*?)^END", text, re.DOTALL | re.MULTILINE)
        found += [
            pytest.param(json.loads(block), id=f"{path.stem}-{number}")
            for number, block in enumerate(blocks)
            if '"step_type"' in block
        ]
    return found


@pytest.mark.parametrize("example", example_templates())
def test_example_of_a_document_can_be_added(store: Store, example: Any) -> None:
    template = read_template([example] if "step_type" in example else example, "example")
    with store.writing() as connection:
        for name in set(template.outlets) - {DEFAULT_OUTLET}:
            add_outlet(connection, Outlet(name, name), 1.0)
        check_template(connection, template)
        added = add_template(connection, template, 1.0)
    assert added.steps == template.steps


def test_template_that_publishes_without_naming_an_outlet_makes_the_default_one(store: Store) -> None:
    template = read_template([step("publish_content")], "one")
    with store.writing() as connection:
        check_template(connection, template)
        assert list_outlets(connection) == []
        add_template(connection, template, 1.0)
        add_template(connection, read_template([step("publish_content")], "two"), 2.0)
        (outlet,) = list_outlets(connection)
        assert (outlet.name, outlet.selection.outlet) == (DEFAULT_OUTLET, DEFAULT_OUTLET)
        other = read_template([step("publish_content", outlet="best")], "three")
        for store_it in (check_template, lambda connection, other: add_template(connection, other, 3.0)):
            with pytest.raises(InputError, match="the outlet best, but there is none") as caught:
                store_it(connection, other)
            assert "headwater outlet add best --by-pipelines" in caught.value.render_with_hint("en")


def test_secrets_are_not_shown(store: Store) -> None:
    template = make_template(store, step("note_test", token="hush", text="a"))
    assert shown_steps(template)[0]["config"] == {"token": "***", "text": "a"}


def test_templates_are_kept_found_changed_and_removed(store: Store) -> None:
    template = make_template(store, step("note_test"), name="7", run_on_change=True, description="A test")
    other = make_template(store, step("note_test"), name="other")
    with store.writing() as connection:
        assert find_template(connection, "7") == template, "a name that is a number"
        assert find_template(connection, str(other.id)) == other
        with pytest.raises(InputError, match="template"):
            add_template(connection, read_template({"name": "7", "steps": [step("note_test")]}), 1.0)
        changed = change_template(
            connection, template.id, read_template({"name": "8", "steps": [step("fail_test")]}), 9.0
        )
        assert (changed.name, changed.updated_at, changed.run_on_change) == ("8", 9.0, False)
        remove_template(connection, other.id)
        assert list_templates(connection) == [changed]
        with pytest.raises(NotFoundError):
            find_template(connection, "other")
        with pytest.raises(NotFoundError, match="99999999999999999999"):
            find_template(connection, "99999999999999999999")
    make_items(store, 1)


def test_read_template_of_deep_nesting_is_an_input_error() -> None:
    nested: Any = {}
    for _ in range(5_000):
        nested = [nested]
    with pytest.raises(InputError, match="nested more than 50 levels"):
        read_template(
            {"name": "deep", "steps": [{"step_type": "filter_content", "config": {"where": nested}}]}
        )
