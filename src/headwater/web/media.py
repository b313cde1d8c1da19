"""Archived files, served: under signed addresses, a part at a time if a player asks for one."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, PlainTextResponse

from headwater.publish.media import MediaAddresses
from headwater.store.reading.media import find_media, media_secret
from headwater.web.context import Context

# Whatever a file says, it can run nothing and load nothing here.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; media-src 'self'; img-src 'self' data:; sandbox"
_SHOWN = ("image/", "audio/", "video/")
_FOR_EVER = "private, max-age=31536000, immutable"  # another file has another address


def media_routes(context: Context) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.api_route("/media/{sha256}", methods=["GET", "HEAD"])
    async def media(request: Request, sha256: str, s: str = "") -> Response:
        addresses = MediaAddresses.under(context.settings.data_dir, await context.store.read(media_secret))
        if not addresses.is_signed(sha256, s):
            return _nothing_here()
        path = addresses.path_of(sha256)
        file = await context.store.read(find_media, sha256)
        if path is None or file is None:
            return _nothing_here()
        shown = file.media_type.startswith(_SHOWN)
        return FileResponse(
            path,
            media_type=file.media_type,
            headers={
                "Cache-Control": _FOR_EVER,
                "Content-Security-Policy": _POLICY,
                "Cross-Origin-Resource-Policy": "cross-origin",
                "Content-Disposition": "inline" if shown else "attachment",
            },
        )

    return router


def _nothing_here() -> PlainTextResponse:
    return PlainTextResponse("Not Found", status_code=404)
