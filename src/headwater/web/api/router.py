"""All subjects of the API together."""

from fastapi import APIRouter

from headwater.web.api import (
    collector,
    cursors,
    feeds,
    items,
    keys,
    outlets,
    raw_items,
    runs,
    settings,
    sources,
    subscriptions,
    templates,
)
from headwater.web.api.problems import API_ROOT

router = APIRouter(prefix=API_ROOT)
# The words that stand where a source's number may stand come first.
for subject in (collector, feeds, subscriptions, sources, items, raw_items, templates, runs, cursors):
    router.include_router(subject.router)
for subject in (outlets, settings, keys):
    router.include_router(subject.router)
