"""`archive_media`: keeps an item's images, sound and video, so that reading tells publishers nothing and survives them.

Files are kept under the data directory by the hash of what is in them, each once, and served by Headwater under signed
addresses. A file that cannot be had is named in the output; the others are kept. Files are deleted with the last item
that uses them.
"""

import asyncio
import hashlib
import re
from pathlib import Path
from typing import Any

from pydantic import Field

from headwater.errors import FetchError, PassingStepError
from headwater.fetch.message import Request, public_url
from headwater.files import make_private_directory, write_whole
from headwater.formats.links import join
from headwater.formats.sniffing import sniff_media_type
from headwater.markup import read_pieces, unescape_text
from headwater.model import Result
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepError, StepResult
from headwater.pipeline.steps.reading import part_of
from headwater.services.requests import fetcher_of, raise_as_step_error

MEDIA = "media"  # the directory, beside that of the steps' files
_SOURCE = re.compile(r"""\ssrc\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE)
_KINDS = ("image/", "audio/", "video/")
_OTHER_KINDS = frozenset({"application/pdf", "application/epub+zip", "application/ogg"})


class ArchiveConfig(StepConfig):
    images: bool = Field(default=True, description="Keep the images of the text, and the item's own.")
    enclosures: bool = Field(default=True, description="Keep the files that come with the item.")
    max_megabytes: float = Field(default=100, gt=0, le=2_000, description="Larger files are left out.")
    max_files: int = Field(default=50, ge=1, le=1_000, description="The most files of one item.")


class ArchiveMedia(Step):
    step_type = "archive_media"
    config_model = ArchiveConfig
    timeout_seconds = 1_800.0
    retries = 3

    async def run(self, context: StepContext, config: ArchiveConfig) -> StepResult:
        files: list[dict[str, Any]] = []
        problems: list[dict[str, str]] = []
        failure: StepError | None = None
        for url in find_media_urls(context.content_item, config)[: config.max_files]:
            try:
                files.append(await _keep(context, url, config))
            except StepError as error:
                failure = error if failure is None or isinstance(error, PassingStepError) else failure
                problems.append({"url": public_url(url), "problem": str(error)})
        if failure is not None and not files:
            raise failure
        output = {
            "count": len(files),
            "size_bytes": sum(file["size_bytes"] for file in files),
            "problems": problems,
        }
        return StepResult(output, results=(Result("media", data={"files": files}),))


def find_media_urls(item: dict[str, Any], config: ArchiveConfig) -> list[str]:
    """The addresses of an item's images and files, each once."""
    base = item.get("url") or item.get("source_url")
    found: list[str | None] = []
    if config.images:
        full_text = ((item.get("results") or {}).get("full_text") or {}).get("body")
        for body in (full_text, item.get("content"), item.get("summary")):
            found += [join(base, source) for source in _image_sources(body or "")]
        found.append(join(base, part_of(item, "image_url")))
    if config.enclosures:
        found += [join(base, file.get("url")) for file in part_of(item, "enclosures") or ()]
    followable = [url for url in found if url and url.startswith(("http://", "https://"))]
    return list(dict.fromkeys(followable))


def _image_sources(body: str) -> list[str]:
    tags = [piece.text for piece in read_pieces(body) if piece.name in ("img", "audio", "video", "source")]
    found = [match for tag in tags if (match := _SOURCE.search(tag))]
    return [unescape_text(next(filter(None, match.groups()), "")) for match in found]


async def _keep(context: StepContext, url: str, config: ArchiveConfig) -> dict[str, Any]:
    request = Request(url, accept="*/*", max_bytes=int(config.max_megabytes * 1_000_000), total_seconds=600.0)
    try:
        response = await fetcher_of(context).get(request)
    except FetchError as error:
        raise_as_step_error(error)
    media_type = sniff_media_type(response.body, response.content_type)
    if not media_type.startswith(_KINDS) and media_type not in _OTHER_KINDS:
        raise StepError(
            "{url} is not an image, sound or video: its type is {kind}", url=public_url(url), kind=media_type
        )
    sha256 = await asyncio.to_thread(store_file, media_directory(context), response.body)
    return {"url": url, "sha256": sha256, "media_type": media_type, "size_bytes": len(response.body)}


def media_directory(context: StepContext) -> Path:
    """Where files are kept: next to the directory that holds one directory per item."""
    return context.files.parent.parent / MEDIA


def store_file(directory: Path, body: bytes) -> str:
    """Keep a file under its hash, whole or not at all; the hash. Blocking."""
    sha256 = hashlib.sha256(body).hexdigest()
    path = file_path(directory, sha256)
    if not path.is_file():
        make_private_directory(path.parent)
        write_whole(path, body)
    return sha256


def file_path(directory: Path, sha256: str) -> Path:
    return directory / sha256[:2] / sha256
