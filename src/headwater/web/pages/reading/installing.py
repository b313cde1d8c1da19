"""The reader as an app: its manifest and the service worker that keeps what was loaded."""

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from headwater.web.context import InContext
from headwater.web.pages.frame import open_page

router = APIRouter()

_STATIC = Path(__file__).parents[2] / "static"


@router.get("/manifest.webmanifest")
async def manifest(request: Request, context: InContext) -> Response:
    page = await open_page(request, context)
    return JSONResponse(
        {
            "id": "/read",
            "name": "Headwater",
            "short_name": "Headwater",
            "description": page.t("Feeds, collected once and read anywhere"),
            "lang": "zh-CN" if page.language == "zh" else "en",
            "start_url": "/read",
            "scope": "/",
            "display": "standalone",
            "background_color": "#f4f6f6",
            "theme_color": "#0b6a83",
            "icons": [
                {"src": "/static/icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
                {"src": "/static/icon-192.png", "sizes": "192x192", "type": "image/png"},
                {"src": "/static/icon-512.png", "sizes": "512x512", "type": "image/png"},
                {
                    "src": "/static/icon-512.png",
                    "sizes": "512x512",
                    "type": "image/png",
                    "purpose": "maskable",
                },
            ],
            "shortcuts": [
                {"name": page.t("Unread"), "url": "/read?view=unread"},
                {"name": page.t("Read later"), "url": "/read?view=later"},
                {"name": page.t("Add a feed"), "url": "/read/add"},
            ],
            "share_target": {
                "action": "/share",
                "method": "GET",
                "params": {"title": "title", "text": "text", "url": "url"},
            },
            "protocol_handlers": [{"protocol": "web+feed", "url": "/subscribe?url=%s"}],
        },
        media_type="application/manifest+json",
        headers={"Cache-Control": "no-cache"},
    )


@router.get("/service-worker.js")
async def service_worker() -> Response:
    """From the top, so that it may answer for all pages."""
    return FileResponse(
        _STATIC / "service-worker.js",
        media_type="text/javascript",
        headers={"Cache-Control": "no-cache"},
    )
