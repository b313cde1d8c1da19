"""All subjects of the API together."""

from fastapi import APIRouter

from headwater.web.api import (
    account,
    alerts,
    bookmarks,
    catalogue,
    collector,
    cursors,
    digests,
    entries,
    feeds,
    folders,
    gallery,
    items,
    keys,
    models,
    outlets,
    preferences,
    raw_items,
    rules,
    runs,
    sessions,
    settings,
    sources,
    subscriptions,
    targets,
    templates,
    users,
)
from headwater.web.api.problems import API_ROOT

router = APIRouter(prefix=API_ROOT)
# The words that stand where a source's number may stand come first.
for subject in (collector, feeds, subscriptions, sources, items, raw_items, templates, runs, cursors):
    router.include_router(subject.router)
for subject in (
    catalogue,
    gallery,
    models,
    outlets,
    digests,
    targets,
    alerts,
    settings,
    keys,
    sessions,
    account,
    users,
    entries,
    bookmarks,
):
    router.include_router(subject.router)
for more in (
    entries.tags_router,
    folders.subscriptions_router,
    folders.folders_router,
    preferences.router,
    preferences.searches_router,
    rules.router,
    rules.notifications_router,
):
    router.include_router(more)
