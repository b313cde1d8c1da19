import time
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.formats.broken_json import MAX_DEPTH, read_broken_json
from tests.examples import examples

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES) | st.dictionaries(st.text(), VALUES), st.sampled_from([0, orjson.OPT_INDENT_2]))
def test_well_formed_json_is_read_as_it_is(value: Any, option: int) -> None:
    written = orjson.dumps(value, option=option)
    assert read_broken_json(written.decode()) == orjson.loads(written)


@settings(max_examples=examples(100), deadline=None)
@given(st.text(alphabet="{}[]\",:\\'/*ntu0a1.-+e \n", max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = read_broken_json(text)
    assert found is None or isinstance(found, dict | list)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no JSON", None),
        ('x = {"a": 1};', {"a": 1}),
        ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
        ('{"a": [{"b": 1}, {"b": 2', {"a": [{"b": 1}, {"b": 2}]}),
        ('{"a": "cut o', {"a": "cut o"}),
        (
            "{'a': 'it''s', b: True, c: None, d: NaN, e: 1}",
            {"a": "it''s", "b": True, "c": None, "d": None, "e": 1},
        ),
        ('{"a": "say "hello", then go", "b": 1}', {"a": 'say "hello", then go', "b": 1}),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
        ('{/* one */ "a": 1, // two\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "\t\n\x00\\x\\u00e9\\ud83d\\ude00\\ud83d"}', {"a": "\t\n\x00xé😀�"}),
        ('{"a": [{"b": 1, {"b": 2}], "c": 3}', {"a": [{"b": 1}, {"b": 2}], "c": 3}),
        ('{"a": [{"b": 1}, "b": 2}], "c": 3}', {"a": [{"b": 1}, {"b": 2}], "c": 3}),
        ('{"a": [{"b": {"x": 1}}}], "c": 3}', {"a": [{"b": {"x": 1}}], "c": 3}),
        (
            '{"a": [{"b": ["x", "y", "c": 1}, {"b": ["z"}, {"b": 2}]}',
            {"a": [{"b": ["x", "y"], "c": 1}, {"b": ["z"]}, {"b": 2}]},
        ),
        (f'{{"a": {"1" * 5000}, "b": 2}}', {"a": None, "b": 2}),
        ('{"a": 1}{"b": 2}', {"a": 1}),
        ('{"a": 1, "a": 2}', {"a": 1}),
    ],
)
def test_what_is_wrong_costs_little(text: str, value: Any) -> None:
    assert read_broken_json(text) == value


def test_deep_nesting_is_cut() -> None:
    found, depth = read_broken_json('{"a":' + "[" * 100_000), 0
    while found:
        found, depth = found["a"] if isinstance(found, dict) else found[0], depth + 1
    assert depth == MAX_DEPTH - 1


@pytest.mark.parametrize(
    "part",
    [
        '"',
        '" ',
        '"\\',
        "{",
        "[",
        '{"a":',
        "/*",
        "//\n",
        "'\"",
        '",',
        '"a" ',
        ",",
        "\\",
        "1",
        "a",
        '"a\n',
        " ",
    ],
)
@pytest.mark.parametrize("start", ["{", '{"a": ['])
def test_hostile_text_is_read_in_linear_time(start: str, part: str) -> None:
    begun = time.process_time()
    read_broken_json(start + part * (400_000 // len(part)))
    assert time.process_time() - begun < 4
