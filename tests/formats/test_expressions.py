"""JMESPath expressions end, whatever they say and whatever they are given."""

import time

import pytest

from headwater.formats.expressions import compile_expression, evaluate

BOMBS = [
    "|".join(["[@, @][]"] * 60),
    "to_string(@)|" + "|".join(["join('', [@, @])"] * 60),
    "|".join(["[@, @]"] * 60) + "|to_string(@)",
    "|".join(["[@, @]"] * 40) + "|contains(@, @)",
    "[" + "|".join(["[@, @]"] * 40) + "," + "|".join(["[@, @]"] * 40) + "]|[0] == [1]",
    "|".join(["{a: @, b: @}.*"] * 40) + "|to_string(@)",
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_evaluate_of_an_expression_that_doubles_ends_with_an_error(bomb: str) -> None:
    began = time.thread_time()
    with pytest.raises(ValueError, match="steps"):
        evaluate(bomb, ["x"] * 10)
    assert time.thread_time() - began < 10


def test_evaluate_of_a_deep_document_or_expression_says_so() -> None:
    with pytest.raises(ValueError, match="deep"):
        compile_expression("(" * 4_000 + "@" + ")" * 4_000)
    with pytest.raises(ValueError, match="longer"):
        compile_expression("a" * 20_000)


def test_evaluate_of_usual_expressions_finds_what_jmespath_finds() -> None:
    data = {"items": [{"n": 1, "tags": ["a", "b"]}, {"n": 2, "tags": []}], "on": True}
    assert evaluate("items[?n > `1`].n", data) == [2]
    assert evaluate("join('-', items[0].tags)", data) == "a-b"
    assert evaluate("contains(items[0].tags, 'b') && on == `true`", data) is True
    assert evaluate("sort_by(items, &n)[-1].n", data) == 2
    with pytest.raises(ValueError, match="abs"):
        evaluate("abs('x')", data)
