"""How often sources publish, and how many visits found something new. Not on the overview: it reads every source."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from headwater.schedule.cadence import RSS_CADENCE_INTERVALS
from headwater.store.reports.statistics import read_scheduler_statistics
from headwater.web.chart import labelled_bars
from headwater.web.pages.frame import InPage
from headwater.wording import duration, tell_frequency

router = APIRouter()


@router.get("/statistics")
async def statistics_page(page: InPage) -> HTMLResponse:
    seen = await page.context.store.read(read_scheduler_statistics, page.context.clock())
    frequencies = [(tell_frequency(name, page.language), count) for name, count in seen.by_frequency.items()]
    cadences = [
        (f"{name}: {duration(RSS_CADENCE_INTERVALS[name], page.language)}", count)
        for name, count in seen.by_cadence.items()
    ]
    return await page.show(
        "statistics.html",
        seen=seen,
        frequencies=labelled_bars(frequencies, title=page.t("Sources by how often they publish")),
        cadences=labelled_bars(cadences, title=page.t("Sources by cadence")),
    )
