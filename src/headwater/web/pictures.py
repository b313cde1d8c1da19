"""Pictures and sound of publishers, through this site: readers' browsers tell publishers nothing.

An address here is signed with a secret of this installation, so only what our pages name is ever fetched. The fetch
door guards each request. Pictures are kept on disk for a while, up to a size; sound and video pass through in parts.
"""

import asyncio
import hashlib
import hmac
import logging
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from headwater.errors import HeadwaterError, InputError
from headwater.fetch import message
from headwater.fetch.client import make_fetcher
from headwater.files import make_private_directory, write_whole
from headwater.formats.sniffing import sniff_media_type
from headwater.markup import LONGEST_URL, read_pieces, unescape_text
from headwater.store.reading.media import media_secret
from headwater.web.context import Context

log = logging.getLogger(__name__)

PICTURES: Final = "pictures"  # the directory
MOST_BYTES = 10_000_000  # of one picture
MOST_KEPT_BYTES = 300_000_000  # of all pictures on disk
KEPT_SECONDS = 30 * 86_400.0
FETCH_SECONDS = 20.0
MOST_AT_ONCE = 24  # requests to publishers
PART_BYTES = 1_000_000  # of a sound or video in one answer
WHOLE_BYTES = 20_000_000  # of one whose server sends no parts
# What a browser shows as a picture. SVG runs nothing here: the policy below forbids it.
SHOWN: Final = frozenset(
    f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "svg+xml", "x-icon", "bmp")
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")
_ATTRIBUTE = re.compile(r'\s(src|srcset|sizes|poster|loading)="([^"]*)"')
IMAGE_SOURCE = re.compile(r"""\ssrc\s*=\s*["']?([^\s"'>]+)""", re.IGNORECASE)
_TINY = re.compile(r'\s(?:width|height)="[012]"')
_LOADED = {"img": "picture", "video": "sound", "audio": "sound", "source": "sound"}


@dataclass(frozen=True, slots=True)
class PictureAddresses:
    """Makes and checks addresses here of what publishers show. `own`: of archived files, by their addresses."""

    secret: str = field(repr=False)
    own: dict[str, str] = field(default_factory=dict)

    def of(self, url: str | None, kind: str = "picture") -> str | None:
        """Where a browser gets a picture (or a sound) here; None for what is none."""
        if not url:
            return None
        if url in self.own:
            return self.own[url]
        if url.startswith("/media/"):
            return url
        if not url.lower().startswith(("http://", "https://")) or len(url) > LONGEST_URL:
            return None
        return f"/{kind}?{urlencode({'u': url, 's': self.sign(kind, url)})}"

    def sign(self, kind: str, url: str) -> str:
        text = f"{kind} {url}".encode("utf-8", "replace")
        return hmac.new(self.secret.encode(), text, hashlib.sha256).hexdigest()[:32]

    def is_signed(self, kind: str, url: str, signature: str) -> bool:
        return hmac.compare_digest(self.sign(kind, url).encode(), signature.encode("utf-8", "replace"))

    def in_html(self, html: str) -> str:
        """Sanitised HTML whose pictures and sound are loaded from here; pictures of a pixel are left out."""
        return "".join(
            self._tag(piece.text, piece.name) if piece.name in _LOADED and not piece.is_end else piece.text
            for piece in read_pieces(html)
        )

    def _tag(self, tag: str, name: str) -> str:
        if name == "img" and _TINY.search(tag):
            return ""

        def replaced(found: re.Match[str]) -> str:
            attribute, value = found[1], unescape_text(found[2])
            if attribute not in ("src", "poster"):
                return ""  # what a browser may choose from instead is the publisher's
            here = self.of(value, "picture" if attribute == "poster" else _LOADED[name])
            return f' {attribute}="{_quoted(here)}"' if here else ""

        tag = _ATTRIBUTE.sub(replaced, tag)
        return tag.replace("<img", '<img loading="lazy" decoding="async"', 1) if name == "img" else tag


def _quoted(address: str) -> str:
    return address.replace("&", "&amp;").replace('"', "&quot;")


