"""All subjects of the API together."""

from fastapi import APIRouter

from headwater.web.api import collector, feeds
from headwater.web.api.problems import API_ROOT

router = APIRouter(prefix=API_ROOT)
router.include_router(collector.router)
router.include_router(feeds.router)
