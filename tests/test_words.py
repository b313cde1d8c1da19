"""The list of words to avoid finds them in sentences and in names, and leaves the usual ones alone."""

import pytest

from tests.words import avoided_in


@pytest.mark.parametrize(
    "text",
    [
        "for " + "who" + "ever reads it",
        "No" + "body waits.",
        "def test_no" + "body_waits() -> None:",
        "the state begins a" + "new",
        "{name} is" + " no number",
        "the step is tried" + " again",
        "until its lease runs" + " out",
    ],
)
def test_avoided_word_is_found(text: str) -> None:
    assert [number for number, _, _ in avoided_in(f"first line\n{text}")] == [2]


@pytest.mark.parametrize(
    "text",
    ["there is no source a", "it is no longer there", "a new one", "embody", "no one waits", "one whose"],
)
def test_usual_words_are_left_alone(text: str) -> None:
    assert list(avoided_in(text)) == []
