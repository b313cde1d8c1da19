"""Models: what they were asked, and what it cost, day by day."""

from itertools import groupby

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from headwater.store.pipelines.models import name_owners, read_usage
from headwater.web.pages.frame import InPage

router = APIRouter()

DAYS = 30
DAY = 86_400.0


@router.get("/models")
async def models_page(page: InPage) -> HTMLResponse:
    context = page.context
    found = await context.store.read(read_usage, context.clock() - (DAYS - 1) * DAY)
    return await page.show(
        "models.html",
        days=[(day, list(its)) for day, its in groupby(found, key=lambda each: each.day)],
        names=await context.store.read(name_owners, found),
        days_shown=DAYS,
        requests_per_day=context.settings.model_requests_per_day,
        tokens_per_day=context.settings.model_tokens_per_day,
    )
