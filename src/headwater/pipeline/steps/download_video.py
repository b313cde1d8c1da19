"""`download_video`: an item's video or audio as a file, by yt-dlp.

yt-dlp runs as a program of its own whose only way to the network is our guarded proxy, so redirects, playlists and
everything else a page makes it fetch meet the guard like any request of ours. The proxy also holds the size cap where
a server does not say how much is coming.
"""

import asyncio
import contextlib
import mimetypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field

from headwater.errors import FetchError
from headwater.fetch.proxy import GuardedProxy
from headwater.fetch.url import read_url
from headwater.formats.html import collapse
from headwater.pipeline.steps.base import (
    PassingStepError,
    Step,
    StepConfig,
    StepContext,
    StepError,
    StepResult,
)
from headwater.pipeline.steps.files import NOTE, UNFINISHED, name_for, read_note, sweep, write_note
from headwater.pipeline.steps.reading import media_url
from headwater.pipeline.steps.service import door_of, raise_as_step_error

_OVERHEAD = 20_000_000  # bytes for pages, manifests and thumbnails beside the file itself
# What yt-dlp says when the trouble may be over in a while. It has one exit status for everything.
_PASSING_WORDS = ("timed out", "429", "500:", "502", "503", "504", "connection", "temporar", "incomplete")


class DownloadConfig(StepConfig):
    url: str | None = Field(
        default=None,
        description="What to download, instead of the item's first video or audio file, else its page.",
    )
    audio_only: bool = Field(default=False, description="The sound is enough: much less to download.")
    format: str | None = Field(
        default=None,
        max_length=200,
        pattern=r"^[^-]",
        description="Which of the offered formats, in yt-dlp's own language, instead of the best single file.",
    )
    max_megabytes: float = Field(default=500, gt=0, le=100_000, description="The largest file.")
    max_duration_seconds: float = Field(
        default=4 * 3600, gt=0, description="The longest video, where its length is known beforehand."
    )
    keep_days: float | None = Field(
        default=30, gt=0, description="How long files are kept. null: until they are too many."
    )
    keep_megabytes: float | None = Field(
        default=20_000, gt=0, description="How much is kept in all, the newest first. null: no limit."
    )


