"""What is wrong with a template is said when it is saved, with the step and the field."""

from typing import Any

import pytest

from headwater.errors import InputError, NotFoundError
from headwater.pipeline.templates import read_template, shown_steps
from headwater.store.database import Store
from headwater.store.templates import (
    add_template,
    change_template,
    find_template,
    list_templates,
    remove_template,
)
from tests.pipeline.making import make_items, make_template, step

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
        (["note_test"], "step 1: "),
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
            "step 1 (note_test): config.seconds = -1 is wrong: Input should be greater than or equal to 0",
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
        ([], "template: * = *** is wrong"),
        ({"name": "", "steps": [step("note_test")]}, "template: name =  is wrong"),
    ],
)
def test_mistakes_of_the_template_itself(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_template(data)
    assert str(caught.value).startswith(message)


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
