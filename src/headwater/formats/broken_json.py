"""Reads JSON that is not well-formed: cut off, written by hand, or with something around it.

What is missing is supplied and what does not fit is left out: commas, quotes inside of strings, ends of objects,
comments, words of other languages. Every token is read once, so that time is linear; depth is capped. Pure.
"""

import re
from typing import Any, Final

MAX_DEPTH: Final = 200
_LONGEST_NUMBER: Final = 1_000

_TOKEN = re.compile(
    r"""[\s\ufeff\x00]++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"""
    r"""|(?P<mark>[{}\[\]:,])|(?P<quote>["'])"""
    r"""|(?P<number>-?\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+)"""
    r"""|(?P<word>[^\W\d][\w$-]*+)|.""",
    re.DOTALL,
)
# What stands behind a quote that ends a string, and not behind one that belongs to it.
_BEHIND = re.compile(
    r"""\s*+(?:[:}\]]|\Z|,\s*+(?:["'{}\[\]\d/-]|\Z|(?:true|false|null)\b|\w{1,64}\s{0,9}:)|//|/\*)"""
    r"""|[ \t\r]*+\n\s*+["']"""
)
_TO_QUOTE: Final = {mark: re.compile(rf"(?:[^{mark}\\]++|\\.)*+", re.DOTALL) for mark in "\"'"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False}


def read_broken_json(text: str) -> Any:
    """The first object or array of `text`, as far as it can be read; None where there is none."""
    start = min((place for mark in "{[" if (place := text.find(mark)) >= 0), default=None)
    return None if start is None else _Builder(text).build(start)


class _Builder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._stack: list[Any] = []  # the objects and arrays that are open
        self._keys: list[str | None] = []  # for each of them the key whose value comes next
        self._open_lists = 0
        self._is_text_last = False  # whether the token before was a string or a word

    def build(self, position: int) -> Any:
        root: Any = None
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                break
            position = match.end()
            kind = match.lastgroup
            if kind == "mark":
                self._mark(match[0])
                root = self._stack[0] if root is None else root
                if not self._stack:
                    break
            elif kind == "quote":
                value, position = self._string(position, match[0])
                self._text_token(value)
            elif kind == "number":
                self._value(_number(match[0]))
            elif kind == "word":
                word = match[0].lower()
                if self._is_key_next() and not word.startswith(("true", "false", "null")):
                    self._text_token(match[0])
                else:
                    self._value(_WORDS.get(word))
        return root

    def _is_key_next(self) -> bool:
        return isinstance(self._stack[-1], dict) and self._keys[-1] is None

    def _mark(self, mark: str) -> None:
        was_text, self._is_text_last = self._is_text_last, False
        if mark in "{[":
            self._open({} if mark == "{" else [])
        elif mark == ",":
            self._keys[-1] = None
        elif mark == ":":
            top = self._stack[-1]
            if was_text and isinstance(top, list) and top:
                key = top.pop()
                if self._is_list_of_values():
                    self._close()
                else:  # the start of an object is missing
                    self._open({})
                self._keys[-1] = key
        elif mark == "}":
            if self._is_list_of_values():
                self._close()
            if self._stack and isinstance(self._stack[-1], dict):
                self._close()
        else:
            self._close_array()

    def _open(self, container: Any) -> None:
        if self._is_key_next_missing():
            while isinstance(self._stack[-1], dict):  # the end of the object before is missing
                self._close()
        if self._stack and len(self._stack) < MAX_DEPTH:
            self._value(container)
        self._stack.append(container)
        self._keys.append(None)
        self._open_lists += isinstance(container, list)

    def _is_key_next_missing(self) -> bool:
        return self._open_lists > 0 and self._is_key_next()

    def _is_list_of_values(self) -> bool:
        """Whether a list inside of an object is open that has no objects: its end is missing when a name follows."""
        top = self._stack[-1]
        has_values = isinstance(top, list) and bool(top) and not isinstance(top[-1], dict | list)
        return has_values and len(self._stack) > 1 and isinstance(self._stack[-2], dict)

    def _close(self) -> None:
        self._open_lists -= isinstance(self._stack.pop(), list)
        self._keys.pop()

    def _close_array(self) -> None:
        if any(isinstance(each, list) for each in self._stack[-2:]):
            while isinstance(self._stack[-1], dict):
                self._close()
            self._close()

    def _text_token(self, value: str) -> None:
        if self._is_key_next():
            self._keys[-1] = value
        else:
            self._value(value)
        self._is_text_last = True

    def _value(self, value: Any) -> None:
        self._is_text_last = False
        top, key = self._stack[-1], self._keys[-1]
        if isinstance(top, list):
            top.append(value)
        elif key is not None:
            top.setdefault(key, value)
            self._keys[-1] = None

    def _string(self, start: int, mark: str) -> tuple[str, int]:
        """A string, and where its token ends. Quotes inside that should have a backslash belong to it."""
        text, position = self._text, start
        while True:
            found = _TO_QUOTE[mark].match(text, position)
            end = found.end() if found else len(text)
            if end >= len(text) or _BEHIND.match(text, end + 1):
                return _unescape(text[start:end]), end + 1
            position = end + 1


def _number(written: str) -> float | int | None:
    if len(written) > _LONGEST_NUMBER:
        return None
    return int(written) if written.lstrip("-").isdigit() else float(written)


def _unescape(body: str) -> str:
    if "\\" in body:
        body = _ESCAPE.sub(
            lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2]), body
        )
    if _SURROGATE.search(body):
        body = body.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return body
