import json
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InputError
from headwater.fetch import Fetcher
from headwater.pipeline.steps import ffmpeg, transcribe_content
from headwater.pipeline.steps.base import PassingStepError, StepContext, StepError
from headwater.pipeline.steps.transcribe_content import TranscribeContent
from tests.origin import Answer, Origin, Received
from tests.pipeline.steps.harness import make_context, run_step
from tests.pipeline.steps.media import mp4, wav
from tests.pipeline.steps.tiny_whisper import write_model

SENTENCE = "the river rose for three days"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("whisper") / "model", SENTENCE)


def with_file(tmp_path: Path, fetcher: Fetcher, name: str, data: bytes) -> StepContext:
    path = tmp_path / name
    path.write_bytes(data)
    return make_context(tmp_path / "files", fetcher, previous={"step_1_download": {"path": str(path)}})


@pytest.mark.parametrize(("name", "data"), [("talk.mp4", mp4()), ("talk.wav", wav())])
async def test_here_with_faster_whisper(
    tmp_path: Path, fetcher: Fetcher, model: Path, name: str, data: bytes
) -> None:
    context = with_file(tmp_path, fetcher, name, data)
    config = {"model": str(model), "skip_silence": False, "device": "cpu"}
    output = (await run_step(TranscribeContent(), context, config)).output
    assert output["text"] == SENTENCE
    assert output["segments"] == [{"start": 0.0, "end": 1.0, "text": SENTENCE}]
    assert (output["language"], output["by"]) == ("en", "faster-whisper")
    assert output["duration_seconds"] == pytest.approx(2.0, abs=0.1)
    silent = (await run_step(TranscribeContent(), context, config | {"skip_silence": True})).output
    assert silent["text"] == "", "a tone is not speech"


async def test_what_faster_whisper_cannot_read(tmp_path: Path, fetcher: Fetcher, model: Path) -> None:
    config = {"model": str(model), "device": "cpu"}
    nonsense = with_file(tmp_path, fetcher, "talk.mp4", b"no media at all" * 100)
    with pytest.raises(StepError, match="holds no sound"):
        await run_step(TranscribeContent(), nonsense, config)
    long = with_file(tmp_path, fetcher, "long.wav", wav(5))
    with pytest.raises(StepError, match="5 s long, more than max_duration_seconds = 3 "):
        await run_step(TranscribeContent(), long, config | {"max_duration_seconds": 3})
    with pytest.raises(StepError, match="cannot be used"):
        await run_step(TranscribeContent(), long, config | {"model": str(tmp_path)})
    with pytest.raises(StepError, match="put a download_video step before"):
        await run_step(TranscribeContent(), make_context(tmp_path, fetcher), config)


