"""What the API's description shows as an example is what a view makes, and keeps to the view itself."""

from typing import Any

import pytest
from pydantic import BaseModel

from headwater.views import (
    cursors,
    feeds,
    items,
    keys,
    outlets,
    raw_items,
    runs,
    settings,
    sources,
    statistics,
    templates,
    types,
    visits,
)

ROOM = (
    cursors,
    feeds,
    items,
    keys,
    outlets,
    raw_items,
    runs,
    settings,
    sources,
    statistics,
    templates,
    types,
    visits,
)
VIEWS = sorted(
    {
        view
        for module in ROOM
        for view in vars(module).values()
        if isinstance(view, type) and issubclass(view, BaseModel) and view.__name__.endswith("View")
    },
    key=lambda view: view.__name__,
)


def example_of(view: type[BaseModel]) -> dict[str, Any] | None:
    example: dict[str, Any] | None = view.model_json_schema().get("example")
    return example


@pytest.mark.parametrize("view", [each for each in VIEWS if example_of(each)], ids=lambda view: view.__name__)
def test_example_has_exactly_the_fields_of_its_view(view: type[BaseModel]) -> None:
    example = example_of(view) or {}
    assert set(example) == set(view.model_fields)
    view.model_validate(example, strict=True)


def test_examples_hide_secrets() -> None:
    config = (example_of(sources.SourceView) or {})["config"]
    assert config == {"user": "me", "password": "***"}


def test_every_noun_has_an_example() -> None:
    parts = {"EnclosureView", "RepairView", "PushView", "EarlierResultView", "RunStepView", "SelectionView"}
    parts |= {"StepView", "ImportedView", "CollectedItemView", "AttachmentView"}
    assert {view.__name__ for view in VIEWS if not example_of(view)} <= parts