class PictureStore:
    """Pictures on disk, the oldest deleted when they grow too many. Blocking."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._size: int | None = None
        self._lock = Lock()  # one writer: writing a file sweeps away what is half written beside it

    def get(self, url: str, now: float) -> bytes | None:
        path = self._path(url)
        try:
            if now - path.stat().st_mtime > KEPT_SECONDS:
                return None
            return path.read_bytes()
        except OSError:
            return None

    def put(self, url: str, body: bytes) -> None:
        """Keep a picture. Where that fails, as on a full disk, it is fetched again next time."""
        try:
            with self._lock:
                self._put(url, body)
        except (InputError, OSError) as error:
            log.warning("a picture cannot be kept: %s", error)

    def _put(self, url: str, body: bytes) -> None:
        path = self._path(url)
        make_private_directory(path.parent)
        if not write_whole(path, body):
            path.touch()  # it is as it was, and as good as new
        self._size = (self._measure() if self._size is None else self._size) + len(body)
        if self._size > MOST_KEPT_BYTES:
            self._delete_oldest()

    def _path(self, url: str) -> Path:
        name = hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()
        return self._directory / name[:2] / name

    def _measure(self) -> int:
        return sum(entry.stat().st_size for entry in self._files())

    def _files(self) -> list[os.DirEntry[str]]:
        if not self._directory.is_dir():
            return []
        return [file for part in os.scandir(self._directory) if part.is_dir() for file in os.scandir(part)]

    def _delete_oldest(self) -> None:
        files = sorted((file.stat().st_mtime, file.stat().st_size, file.path) for file in self._files())
        size = sum(each[1] for each in files)
        for _, length, path in files:
            if size <= 0.8 * MOST_KEPT_BYTES:
                break
            Path(path).unlink(missing_ok=True)
            size -= length
        self._size = size


class _Doors:
    """How many requests to publishers are under way."""

    def __init__(self) -> None:
        self.open = 0


def picture_routes(context: Context) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    store = PictureStore(context.settings.data_dir / PICTURES)
    doors = _Doors()

    async def is_ours(kind: str, url: str, signature: str) -> bool:
        secret = await context.store.read(media_secret)
        return secret is not None and PictureAddresses(secret).is_signed(kind, url, signature)

    @router.get("/picture")
    async def picture(u: str = "", s: str = "") -> Response:
        if not await is_ours("picture", u, s):
            return _nothing()
        body = await asyncio.to_thread(store.get, u, time.time())
        if body is None:
            fetched = await _fetch_picture(context, doors, u)
            if fetched is None:
                return _nothing()
            body = fetched
            await asyncio.to_thread(store.put, u, body)
        kind = picture_type(body)
        if kind is None:
            return _nothing()
        return Response(
            body,
            media_type=kind,
            headers={
                "Cache-Control": "private, max-age=604800, immutable",
                "Content-Security-Policy": _POLICY,
            },
        )

    @router.get("/sound")
    async def sound(request: Request, u: str = "", s: str = "") -> Response:
        if not await is_ours("sound", u, s):
            return _nothing()
        return await _fetch_part(context, doors, u, request.headers.get("range", "bytes=0-"))

    return router


def picture_type(body: bytes) -> str | None:
    """The type of a picture that browsers show; None for anything else."""
    kind = (
        "image/x-icon"
        if body.startswith(b"\0\0\1\0")
        else "image/bmp"
        if body.startswith(b"BM")
        else sniff_media_type(body, None)
    )
    return kind if kind in SHOWN else None


async def _fetch_picture(context: Context, doors: _Doors, url: str) -> bytes | None:
    request = message.Request(url, accept="image/*", max_bytes=MOST_BYTES, total_seconds=FETCH_SECONDS)
    answer = await _get(context, doors, request)
    return answer.body if answer is not None and picture_type(answer.body) else None


async def _fetch_part(context: Context, doors: _Doors, url: str, wanted: str) -> Response:
    """A part of a sound or video, as its publisher has it."""
    found = _RANGE.fullmatch(wanted)
    first = int(found[1]) if found else 0
    last = first + PART_BYTES - 1
    if found and found[2]:
        last = max(first, min(last, int(found[2])))
    request = message.Request(
        url,
        accept="audio/*, video/*, */*;q=0.5",
        max_bytes=WHOLE_BYTES,
        total_seconds=FETCH_SECONDS,
        part=(first, last),
    )
    answer = await _get(context, doors, request)
    kind = sniff_media_type(b"", answer.content_type) if answer is not None else ""
    if answer is None or not (kind.startswith(("audio/", "video/")) or kind == "application/ogg"):
        return _nothing()
    body = answer.body
    told = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
    if told is not None and int(told[1]) == first:
        length = int(told[3])
    else:  # the whole file
        length = len(body)
        body = body[first : first + PART_BYTES]
    if not body:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{length}"})
    return Response(
        body,
        status_code=206,
        media_type=kind,
        headers={
            "Accept-Ranges": "bytes",
            "Content-Range": f"bytes {first}-{first + len(body) - 1}/{length}",
            "Cache-Control": "private, max-age=86400",
            "Content-Security-Policy": _POLICY,
        },
    )


async def _get(context: Context, doors: _Doors, request: message.Request) -> message.Response | None:
    if doors.open >= MOST_AT_ONCE:
        return None
    doors.open += 1
    try:
        async with make_fetcher(context.settings) as fetcher:
            return await fetcher.get(request)
    except HeadwaterError:
        return None
    finally:
        doors.open -= 1


def _nothing() -> PlainTextResponse:
    return PlainTextResponse("Not Found", status_code=404, headers={"Cache-Control": "private, max-age=600"})
