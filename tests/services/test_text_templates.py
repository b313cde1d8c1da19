"""Templates are filled, and those that calculate for ever or without measure are ended."""

import asyncio
import time

import pytest

from headwater.errors import InputError
from headwater.pipeline.steps.base import StepError
from headwater.services import text_templates
from headwater.services.text_templates import check_template, fill, fill_all

ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% set x = a * b %}{% endfor %}{% endfor %}"
GIANT = "{{ ('a' * 2000000000) | length }}"


async def test_fill_of_blanks_needs_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_templates, "_children", None)
    values = {"item": {"title": "River", "url": None}}
    text = "{{ item.title | upper }}{% if item.url %} at {{ item.url }}{% endif %} {{ item.none | default('-') }}"
    assert await fill("body", text, values) == "RIVER -"
    with pytest.raises(StepError, match="body: the template cannot be filled"):
        await fill("body", "{{ item.missing }}", values)


async def test_fill_of_loops_and_sums_gives_the_same_as_before() -> None:
    filled = await fill_all(
        {"a": "{% for n in range(3) %}{{ n }},{% endfor %}", "b": "{{ 6 * 7 }}", "c": "{{ x }}"}, {"x": "y"}
    )
    assert filled == {"a": "0,1,2,", "b": "42", "c": "y"}
    with pytest.raises(StepError, match="longer than 1000000 characters"):
        await fill("body", "{% for n in range(99999) %}{{ 'x' * 99 }}{% endfor %}", {})


async def test_fill_of_an_endless_template_is_ended_while_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_templates, "MOST_SECONDS", 2.0)
    turns = 0

    async def look_about() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.02)
            turns += 1

    looking = asyncio.create_task(look_about())
    began = time.monotonic()
    with pytest.raises(StepError, match="prompt: the template takes longer than 2 s"):
        await fill("prompt", ENDLESS, {})
    looking.cancel()
    assert time.monotonic() - began < 30
    assert turns > 10, "the event loop went on"
    assert await fill("prompt", "{{ 1 + 1 }}", {}) == "2"


async def test_fill_of_a_giant_text_fails_for_want_of_memory() -> None:
    with pytest.raises(StepError, match="body: the template needs more than 200 MB of memory"):
        await fill("body", GIANT, {})
    assert await fill("body", "{{ 1 + 1 }}", {}) == "2"


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "{% if a %}" * 2000 + "{% endif %}" * 2000,
        "x" * 60000,
        "{% for a in b %}" * 100 + "{% endfor %}" * 100,
    ],
)
def test_check_of_a_template_that_no_parser_can_read_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError, match="body: the template"):
        check_template("body", text)


@pytest.mark.parametrize(
    "sum",
    [
        "[0][1 // 0]",
        "('a' * 2000000000) | length",
        "'a' * 2000000000",
        "'%999999999s' | format('a')",
        "'a' | center(2000000000)",
        "range(99999) | map('string') | join | length",
        "(('a' ~ 'b') * 2000000000 if 1 else 2)",
    ],
)
def test_check_of_a_giant_sum_calculates_nothing(sum: str) -> None:
    began = time.thread_time()
    for text in (f"{{{{ {sum} }}}}", f"{{% if {sum} %}}{{% endif %}}", f"{{% set x = {sum} %}}"):
        check_template("body", text)
    assert time.thread_time() - began < 0.5
    with pytest.raises(InputError, match="autoescape cannot be used"):
        check_template("body", f"{{% autoescape {sum} %}}{{% endautoescape %}}")


async def test_fill_with_thousands_of_filters_is_left_to_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(task: object) -> None:
        raise StepError("in a child")

    monkeypatch.setattr(text_templates._children, "call", refuse)
    with pytest.raises(StepError, match="in a child"):
        await fill("body", "{% if text|upper %}{% endif %}" * 11, {"text": "x"})
