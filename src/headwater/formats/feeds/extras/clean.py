"""Makes extras fit to publish: right shapes, no characters that XML cannot hold, safe addresses only."""

from collections.abc import Callable
from typing import Any

import orjson
from lxml import etree

from headwater.formats.feeds.extras.vocabulary import (
    ADDRESSES,
    CATEGORY_SCHEMES,
    EXTENSIONS,
    JSON_EXTENSIONS,
    LONGEST_EXTENSIONS,
    LONGEST_TEXT,
    MAX_DEPTH,
    MAX_NODES,
    MAX_RECORDS,
    RECORDS,
    VALUES,
    Record,
    Value,
    as_digits,
    as_kind,
)
from headwater.formats.html import collapse
from headwater.formats.xml.entities import drop_illegal
from headwater.model import Json

MakeSafe = Callable[[str], str | None]  # an address → the same made absolute; None: it must not be published


def clean_extras(extras: Json | None, address: MakeSafe) -> dict[str, Any] | None:
    """`extras` as it may be published."""
    if not extras:
        return None
    found: dict[str, Any] = {}
    for value in VALUES:
        cleaned = _clean_value(extras.get(value.key), value)
        if cleaned is not None and (value.of is None or value.of in found):
            found[value.key] = cleaned
    for record in RECORDS:
        if objects := _clean_records(extras.get(record.key), record, address):
            found[record.key] = objects
    schemes = (
        {"name": collapse(_text(each.get("name"))), "scheme": _text(each.get("scheme"))}
        for each in _objects(extras.get(CATEGORY_SCHEMES))
    )
    if kept := [each for each in schemes if all(each.values())]:
        found[CATEGORY_SCHEMES] = kept
    given = extras.get(EXTENSIONS)
    extensions = _clean_extensions(given, [MAX_NODES], 0)
    if isinstance(given, dict) and (said := _clean_json(given.get(JSON_EXTENSIONS))):
        extensions[JSON_EXTENSIONS] = said
    if extensions:
        found[EXTENSIONS] = extensions
    if "new_feed_url" in found and not address(found["new_feed_url"]):
        del found["new_feed_url"]
    return found or None


def _text(given: Any) -> str:
    return drop_illegal(given).strip()[:LONGEST_TEXT] if isinstance(given, str) else ""


def _objects(given: Any) -> list[dict[str, Any]]:
    return [each for each in given[:MAX_RECORDS] if isinstance(each, dict)] if isinstance(given, list) else []


def _clean_value(given: Any, value: Value) -> Any:
    if value.kind == "truth":
        return given if isinstance(given, bool) else None
    if value.kind == "words":
        words = map(collapse, map(_text, given)) if isinstance(given, list) else ()
        return [word for word in dict.fromkeys(words) if word and "," not in word][:MAX_RECORDS] or None
    if value.kind == "text":
        return collapse(_text(given)) or None
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return as_kind(as_digits(given), value)


def _clean_records(given: Any, record: Record, address: MakeSafe, depth: int = 0) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = []
    for each in _objects(given):
        cleaned: dict[str, Any] = {}
        for key in record.keys:
            text = _text(each.get(key))
            if text and key in ADDRESSES:
                text = address(text) or ""
            if text:
                cleaned[key] = collapse(text) if key == record.text else text
        for key, child in record.parts if depth < MAX_DEPTH else ():
            if inner := _clean_records(each.get(key), child, address, depth + 1):
                cleaned[key] = inner
        if cleaned and record.needs in ("", *cleaned):
            objects.append(cleaned)
    return objects


def _clean_extensions(given: Any, budget: list[int], depth: int) -> dict[str, Any]:
    """Extensions as they can be written: names and namespaces that XML takes, of vocabularies other than our own."""
    found: dict[str, Any] = {}
    if not isinstance(given, dict) or depth > MAX_DEPTH:
        return found
    for namespace, names in given.items():
        if not isinstance(namespace, str) or not isinstance(names, dict) or not _is_namespace(namespace):
            continue
        for name, nodes in names.items():
            if not isinstance(name, str) or not _is_name(name) or not isinstance(nodes, list):
                continue
            cleaned = [each for node in nodes[:MAX_NODES] if (each := _clean_node(node, budget, depth))]
            if cleaned:
                found.setdefault(namespace, {})[name] = cleaned
    return found


def _clean_node(node: Any, budget: list[int], depth: int) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        return None
    if not isinstance(node, dict):
        return _text(node)
    attributes = node.get("attributes")
    parts = {
        "text": _text(node.get("text")),
        "attributes": {
            name: drop_illegal(value)[:LONGEST_TEXT]
            for name, value in (attributes.items() if isinstance(attributes, dict) else ())
            if isinstance(name, str) and isinstance(value, str) and _is_attribute(name)
        },
        "children": _clean_extensions(node.get("children"), budget, depth + 1),
    }
    parts = {key: value for key, value in parts.items() if value}
    return parts["text"] if parts.keys() == {"text"} else parts


def _clean_json(given: Any) -> dict[str, Any]:
    """The extensions of a JSON Feed, which only JSON Feed can state again."""
    if not isinstance(given, dict):
        return {}
    found = {
        name: value for name, value in given.items() if isinstance(name, str) and name[:1] == "_" and value
    }
    try:
        return found if len(orjson.dumps(found)) <= LONGEST_EXTENSIONS else {}
    except TypeError:  # a lone surrogate somewhere inside
        return {}


def _is_namespace(namespace: str) -> bool:
    """Whether elements of a namespace may stand in a feed as an extension of it."""
    is_plain = namespace != JSON_EXTENSIONS and namespace.split() == [namespace] and len(namespace) <= 500
    return is_plain and _works(lambda: etree.Element(f"{{{namespace}}}x"))


def _is_name(name: str) -> bool:
    return "{" not in name and _works(lambda: etree.Element(name))


def _is_attribute(name: str) -> bool:
    return _works(lambda: etree.Element("x", {name: ""}))


def _works(make: Callable[[], object]) -> bool:
    try:
        make()
    except ValueError:
        return False
    return True
