"""`transcribe_content`: what is said in a downloaded file, by faster-whisper here or by a service elsewhere.

With `base_url` the file goes to an OpenAI-compatible `/audio/transcriptions`; without it a Whisper model runs on this
machine, in a child process that keeps it loaded for the next file. Subtitles that came with the file are taken instead
of either. A file that is too large for the service is cut into parts, whose transcripts are joined.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from pydantic import Field

from headwater.collectors.base import SECRET
from headwater.fetch.message import BearerAuth, public_url
from headwater.formats.html import collapse
from headwater.formats.subtitles import read_subtitles
from headwater.model import Result
from headwater.pipeline.steps import ffmpeg
from headwater.pipeline.steps.base import (
    PassingStepError,
    Step,
    StepConfig,
    StepContext,
    StepError,
    StepResult,
)
from headwater.processes.pool import ChildPool
from headwater.services.requests import (
    fetcher_of,
    json_object,
    post,
    require_extra,
    reveal,
    reveal_if_set,
)

_children = ChildPool(__name__, tasks_per_child=50, most_idle=1)
_MODEL_BYTES = 10_000_000_000  # the largest model that is fetched on first use


class TranscribeConfig(StepConfig):
    base_url: str | None = Field(
        default=None,
        description="An OpenAI-compatible service, such as https://api.openai.com/v1. Unset: on this machine.",
    )
    api_key: str | None = Field(
        default="${OPENAI_API_KEY}", description="The service's key.", json_schema_extra=SECRET
    )
    model: str = Field(
        default="small", description="A Whisper size, a model's directory, or the service's name for it."
    )
    language: str | None = Field(
        default=None, max_length=10, description="What is spoken, as en or zh. Unset: it is found out."
    )
    device: str = Field(default="auto", description="On this machine: cpu, cuda or auto.")
    compute_type: str = Field(
        default="default", description="On this machine: int8, float16, … as faster-whisper takes it."
    )
    beam_size: int = Field(default=5, ge=1, le=20, description="On this machine: the beam size.")
    skip_silence: bool = Field(default=True, description="On this machine: leave out what is not speech.")
    max_duration_seconds: float = Field(
        default=4 * 3600, gt=0, description="On this machine: longer files are refused."
    )
    max_megabytes: float = Field(
        default=25,
        gt=0,
        le=2000,
        description="The largest file that the service takes. Of a larger one the sound is sent in parts, by ffmpeg.",
    )
    use_subtitles: bool = Field(
        default=True, description="Where the site offered subtitles, take them for the transcript."
    )
    request_seconds: float = Field(default=600, gt=0, description="How long the service may take.")


class TranscribeContent(Step):
    step_type = "transcribe_content"
    config_model = TranscribeConfig
    timeout_seconds = 3600.0
    retries = 2

    def check(self, config: TranscribeConfig) -> None:
        if config.base_url is None:
            require_extra("transcribe", "faster_whisper", self.step_type)

    async def run(self, context: StepContext, config: TranscribeConfig) -> StepResult:
        if config.use_subtitles and (read := await asyncio.to_thread(_read_subtitles, context)) is not None:
            return _as_result(read)
        path = _media_file(context)
        if config.base_url is None:
            return _as_result(await _transcribe_here(context, config, path))
        return _as_result(await _transcribe_there(context, config, path, reveal(context, config.base_url)))


def _as_result(made: dict[str, Any]) -> StepResult:
    data = {name: made[name] for name in ("segments", "duration_seconds", "model", "by")}
    transcript = Result("transcript", body=made["text"], language=made["language"], data=data)
    return StepResult(made, results=(transcript,))


def _media_file(context: StepContext) -> Path:
    found = context.output_of("download_video").get("path")
    if not found:
        raise StepError("there is no file to transcribe; put a download_video step before this one")
    path = Path(str(found))
    if not path.is_file():
        raise StepError(
            "{path} is no longer there; run again from the download_video step, or keep files for longer",
            path=path,
        )
    return path


async def _transcribe_here(context: StepContext, config: TranscribeConfig, path: Path) -> dict[str, Any]:
    options = config.model_dump(
        exclude={"base_url", "api_key", "max_megabytes", "request_seconds", "use_subtitles"}
    )
    # A model that is not here yet is fetched on first use, and by no other way than the guarded one.
    async with fetcher_of(context).open_to_child(max_bytes=_MODEL_BYTES) as proxy:
        return await _children.call({**options, "path": str(path), "environment": proxy.environment()})


async def _transcribe_there(
    context: StepContext, config: TranscribeConfig, path: Path, base_url: str
) -> dict[str, Any]:
    limit = int(config.max_megabytes * 1_000_000)
    size = (await asyncio.to_thread(path.stat)).st_size
    if size <= limit:
        return join_parts([(0.0, await _ask_service(context, config, path, base_url, ""))])
    if not ffmpeg.is_installed():
        raise StepError(
            "{path} has {size} bytes, more than max_megabytes = {limit:g} allows to send; with ffmpeg installed it is"
            " sent in parts",
            path=path,
            size=size,
            limit=config.max_megabytes,
        )
    with tempfile.TemporaryDirectory(prefix="headwater-sound-") as folder:
        parts = await ffmpeg.split_sound(path, Path(folder), limit)
        answers = [
            (part.start_seconds, await _ask_service(context, config, part.path, base_url, f"-{number}"))
            for number, part in enumerate(parts, start=1)
        ]
    return join_parts(answers)


def join_parts(parts: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """One transcript from those of a file's parts, each with where it begins."""
    first, last = parts[0][1], parts[-1]
    duration = last[1]["duration_seconds"]
    return {
        **first,
        "text": " ".join(part["text"] for _, part in parts if part["text"]),
        "language": next((part["language"] for _, part in parts if part["language"]), None),
        "duration_seconds": None if duration is None else round(last[0] + duration, 3),
        "segments": [
            {**segment, "start": _shift(segment["start"], start), "end": _shift(segment["end"], start)}
            for start, part in parts
            for segment in part["segments"]
        ],
    }


