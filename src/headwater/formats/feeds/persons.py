"""Persons: Atom's person constructs, and names and e-mail addresses in one string."""

import re
from functools import lru_cache
from typing import Final

from headwater.formats.feeds.feed import Person
from headwater.formats.feeds.scope import Element, Scope, inner_text
from headwater.formats.html import collapse, plain_text

_ADDRESS_LIKE = re.compile(r"[^\s<>()\[\],;:\"]++")
_LONGEST_PERSON: Final = 500

_ELEMENTS: Final = {
    "name": "atom:name name itunes:name atom:title title",
    "email": "atom:email email itunes:email",
    "url": "atom:uri atom:url uri url atom:homepage homepage",
}
# Which part of a person an element states, and its rank among those that state the same.
_PARTS: Final = {
    element: (part, rank)
    for part, elements in _ELEMENTS.items()
    for rank, element in enumerate(elements.split())
}


def read_person(scope: Scope, element: Element) -> Person | None:
    """A person construct, or a person in one string."""
    if not len(element):
        return read_person_text(element.text or "")
    best: dict[str, tuple[int, str]] = {}
    for child in element:
        part, rank = _PARTS.get(scope.names[child.tag], ("", 0))
        if part and (part not in best or rank < best[part][0]) and (text := inner_text(child)):
            best[part] = rank, (scope.link(child, text) or text) if part == "url" else collapse(text)
    return (
        Person(**{part: text for part, (_, text) in best.items()})
        if best
        else read_person_text(inner_text(element))
    )


def read_creator(scope: Scope, element: Element) -> Person | None:
    """A dc:creator: free text by its definition, so that only an address alone is read as one."""
    if len(element):
        return read_person(scope, element)
    person = plain_text(element.text or "")
    return Person(person) if " " in person else read_person_text(person)


def read_person_text(text: str) -> Person | None:
    """`jane@example.org (Jane Doe)`, `Jane Doe <jane@example.org>` or `Jane Doe`."""
    return _split_person(text[:_LONGEST_PERSON])


@lru_cache(maxsize=1024)  # the same persons write most entries
def _split_person(text: str) -> Person | None:
    text = plain_text(text) if "&" in text or "</" in text else collapse(text)
    if not text:
        return None
    found = _find_email(text)
    if found is None:
        return Person(name=text)
    start, end = found
    rest = text[:start] + text[end:]
    rest = rest.replace("<>", " ").replace("()", " ").replace("[]", " ").strip()
    if rest.startswith("(") and rest.endswith(")"):
        rest = rest[1:-1]
    name = collapse(rest).strip(" -,;:\"'<>") or None
    return Person(name=name, email=text[start:end].removeprefix("mailto:"))


def _find_email(text: str) -> tuple[int, int] | None:
    """Where an e-mail address stands: something, an at sign, and a name with a dot in it."""
    if "@" not in text:
        return None
    for match in _ADDRESS_LIKE.finditer(text):
        address = match[0].rstrip(".")
        if address.find("@", 1, max(address.rfind(".") - 1, 0)) > 0:
            return match.start(), match.start() + len(address)
    return None
