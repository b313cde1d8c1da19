"""Sound by ffmpeg: taken out of a video, and cut into parts that a service takes.

Its program does it where it is installed, else its libraries, which come with the extras `video` and `transcribe`.

A downloaded file is a stranger's. ffmpeg may read that one file, in one of the usual formats of media, and nothing
else: no playlist that names other files, no network.
"""

import asyncio
import csv
import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headwater.errors import StepError
from headwater.formats.html import collapse
from headwater.processes.pool import ChildPool
from headwater.processes.supervised import run_program

_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mp3,ogg,wav,flac,aac,avi,mpegts,mpeg,flv,asf,aiff,amr,caf"
_SPEECH_BITS = 48_000  # a second: speech on one channel, as transcription needs it
_MUSIC_BITS = 128_000
_MARGIN = 0.9  # of the allowed size, for headers and what an encoder takes more than it was told
SOUND_SUFFIX = ".m4a"
_children = ChildPool("headwater.pipeline.steps.sound", tasks_per_child=20, most_idle=1)


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a sound file, and where it begins in the whole."""

    path: Path
    start_seconds: float


def has_program() -> bool:
    return shutil.which("ffmpeg") is not None


def is_installed() -> bool:
    return has_program() or find_spec("av") is not None


async def extract_sound(path: Path, target: Path) -> None:
    """The sound of a file alone, as good as it is heard; StepError when there is none."""
    if not has_program():
        await _in_child(path, target.parent, target.name, bits=_MUSIC_BITS)
        return
    await _run(path, ["-vn", "-c:a", "aac", "-b:a", "128k", "-f", "mp4", str(target)])


async def split_sound(path: Path, folder: Path, max_bytes: int) -> list[Part]:
    """The sound of a file as parts of speech quality, in `folder`, each smaller than that."""
    seconds = max(max_bytes * _MARGIN / (_SPEECH_BITS / 8), 1.0)
    if not has_program():
        written = await _in_child(
            path,
            folder,
            "part{number:04}" + SOUND_SUFFIX,
            bits=_SPEECH_BITS,
            rate=16_000,
            mono=True,
            max_seconds=seconds,
        )
        return _of_size([Part(Path(name), start) for name, start in written["parts"]], path, max_bytes)
    index = folder / "parts.csv"
    await _run(
        path,
        [
            *("-vn", "-ac", "1", "-ar", "16000", "-c:a", "aac", "-b:a", str(_SPEECH_BITS)),
            *("-f", "segment", "-segment_time", f"{seconds:g}", "-segment_format", "mp4"),
            *("-segment_list", str(index), "-segment_list_type", "csv", "-reset_timestamps", "1"),
            str(folder / f"part%04d{SOUND_SUFFIX}"),
        ],
    )
    return await asyncio.to_thread(_read_parts, path, index, max_bytes)


def _read_parts(path: Path, index: Path, max_bytes: int) -> list[Part]:
    with index.open(encoding="utf-8", newline="") as rows:
        parts = [Part(index.parent / Path(name).name, float(start)) for name, start, _ in csv.reader(rows)]
    return _of_size(parts, path, max_bytes)


def _of_size(parts: list[Part], path: Path, max_bytes: int) -> list[Part]:
    if large := next((part for part in parts if part.path.stat().st_size > max_bytes), None):
        raise StepError(
            "{path}: a part of its sound has {size} bytes, more than is allowed",
            path=path,
            size=large.path.stat().st_size,
        )
    return parts


async def _in_child(path: Path, folder: Path, name: str, **options: Any) -> dict[str, Any]:
    task = {"path": str(path), "folder": str(folder), "name": name, "formats": _FORMATS, **options}
    return await _children.call(task)


async def _run(path: Path, arguments: list[str]) -> None:
    ended = await run_program(
        [
            *("ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y"),
            *("-protocol_whitelist", "file", "-format_whitelist", _FORMATS, "-i", f"file:{path}"),
            *arguments,
        ],
        environment={name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
    )
    if ended.status:
        raise StepError(
            "{path}: ffmpeg found no sound that it can read: {problem}",
            path=path,
            problem=collapse(ended.errors)[-300:],
        )
