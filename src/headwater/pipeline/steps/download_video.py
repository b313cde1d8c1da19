"""`download_video`: an item's video or audio as a file, by yt-dlp.

yt-dlp runs as its own program whose only way to the network is our guarded proxy, so redirects, playlists and
everything else a page makes it fetch meet the guard like any request of ours. The proxy also holds the size cap where
a server does not say how much is coming.

Of an audio_only download the sound alone is kept, where ffmpeg is installed. Subtitles that the site offers come along.
"""

import asyncio
import mimetypes
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field

from headwater.errors import FetchError
from headwater.fetch.proxy import GuardedProxy
from headwater.fetch.url import read_url
from headwater.files import make_private_directory
from headwater.formats.html import collapse
from headwater.pipeline.steps import ffmpeg
from headwater.pipeline.steps.base import (
    PassingStepError,
    Step,
    StepConfig,
    StepContext,
    StepError,
    StepResult,
)
from headwater.pipeline.steps.files import NOTE, UNFINISHED, name_for, read_note, sweep, write_note
from headwater.pipeline.steps.reading import language_of, media_url
from headwater.processes.supervised import run_program
from headwater.services.requests import fetcher_of, raise_as_step_error

_OVERHEAD = 20_000_000  # bytes for pages, manifests and thumbnails beside the file itself
_SUBTITLE_SUFFIXES = (".vtt", ".srt")
_NO_SUBTITLES = "Unable to download video subtitles"
_NOT_SPOKEN = "-live_chat,-danmaku"  # what viewers write
# What yt-dlp says when the trouble may be over in a while. It has one exit status for everything.
_PASSING_WORDS = ("timed out", "429", "500:", "502", "503", "504", "connection", "temporar", "incomplete")


