"""`/api/sessions…`: who is signed in to the dashboard."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel

from headwater.store.people.sessions import end_all_sessions, end_session, list_sessions
from headwater.views.keys import SessionView, session_json
from headwater.views.shape import Json
from headwater.web.api.auth import needs
from headwater.web.api.problems import problem_responses
from headwater.web.context import InContext

router = APIRouter(prefix="/sessions", tags=["keys"])


class SignedIn(BaseModel):
    sessions: list[SessionView]


@router.get(
    "",
    response_model=SignedIn,
    dependencies=[needs("admin")],
    responses=problem_responses(),
    summary="List sessions",
)
async def list_(context: InContext) -> Json:
    """Sessions of the dashboard that are in force, the latest used first."""
    found = await context.store.read(list_sessions, context.clock())
    return {"sessions": [session_json(session) for session in found]}


@router.delete(
    "",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(),
    summary="End all sessions",
)
async def end_all(context: InContext) -> None:
    """Sign every browser out. Keys go on working."""
    await context.store.write(end_all_sessions)


@router.delete(
    "/{session_id}",
    status_code=204,
    dependencies=[needs("admin")],
    responses=problem_responses(404),
    summary="End a session",
)
async def end(
    context: InContext,
    session_id: Annotated[int, Path(ge=1, le=2**63 - 1, description="The session's number.")],
) -> None:
    """Sign one browser out, at once."""
    await context.store.write(end_session, session_id)
