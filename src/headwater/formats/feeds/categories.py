"""Categories, and which lists they are from."""

from typing import Final

from headwater.formats.feeds.extras.vocabulary import CATEGORY_SCHEMES, LONGEST_TEXT, MAX_RECORDS
from headwater.formats.feeds.fields import Fields
from headwater.formats.feeds.scope import Children, Element, Scope, inner_text
from headwater.formats.html import collapse

CATEGORY_NAMES: Final = frozenset(("category", "atom:category", "dc:subject", "media:category", "categories"))


def add_categories(found: Fields, scope: Scope, children: Children, names: tuple[str, ...]) -> None:
    """Add the categories of an entry or feed, and as an extra which list each is from."""
    categories: dict[str, None] = {}
    schemes = []
    if "categories" in names:  # some nest them
        categories = {
            collapse(inner_text(each)): None for holder in children["categories"] for each in holder
        }
    for name in names:
        if name == "categories":
            continue
        for element in children[name]:
            if not element.keys():
                text = inner_text(element) if len(element) else element.text
                categories[collapse(text) if text else ""] = None
                continue
            category = _read_category(element)
            categories[category] = None
            scheme = (element.get("domain") or element.get("scheme") or "").strip()
            if scheme and category and name != "media:category":
                schemes.append({"name": category, "scheme": scheme[:LONGEST_TEXT]})
    categories.pop("", None)
    found["categories"] = tuple(categories)
    if schemes:
        found["extras"] = {**found.get("extras", {}), CATEGORY_SCHEMES: schemes[:MAX_RECORDS]}


def _read_category(element: Element) -> str:
    """The label or term of Atom's category, the text of RSS's."""
    if term := element.get("term"):
        return collapse(element.get("label") or term)
    return collapse(inner_text(element) or element.get("label") or "")