def _shift(seconds: Any, by: float) -> Any:
    return round(seconds + by, 3) if isinstance(seconds, int | float) else seconds


async def _ask_service(
    context: StepContext, config: TranscribeConfig, path: Path, base_url: str, part: str
) -> dict[str, Any]:
    """The service's transcript of one file; `part` tells the parts of a file apart in the idempotency key."""
    fields = {"model": config.model, "response_format": "verbose_json"}
    if config.language:
        fields["language"] = config.language
    boundary = token_hex(16)
    body = await asyncio.to_thread(_form, fields, path, boundary)
    api_key = reveal_if_set(context, config.api_key)
    hidden = (api_key,) if api_key else ()
    response = await post(
        context,
        base_url.rstrip("/") + "/audio/transcriptions",
        body,
        content_type=f"multipart/form-data; boundary={boundary}",
        headers={"Idempotency-Key": context.idempotency_key + part},
        auth=BearerAuth(api_key) if api_key else None,
        seconds=config.request_seconds,
        max_bytes=50_000_000,
        hidden=hidden,
    )
    answer = json_object(response, hidden=hidden)
    if not isinstance(answer.get("text"), str):
        raise StepError("{url} returned no transcript", url=public_url(response.url))
    return {
        "text": answer["text"].strip(),
        "language": answer.get("language") or config.language,
        "duration_seconds": answer.get("duration"),
        "segments": [
            {name: segment.get(name) for name in ("start", "end", "text")}
            for segment in answer.get("segments") or ()
            if isinstance(segment, dict)
        ],
        "model": config.model,
        "by": base_url,
    }


def _form(fields: dict[str, str], path: Path, boundary: str) -> bytes:
    """The file and its fields as multipart/form-data."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quote(path.name)}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return b"".join([*parts, head.encode(), path.read_bytes(), f"\r\n--{boundary}--\r\n".encode()])


def _read_subtitles(context: StepContext) -> dict[str, Any] | None:
    """The transcript that the site itself offers; None without one."""
    downloaded = context.output_of("download_video")
    found = downloaded.get("subtitles") or {}
    try:
        segments = read_subtitles(Path(str(found["path"])).read_bytes())
    except (KeyError, OSError):
        return None
    if not segments:
        return None
    return {
        "text": " ".join(segment.text for segment in segments),
        "language": str(found.get("language") or "").removesuffix("-orig") or None,
        "duration_seconds": downloaded.get("duration_seconds"),
        "segments": [asdict(segment) for segment in segments],
        "model": None,
        "by": "automatic subtitles" if found.get("automatic") else "subtitles",
    }


_loaded: dict[tuple[str, str, str], Any] = {}  # in a child: the model it used last


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Transcribe a file. Blocking, in a separate process."""
    import os

    os.environ.update(task["environment"])
    import av
    from faster_whisper import decode_audio

    try:
        duration = _duration(task["path"])
    except (av.FFmpegError, ValueError, IndexError):
        raise StepError("{path} holds no sound that can be read", path=task["path"]) from None
    if duration is not None and duration > task["max_duration_seconds"]:
        raise StepError(
            "{path} is {duration:.0f} s long, more than max_duration_seconds = {limit:g} allows",
            path=task["path"],
            duration=duration,
            limit=task["max_duration_seconds"],
        )
    key = (task["model"], task["device"], task["compute_type"])
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = _load_model(*key)
    sound = decode_audio(task["path"])
    segments, info = _loaded[key].transcribe(
        sound,
        language=task["language"],
        beam_size=task["beam_size"],
        vad_filter=task["skip_silence"],
    )
    found = [
        {"start": round(segment.start, 3), "end": round(segment.end, 3), "text": segment.text.strip()}
        for segment in segments
    ]
    return {
        "text": " ".join(str(segment["text"]) for segment in found if segment["text"]),
        "language": info.language,
        "duration_seconds": round(info.duration, 3),
        "segments": found,
        "model": task["model"],
        "by": "faster-whisper",
    }


def _load_model(name: str, device: str, compute_type: str) -> Any:
    """The model. One that is not here is fetched; that it cannot be may pass."""
    from faster_whisper import WhisperModel
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return WhisperModel(name, device=device, compute_type=compute_type)
    except Exception as error:  # noqa: BLE001 - whatever its libraries raise, it is told in one line
        problem = collapse(str(error) or type(error).__name__)[:200]
        wrong = isinstance(error, ValueError | RuntimeError | RepositoryNotFoundError)
        if wrong or Path(name).is_dir():
            raise StepError(
                "the Whisper model {model} cannot be used: {problem}", model=name, problem=problem
            ) from None
        raise PassingStepError(
            "the Whisper model {model} is not on this machine and could not be fetched ({problem}); let the worker"
            " reach huggingface.co, set model to the directory of a model, or set base_url to a service",
            model=name,
            problem=problem,
        ) from None


def _duration(path: str) -> float | None:
    import av

    with av.open(path, metadata_errors="ignore") as container:
        stream = container.streams.audio[0]
        if stream.duration is not None and stream.time_base is not None:
            return float(stream.duration * stream.time_base)
        return None if container.duration is None else container.duration / 1_000_000
