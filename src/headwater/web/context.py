"""What every answer of the web application is made from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from headwater.config import Settings
from headwater.store.core.database import Store


@dataclass(frozen=True, slots=True)
class Context:
    store: Store
    settings: Settings
    clock: Callable[[], float]
    is_collecting: Callable[[], bool] | None = (
        None  # whether the collector beside us lives; None: there is none
    )


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


InContext = Annotated[Context, Depends(context_of)]
