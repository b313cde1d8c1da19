"""A visit to a source, as it ended."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from headwater.store.reports.catalog import VisitRecord
from headwater.views.shape import Shape, Time, with_example


class VisitView(BaseModel):
    """One visit, as it ended."""

    model_config: ClassVar[ConfigDict] = with_example(lambda: visit_json(_EXAMPLE))

    number: int = Field(description="Counts this source's visits.")
    started_at: Time
    finished_at: Time
    outcome: str = Field(description="new, unchanged, failed, skipped.")
    items_found: int
    items_new: int
    items_updated: int
    overflow: bool = Field(
        description="No item of the last visit was left in it: items may have been missed."
    )
    http_status: int | None
    requests: int
    bytes_received: int
    error_kind: str | None
    error_message: str | None


visit_json: Shape[VisitRecord] = Shape(
    VisitView, number=lambda visit: visit.lease_no, outcome=lambda visit: visit.status
)
_EXAMPLE: VisitRecord = VisitRecord(
    lease_no=7,
    started_at=1_772_015_400.0,
    finished_at=1_772_015_400.412,
    status="new",
    items_found=20,
    items_new=2,
    items_updated=0,
    overflow=False,
    http_status=200,
    requests=1,
    bytes_received=8_123,
    error_kind=None,
    error_message=None,
)