class DownloadVideo(Step):
    step_type = "download_video"
    config_model = DownloadConfig
    extra = "video"
    needs = "yt_dlp"
    timeout_seconds = 1800.0
    retries = 2

    async def run(self, context: StepContext, config: DownloadConfig) -> StepResult:
        url = config.url or media_url(context.content_item)
        if not url:
            raise StepError("the item has nothing to download: no media file and no address")
        name = name_for(f"{context.idempotency_key} {url}")
        note_path = context.files / (name + NOTE)
        if (done := _finished(note_path)) is not None:
            return StepResult(done)  # an earlier attempt got this far
        self._refuse_at_once(context, url)
        folder = context.files / (name + UNFINISHED)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            about = await _download(context, config, url, folder)
            made = _the_file(folder)
            if made is None:
                # yt-dlp passes over what it has found to be too large, and says nothing.
                raise _too_large(url, config) if about else _nothing(url)
            path = context.files / (name + made.suffix.lower())
            made.replace(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        output = _describe(path, about, url)
        write_note(note_path, output)
        await asyncio.to_thread(
            sweep,
            context.files.parent,  # those of other items too
            max_age_seconds=None if config.keep_days is None else config.keep_days * 86_400,
            max_bytes=None if config.keep_megabytes is None else int(config.keep_megabytes * 1_000_000),
            keep=path,
        )
        return StepResult(output)

    def _refuse_at_once(self, context: StepContext, url: str) -> None:
        """What the address alone forbids needs no program started."""
        try:
            read, _ = read_url(url)
            door_of(context).guard.check_url(
                read.scheme, read.raw_host or "", read.port or 0, shown=str(read)
            )
        except FetchError as error:
            raise_as_step_error(error)


async def _download(context: StepContext, config: DownloadConfig, url: str, folder: Path) -> dict[str, Any]:
    """Run yt-dlp; what it says of the video. Its file is in `folder` then."""
    limit = int(config.max_megabytes * 1_000_000)
    async with door_of(context).open_to_child(max_bytes=limit + _OVERHEAD) as proxy:
        status, out, problem = await _run(_command(config, url, folder, limit), proxy, folder)
        if proxy.refusal is not None and status != 0:
            raise_as_step_error(proxy.refusal)
        if proxy.exhausted:
            raise _too_large(url, config)
    lines = out.strip().splitlines()
    about = orjson.loads(lines[-1]) if lines and lines[-1].startswith(b"{") else {}
    if status != 0:
        kind = PassingStepError if _may_pass(problem) else StepError
        raise kind("{url}: yt-dlp could not download it: {problem}", url=url, problem=problem)
    duration = about.get("duration")
    if about.get("is_live") or (duration or 0) > config.max_duration_seconds:
        raise StepError(
            "{url}: the video is longer than max_duration_seconds = {limit:g} allows",
            url=url,
            limit=config.max_duration_seconds,
        )
    return dict(about)


def _command(config: DownloadConfig, url: str, folder: Path, limit: int) -> list[str]:
    """Neither the user's configuration nor their plug-ins, cookies or cache: the same everywhere."""
    wanted = config.format or ("ba/b" if config.audio_only else "b/bv*+ba")
    return [
        *(sys.executable, "-m", "yt_dlp", "--ignore-config", "--no-plugin-dirs", "--no-cache-dir"),
        *("--quiet", "--no-warnings", "--no-progress", "--no-simulate", "--dump-single-json"),
        *("--no-playlist", "--playlist-items", "1", "--no-mtime", "--no-part", "--no-continue"),
        *("--downloader", "native", "--socket-timeout", "30", "--retries", "3", "--fragment-retries", "3"),
        *("--max-filesize", str(limit)),
        *("--match-filters", f"!is_live & duration<=?{config.max_duration_seconds:g}"),
        *("--format", wanted, "--paths", str(folder), "--output", "media.%(ext)s", "--", url),
    ]


async def _run(command: list[str], proxy: GuardedProxy, folder: Path) -> tuple[int, bytes, str]:
    """The program's status, its output, and the last thing it complained of. Killed if we are given up."""
    home = {name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**home, "HOME": str(folder), "PYTHONIOENCODING": "utf-8", **proxy.environment()},
        start_new_session=True,
    )
    try:
        out, err = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # its own children too
        await process.wait()
    complaints = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    said = [line for line in complaints if line.startswith("ERROR:")] or complaints or [""]
    return process.returncode or 0, out, collapse(said[-1].removeprefix("ERROR:"))[:500]


def _finished(note_path: Path) -> dict[str, Any] | None:
    note = read_note(note_path)
    return note if note is not None and Path(str(note.get("path"))).is_file() else None


def _the_file(folder: Path) -> Path | None:
    made = sorted(folder.glob("media.*"), key=lambda path: path.stat().st_size)
    return made[-1] if made else None


def _describe(path: Path, about: dict[str, Any], url: str) -> dict[str, Any]:
    media_type = mimetypes.guess_type(path.name)[0]
    return {
        "path": str(path),
        "size_bytes": path.stat().st_size,
        "media_type": media_type,
        "url": url,
        "page_url": about.get("webpage_url"),
        "title": about.get("title"),
        "uploader": about.get("uploader"),
        "duration_seconds": about.get("duration"),
        "width": about.get("width"),
        "height": about.get("height"),
        "thumbnail_url": about.get("thumbnail"),
        "extractor": about.get("extractor"),
    }


def _too_large(url: str, config: DownloadConfig) -> StepError:
    return StepError(
        "{url}: the file is larger than max_megabytes = {limit:g} allows", url=url, limit=config.max_megabytes
    )


def _nothing(url: str) -> StepError:
    return StepError("{url}: yt-dlp downloaded nothing: there is no such video or audio", url=url)


def _may_pass(problem: str) -> bool:
    lowered = problem.lower()
    return any(word in lowered for word in _PASSING_WORDS)
