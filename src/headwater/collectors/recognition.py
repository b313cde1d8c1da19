"""What a pasted address or handle means, by the rules of the operator, of plugins, and those of Headwater."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from headwater.collectors.secrets import refers
from headwater.collectors.types import SourceType, find_type, is_type
from headwater.errors import InputError
from headwater.formats.pages.rules import FEED, AddressRules, Match, own_rules
from headwater.plugins import ADDRESS_RULES, load_texts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recognised:
    """The source that a text most likely means. `is_page`: a request has to show what it is."""

    type: SourceType
    url: str | None
    config: Mapping[str, Any] = field(default_factory=dict)
    is_page: bool = False


def recognise(text: str, rules: AddressRules, *, may_refer: bool = True) -> Recognised:
    """The type, address and config that a text means: a feed, unless a rule knows more.

    Without `may_refer`, the first that names no secret of this installation, if there is one.
    """
    found = understand(text, rules)
    if found is None:
        return Recognised(find_type(FEED), text)
    if found.offers and not found.is_page:
        first = found.offers[0]
        if not may_refer:
            first = next((offer for offer in found.offers if not refers(offer.config)), first)
        return Recognised(find_type(first.type), first.url, first.config)
    return Recognised(find_type(FEED), found.page or text, is_page=found.is_page)


def understand(text: str, rules: AddressRules) -> Match | None:
    """What the rules say of a text, without the offers of types that this installation does not know."""
    found = rules.find(text)
    if found is None:
        return None
    return replace(found, offers=tuple(offer for offer in found.offers if is_type(offer.type)))


def rules_from(file: Path | None) -> AddressRules:
    """All rules: those of the operator's file first. InputError when it cannot be read."""
    return package_rules() if file is None else _rules_of_file(file, _changed_at(file)) + package_rules()


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError as error:
        raise InputError("cannot read {path}: {problem}", path=file, problem=error.strerror) from None


@cache
def _rules_of_file(file: Path, changed_at: int) -> AddressRules:
    try:
        return AddressRules.read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("cannot read {path}: {problem}", path=file, problem=error) from None


@cache
def package_rules() -> AddressRules:
    """The rules of plugins, then those that come with Headwater. A plugin's that cannot be read are left out."""
    rules = AddressRules(())
    for package, text in load_texts(ADDRESS_RULES):
        try:
            rules += AddressRules.read(text)
        except InputError as error:
            log.warning("address rules of %s: %s", package, error.render("en"))
    return rules + own_rules()