async def test_model_that_is_not_here_and_cannot_be_fetched_is_named_with_the_way_out(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", origin.url("/hub"))  # it answers 404 to everything
    transcribe_content._children.close()  # those that run have the environment of before
    context = with_file(tmp_path, fetcher, "talk.wav", wav())
    origin.route("/hub/api/models/Systran/faster-whisper-small/revision/main", fault="reset")
    try:
        with pytest.raises(
            PassingStepError, match=r"^the Whisper model small is not on this machine"
        ) as caught:
            await run_step(TranscribeContent(), context, {"device": "cpu"})
        assert "set model to the directory of a model, or set base_url to a service" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
        with pytest.raises(StepError, match=r"the Whisper model smal cannot be used: Invalid model size"):
            await run_step(TranscribeContent(), context, {"device": "cpu", "model": "smal"})
        assert "Traceback" not in capfd.readouterr().err
    finally:
        transcribe_content._children.close()


async def test_there_by_a_service(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SECRET_SPEECH_KEY", "sk-speech")

    def answer(request: Received) -> Answer:
        assert request.method == "POST"
        return Answer(
            body=json.dumps(
                {
                    "text": " hello there ",
                    "language": "english",
                    "duration": 2.0,
                    "segments": [{"id": 0, "start": 0.0, "end": 2.0, "text": " hello there", "tokens": [1]}],
                }
            ),
            content_type="application/json",
        )

    origin.route("/v1/audio/transcriptions", answer)
    config = {
        "base_url": origin.url("/v1"),
        "api_key": "${SPEECH_KEY}",
        "model": "whisper-1",
        "language": "en",
    }
    context = with_file(tmp_path, fetcher, "talk.wav", wav())
    output = (await run_step(TranscribeContent(), context, config)).output
    assert output["text"] == "hello there"
    assert output["segments"] == [{"start": 0.0, "end": 2.0, "text": " hello there"}]
    request = origin.requests[0]
    assert request.headers["authorization"] == "Bearer sk-speech"
    assert request.headers["idempotency-key"] == context.idempotency_key
    assert wav() in request.body
    for name, value in (("model", "whisper-1"), ("language", "en"), ("response_format", "verbose_json")):
        assert f'name="{name}"\r\n\r\n{value}\r\n'.encode() in request.body
    assert "sk-speech" not in str(output)


async def test_a_service_that_fails(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"base_url": origin.url("/v1"), "model": "whisper-1"}
    context = with_file(tmp_path, fetcher, "talk.wav", wav())
    origin.route("/v1/audio/transcriptions", status=429, body="slow", headers={"Retry-After": "9"})
    with pytest.raises(PassingStepError, match="429") as caught:
        await run_step(TranscribeContent(), context, config)
    assert caught.value.retry_after_seconds == 9
    origin.route("/v1/audio/transcriptions", status=400, body='{"error": "bad file"}')
    with pytest.raises(StepError, match="bad file") as refused:
        await run_step(TranscribeContent(), context, config)
    assert not refused.value.passing
    monkeypatch.setattr(ffmpeg, "is_installed", lambda: False)
    with pytest.raises(
        StepError, match=r"more than max_megabytes = 0\.01 allows to send; with ffmpeg installed"
    ):
        await run_step(TranscribeContent(), context, config | {"max_megabytes": 0.01})


async def test_file_larger_than_the_service_takes_is_sent_in_parts_and_joined_with_right_times(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    def answer(request: Received) -> Answer:
        number = len(origin.requests)
        told = {
            "text": f"part {number}",
            "language": "english",
            "duration": 5.0,
            "segments": [{"start": 0.5, "end": 4.5, "text": f"part {number}"}],
        }
        return Answer(body=json.dumps(told), content_type="application/json")

    origin.route("/v1/audio/transcriptions", answer)
    context = with_file(tmp_path, fetcher, "talk.mp4", mp4(40.0))
    limit = 60_000  # 9 seconds of speech; the file is larger
    config = {"base_url": origin.url("/v1"), "model": "whisper-1", "max_megabytes": limit / 1_000_000}
    output = (await run_step(TranscribeContent(), context, config)).output
    count = len(origin.requests)
    assert count == 5
    assert all(len(request.body) < limit + 1_000 for request in origin.requests)
    assert len({request.headers["idempotency-key"] for request in origin.requests}) == count
    assert output["text"] == " ".join(f"part {number}" for number in range(1, count + 1))
    starts = [segment["start"] for segment in output["segments"]]
    assert starts == pytest.approx([0.5 + 9.0 * number for number in range(count)], abs=0.3)
    assert [segment["end"] - segment["start"] for segment in output["segments"]] == pytest.approx(
        [4.0] * count
    )
    assert output["duration_seconds"] == pytest.approx(36.0 + 5.0, abs=0.3)
    assert list(Path(tmp_path / "files").glob("*")) == []


async def test_subtitles_that_came_with_the_file_are_the_transcript(tmp_path: Path, fetcher: Fetcher) -> None:
    path = tmp_path / "talk.vtt"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.500\nhello\n\n01:00:00.000 --> 01:00:01.000\nthere\n")
    downloaded = {
        "path": str(tmp_path / "talk.mp4"),
        "duration_seconds": 3700.0,
        "subtitles": {"path": str(path), "language": "en-orig", "automatic": True},
    }
    context = make_context(tmp_path / "files", fetcher, previous={"step_1_download": downloaded})
    output = (await run_step(TranscribeContent(), context)).output
    assert output == {
        "text": "hello there",
        "language": "en",
        "duration_seconds": 3700.0,
        "segments": [
            {"start": 1.0, "end": 2.5, "text": "hello"},
            {"start": 3600.0, "end": 3601.0, "text": "there"},
        ],
        "model": None,
        "by": "automatic subtitles",
    }
    with pytest.raises(StepError, match="no longer there"):
        await run_step(TranscribeContent(), context, {"use_subtitles": False})


def test_the_extra_is_needed_only_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.services.requests.find_spec", lambda name: None)
    step = TranscribeContent()
    step.check(step.config_model.model_validate({"base_url": "https://speech.example/v1"}))
    with pytest.raises(InputError, match=r"pip install 'headwater\[transcribe\]'"):
        step.check(step.config_model.model_validate({}))
