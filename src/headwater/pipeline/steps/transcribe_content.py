"""`transcribe_content`: what is said in a downloaded file, by faster-whisper here or by a service elsewhere.

With `base_url` the file goes to an OpenAI-compatible `/audio/transcriptions`; without it a Whisper model runs on this
machine, in a child process that keeps it loaded for the next file.
"""

import asyncio
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from pydantic import Field

from headwater.collectors.base import SECRET
from headwater.fetch.message import BearerAuth, public_url
from headwater.pipeline.steps.base import Step, StepConfig, StepContext, StepError, StepResult
from headwater.pipeline.steps.children import ChildPool
from headwater.pipeline.steps.service import (
    door_of,
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
    beam_size: int = Field(default=5, ge=1, le=20, description="On this machine: how many ways are followed.")
    skip_silence: bool = Field(default=True, description="On this machine: leave out what is no speech.")
    max_duration_seconds: float = Field(
        default=4 * 3600, gt=0, description="On this machine: longer files are refused."
    )
    max_megabytes: float = Field(default=25, gt=0, le=2000, description="Larger files are not sent.")
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
        path = _media_file(context)
        if config.base_url is None:
            return StepResult(await _transcribe_here(context, config, path))
        return StepResult(await _transcribe_there(context, config, path, reveal(context, config.base_url)))


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
    options = config.model_dump(exclude={"base_url", "api_key", "max_megabytes", "request_seconds"})
    # A model that is not here yet is fetched on first use, and by no other way than the guarded one.
    async with door_of(context).open_to_child(max_bytes=_MODEL_BYTES) as proxy:
        return await _children.call({**options, "path": str(path), "environment": proxy.environment()})


async def _transcribe_there(
    context: StepContext, config: TranscribeConfig, path: Path, base_url: str
) -> dict[str, Any]:
    fields = {"model": config.model, "response_format": "verbose_json"}
    if config.language:
        fields["language"] = config.language
    boundary = token_hex(16)
    body = await asyncio.to_thread(_form, fields, path, boundary, config.max_megabytes)
    api_key = reveal_if_set(context, config.api_key)
    hidden = (api_key,) if api_key else ()
    response = await post(
        context,
        base_url.rstrip("/") + "/audio/transcriptions",
        body,
        content_type=f"multipart/form-data; boundary={boundary}",
        headers={"Idempotency-Key": context.idempotency_key},
        auth=BearerAuth(api_key) if api_key else None,
        seconds=config.request_seconds,
        max_bytes=50_000_000,
        hidden=hidden,
    )
    answer = json_object(response, hidden=hidden)
    if not isinstance(answer.get("text"), str):
        raise StepError("{url} answered no transcript", url=public_url(response.url))
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


def _form(fields: dict[str, str], path: Path, boundary: str, max_megabytes: float) -> bytes:
    """The file and its fields as multipart/form-data."""
    size = path.stat().st_size
    if size > max_megabytes * 1_000_000:
        raise StepError(
            "{path} has {size} bytes, more than max_megabytes = {limit:g} allows to send",
            path=path,
            size=size,
            limit=max_megabytes,
        )
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quote(path.name)}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return b"".join([*parts, head.encode(), path.read_bytes(), f"\r\n--{boundary}--\r\n".encode()])


_loaded: dict[tuple[str, str, str], Any] = {}  # in a child: the model it used last


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Transcribe a file. Blocking, in a process of its own."""
    import os

    os.environ.update(task["environment"])
    import av
    from faster_whisper import WhisperModel, decode_audio

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
        try:
            _loaded[key] = WhisperModel(
                task["model"], device=task["device"], compute_type=task["compute_type"]
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise StepError(
                "the Whisper model {model} cannot be used: {problem}",
                model=task["model"],
                problem=str(error)[:300],
            ) from None
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


def _duration(path: str) -> float | None:
    import av

    with av.open(path, metadata_errors="ignore") as container:
        stream = container.streams.audio[0]
        if stream.duration is not None and stream.time_base is not None:
            return float(stream.duration * stream.time_base)
        return None if container.duration is None else container.duration / 1_000_000