class DownloadConfig(StepConfig):
    url: str | None = Field(
        default=None,
        description="What to download, instead of the item's first video or audio file, else its page.",
    )
    audio_only: bool = Field(
        default=False,
        description="Only the sound is needed: less to download, and where ffmpeg is installed only the sound is kept.",
    )
    subtitles: bool = Field(
        default=True,
        description="Take the subtitles too that the site offers; transcribe_content prefers them.",
    )
    subtitles_suffice: bool = Field(
        default=False,
        description="Where the site offers subtitles, take these alone and download nothing else.",
    )
    subtitle_language: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$",
        description="The language of the subtitles, as en or zh-Hans. Unset: the item's, else what is spoken.",
    )
    format: str | None = Field(
        default=None,
        max_length=200,
        pattern=r"^[^-]",
        description="The format, in yt-dlp's syntax. Default: the best single file.",
    )
    max_megabytes: float = Field(default=500, gt=0, le=100_000, description="The largest file.")
    max_duration_seconds: float = Field(
        default=4 * 3600, gt=0, description="The longest video, where its length is known beforehand."
    )
    keep_days: float | None = Field(
        default=30, gt=0, description="How long files are kept. null: until the size limit is reached."
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
        make_private_directory(folder)
        try:
            if config.subtitles_suffice and (alone := await _only_subtitles(context, config, url, folder)):
                alone["subtitles"] = _take_subtitles(folder, alone.pop("about"), context.files / name)
                write_note(note_path, alone)
                return StepResult(alone)
            about = await _download(context, config, url, folder)
            made = _the_file(folder)
            if made is None:
                # yt-dlp passes over what it has found to be too large, and says nothing.
                raise _too_large(url, config) if about else _nothing(url)
            if config.audio_only:
                made = await _only_sound(made)
            path = context.files / (name + made.suffix.lower())
            made.replace(path)
            subtitles = _take_subtitles(folder, about, context.files / name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        output = {**_describe(path, about, url), "subtitles": subtitles}
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
            fetcher_of(context).guard.check_url(
                read.scheme, read.raw_host or "", read.port or 0, shown=str(read)
            )
        except FetchError as error:
            raise_as_step_error(error)


async def _download(context: StepContext, config: DownloadConfig, url: str, folder: Path) -> dict[str, Any]:
    """Run yt-dlp; what it says of the video. Its file is in `folder` then."""
    limit = int(config.max_megabytes * 1_000_000)
    languages = _subtitle_languages(context, config)
    async with fetcher_of(context).open_to_child(max_bytes=limit + _OVERHEAD) as proxy:
        status, out, problem = await _run(_command(config, url, folder, limit, languages), proxy, folder)
        if status != 0 and _NO_SUBTITLES in problem:  # they are welcome, not needed
            status, out, problem = await _run(_command(config, url, folder, limit, None), proxy, folder)
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


async def _only_subtitles(
    context: StepContext, config: DownloadConfig, url: str, folder: Path
) -> dict[str, Any] | None:
    """What yt-dlp says of a video whose subtitles are in `folder` now; None when the site offers none."""
    languages = _subtitle_languages(context, config)
    if languages is None:
        return None
    command = _command(config, url, folder, 0, languages)
    command.insert(command.index("--no-simulate"), "--skip-download")
    async with fetcher_of(context).open_to_child(max_bytes=_OVERHEAD) as proxy:
        status, out, _ = await _run(command, proxy, folder)
    lines = out.strip().splitlines()
    if status != 0 or not lines or not _has_files(folder):
        return None  # the whole download says what is wrong
    about = orjson.loads(lines[-1])
    return {**_describe(None, about, url), "about": about}


def _has_files(folder: Path) -> bool:
    return any(folder.glob("media.*"))


def _subtitle_languages(context: StepContext, config: DownloadConfig) -> str | None:
    """In yt-dlp's own language; None for none. `orig` is the language that is spoken, `und` one that is not told."""
    if not config.subtitles:
        return None
    language = config.subtitle_language or language_of(context)
    if not language:
        return f".*-orig,und,en.*,{_NOT_SPOKEN}"
    return f"{re.escape(language)}.*,und,{_NOT_SPOKEN}"


def _command(config: DownloadConfig, url: str, folder: Path, limit: int, languages: str | None) -> list[str]:
    """Neither the user's configuration nor their plug-ins, cookies or cache: the same everywhere."""
    subtitles = (
        "--write-subs",
        "--write-auto-subs",
        "--sub-format",
        "vtt/srt",
        "--sub-langs",
        languages or "",
    )
    wanted = config.format or ("ba/b" if config.audio_only else "b/bv*+ba")
    return [
        *(sys.executable, "-m", "yt_dlp", "--ignore-config", "--no-plugin-dirs", "--no-cache-dir"),
        *("--quiet", "--no-warnings", "--no-progress", "--no-simulate", "--dump-single-json"),
        *("--no-playlist", "--playlist-items", "1", "--no-mtime", "--no-part", "--no-continue"),
        *("--downloader", "native", "--socket-timeout", "30", "--retries", "3", "--fragment-retries", "3"),
        *(subtitles if languages else ()),
        *(("--max-filesize", str(limit)) if limit else ()),
        *("--match-filters", f"!is_live & duration<=?{config.max_duration_seconds:g}"),
        *("--format", wanted, "--paths", str(folder), "--output", "media.%(ext)s", "--", url),
    ]


async def _run(command: list[str], proxy: GuardedProxy, folder: Path) -> tuple[int, bytes, str]:
    """The program's status, its output, and the last thing it complained of. Killed if we are given up."""
    home = {name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE") if name in os.environ}
    ended = await run_program(
        command,
        environment={**home, "HOME": str(folder), "PYTHONIOENCODING": "utf-8", **proxy.environment()},
        directory=folder,
    )
    complaints = [line for line in ended.errors.splitlines() if line.strip()]
    said = [line for line in complaints if line.startswith("ERROR:")] or complaints or [""]
    return ended.status, ended.output, collapse(said[-1].removeprefix("ERROR:"))[:500]


def _finished(note_path: Path) -> dict[str, Any] | None:
    note: dict[str, Any] | None = read_note(note_path)
    if note is None:
        return None
    kept = note.get("path") or (note.get("subtitles") or {}).get("path")
    return note if Path(str(kept)).is_file() else None


def _the_file(folder: Path) -> Path | None:
    found = (path for path in folder.glob("media.*") if path.suffix not in _SUBTITLE_SUFFIXES)
    made = sorted(found, key=lambda path: path.stat().st_size)
    return made[-1] if made else None


async def _only_sound(made: Path) -> Path:
    """The sound of a downloaded file, where it can be taken out; a file without pictures stays as it is."""
    kind = mimetypes.guess_type(made.name)[0] or ""
    if kind.startswith("audio/") or not ffmpeg.is_installed():
        return made
    sound = made.with_name("sound" + ffmpeg.SOUND_SUFFIX)
    await ffmpeg.extract_sound(made, sound)
    return sound


def _take_subtitles(folder: Path, about: dict[str, Any], target: Path) -> dict[str, Any] | None:
    """The first subtitles that came, kept beside the file: those that people made before automatic ones."""
    wanted = about.get("requested_subtitles") or {}
    by_people = about.get("subtitles") or {}
    for language in sorted(wanted, key=lambda each: (each not in by_people, each)):
        for suffix in _SUBTITLE_SUFFIXES:
            made = folder / f"media.{language}{suffix}"
            if made.parent == folder and made.is_file():
                path = made.replace(target.with_name(target.name + suffix))
                return {"path": str(path), "language": language, "automatic": language not in by_people}
    return None


def _describe(path: Path | None, about: dict[str, Any], url: str) -> dict[str, Any]:
    return {
        "path": None if path is None else str(path),
        "size_bytes": None if path is None else path.stat().st_size,
        "media_type": None if path is None else mimetypes.guess_type(path.name)[0],
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
