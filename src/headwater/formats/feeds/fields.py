"""Which elements give which fields, and reading them.

A table lists for each field the elements that may state it, best first. Entries of one feed have mostly the same
elements, so what a table has to look at for a set of names is worked out once, as a plan, and remembered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from headwater.formats.dates import parse_date
from headwater.formats.feeds.scope import Children, Element, Scope, inner_text, positive_integer
from headwater.formats.html import collapse

Read = Callable[[Scope, Element], Any]  # the value that one element states; None or empty: none
Source = tuple[str, Read]  # the name of an element, and how it is read
Fields = dict[str, Any]
More = Callable[
    [Fields, Scope, Children, tuple[str, ...]], None
]  # the names: those present that it asked for

_MOST_REMEMBERED_NAMES: Final = 64
_MOST_PLANS: Final = 1024  # of one table


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`first`: the first value that any of the elements gives.

    `every`: all values, without repetitions, of the first group of elements that gives any.
    `more`: functions that add further fields, each called when elements of its names are there.
    """

    first: Mapping[str, tuple[Source, ...]]
    every: Mapping[str, tuple[tuple[Source, ...], ...]] = field(default_factory=dict)
    more: tuple[tuple[More, Callable[[str], bool]], ...] = ()
    plans: "dict[tuple[str, ...], _Plan]" = field(default_factory=dict, init=False)  # by the names present


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parts of a table that concern elements of certain names."""

    first: tuple[tuple[str, str, Read, tuple[Source, ...]], ...]  # field, its best source, the others
    every: tuple[tuple[str, tuple[tuple[Source, ...], ...]], ...]
    more: tuple[tuple[More, tuple[str, ...]], ...]


def sources(read: Read, names: str) -> tuple[Source, ...]:
    """Elements that are all read in the same way."""
    return tuple((name, read) for name in names.split())


def read_fields(table: Table, scope: Scope, children: Children) -> Fields:
    """The fields that the children state."""
    names = tuple(children)
    plan = table.plans.get(names) or _find_plan(table, names)
    found: Fields = {}
    for name, source, read, others in plan.first:
        for element in children[source]:
            if value := read(scope, element):
                found[name] = value
                break
        else:
            if others:
                _read_others(found, name, others, scope, children)
    for name, groups in plan.every:
        for group in groups:
            values = [
                value
                for source, read in group
                for element in children[source]
                if (value := read(scope, element))
            ]
            if values:
                found[name] = tuple(dict.fromkeys(values)) if len(values) > 1 else (values[0],)
                break
    for add, concerned in plan.more:
        add(found, scope, children, concerned)
    return found


def _read_others(
    found: Fields, name: str, others: tuple[Source, ...], scope: Scope, children: Children
) -> None:
    for source, read in others:
        for element in children[source]:
            if value := read(scope, element):
                found[name] = value
                return


def _make_plan(table: Table, names: tuple[str, ...]) -> _Plan:
    present = frozenset(names)

    def those_of(candidates: tuple[Source, ...]) -> tuple[Source, ...]:
        return tuple(source for source in candidates if source[0] in present)

    every = (
        (name, tuple(those for group in groups if (those := those_of(group))))
        for name, groups in table.every.items()
    )
    first = ((name, those_of(candidates)) for name, candidates in table.first.items())
    return _Plan(
        tuple((name, *those[0], those[1:]) for name, those in first if those),
        tuple(each for each in every if each[1]),
        tuple((add, concerned) for add, wants in table.more if (concerned := tuple(filter(wants, names)))),
    )


def _find_plan(table: Table, names: tuple[str, ...]) -> _Plan:
    plan = _make_plan(table, names)
    if len(names) <= _MOST_REMEMBERED_NAMES:
        if len(table.plans) >= _MOST_PLANS:
            table.plans.clear()
        table.plans[names] = plan
    return plan


def read_text(scope: Scope, element: Element) -> str | None:
    return (inner_text(element) if len(element) else (element.text or "").strip()) or None


def read_line(scope: Scope, element: Element) -> str | None:
    return collapse(inner_text(element)) or None


def read_date(scope: Scope, element: Element) -> datetime | None:
    return parse_date(inner_text(element) if len(element) else element.text)


def read_count(scope: Scope, element: Element) -> int | None:
    return positive_integer(inner_text(element))


def read_text_address(scope: Scope, element: Element) -> str | None:
    """An address that is the element's text."""
    return scope.link(element, inner_text(element))


def read_attribute_address(scope: Scope, element: Element) -> str | None:
    """An address in an attribute."""
    return scope.attribute_link(element, "href", "url")


def read_address(scope: Scope, element: Element) -> str | None:
    """An address in an attribute, else the element's text."""
    return read_attribute_address(scope, element) or read_text_address(scope, element)
