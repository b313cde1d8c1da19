"""Outlets, served: each under its name in three formats, with an answer of no body for a reader who has it."""

import hmac
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from headwater.errors import NotFoundError, StepError
from headwater.formats.feeds.write import MEDIA_TYPES
from headwater.store.reading.outlets import read_edition
from headwater.views.outlets import EXTENSIONS
from headwater.web.context import Context
from headwater.web.etags import has_tag
from headwater.web.outlet_cache import OutletCache

FORMAT_OF = {extension: format for format, extension in EXTENSIONS.items()}
MAX_AGE_SECONDS = 60


def outlet_routes(context: Context) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    store, public_url = context.store, context.settings.public_url
    cache = OutletCache(store, context.settings.data_dir)

    @router.api_route("/outlets/{name}.{extension}", methods=["GET", "HEAD"])
    async def outlet(request: Request, name: str, extension: str, token: str = "") -> Response:
        format = FORMAT_OF.get(extension)
        if format is None:
            return _nothing_here()
        try:
            edition = await store.read(read_edition, name)
        except NotFoundError:
            return _nothing_here()
        secret = edition.outlet.token
        if secret is not None and not hmac.compare_digest(secret.encode(), token.encode()):
            return _nothing_here()  # that it exists is part of the secret
        tag = f'"{edition.tag}-{format}"'
        modified = datetime.fromtimestamp(int(edition.changed_at), UTC)
        headers = {
            "ETag": tag,
            "Last-Modified": format_datetime(modified, usegmt=True),
            "Cache-Control": f"{'private' if secret else 'public'}, max-age={MAX_AGE_SECONDS}",
            # Feeds are for all readers, those that run in a browser among them.
            "Access-Control-Allow-Origin": "*",
            "Cross-Origin-Resource-Policy": "cross-origin",
        }
        if _has_it(request, tag, modified):
            return Response(status_code=304, headers=headers)
        site = (public_url or str(request.base_url)).rstrip("/")
        try:
            body = await cache.document(edition, format, site)
        except StepError as error:  # the outlet's template does not work with one of its items
            return PlainTextResponse(error.render("en"), status_code=500)
        return Response(body, headers={**headers, "Content-Type": MEDIA_TYPES[format]})

    return router


def _has_it(request: Request, tag: str, modified: datetime) -> bool:
    if "if-none-match" in request.headers:
        return has_tag(request, tag)
    try:
        since = parsedate_to_datetime(request.headers.get("if-modified-since", ""))
    except ValueError:
        return False
    return since == modified  # not merely later: what is shown may also have become less


def _nothing_here() -> PlainTextResponse:
    return PlainTextResponse("Not Found", status_code=404)
