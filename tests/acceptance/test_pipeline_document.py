"""The document's own pipeline from end to end: a real media file, a real model file, real services on loopback."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headwater.fetch import Fetcher
from headwater.pipeline.steps.analyze_content import AnalyzeContent
from headwater.pipeline.steps.base import Step
from headwater.pipeline.steps.download_video import DownloadVideo
from headwater.pipeline.steps.publish_content import PublishContent
from headwater.pipeline.steps.transcribe_content import TranscribeContent
from headwater.services.signature import is_genuine
from tests.fetch import door
from tests.origin import Answer, Origin
from tests.pipeline.steps.harness import FinishedRun, run_template
from tests.pipeline.steps.media import mp4
from tests.pipeline.steps.model_service import ModelService
from tests.pipeline.steps.tiny_whisper import write_model

pytestmark = pytest.mark.slow

# As the document writes it; what is added is where to find things.
DOCUMENT = """
[
  {"step_type": "download_video", "is_critical": true},
  {"step_type": "transcribe_content", "is_critical": true},
  {"step_type": "analyze_content", "is_critical": true},
  {"step_type": "publish_content", "is_critical": false}
]
"""
SENTENCE = "the river rose for three days"
SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "score": {"type": "number"}},
    "required": ["topic", "score"],
}
HANDLERS: dict[str, type[Step]] = {
    each.step_type: each for each in (DownloadVideo, TranscribeContent, AnalyzeContent, PublishContent)
}


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("whisper") / "model", SENTENCE)


class World:
    """Everything the run talks to, and the run."""

    def __init__(self, origin: Origin, whisper: Path, directory: Path, fetcher: Fetcher) -> None:
        self.origin = origin
        self.directory = directory
        self.fetcher = fetcher
        self.video = mp4()
        self.models = ModelService(origin)
        self.models.answers = ['{"topic": "a flood", "score": 0.9}']
        url = origin.route("/talk.mp4", body=self.video, content_type="video/mp4")
        origin.route("/hook", body="{}")
        self.item: dict[str, Any] = {
            "id": 1,
            "title": "A talk about the river",
            "url": origin.url("/page"),
            "enclosures": [{"url": url, "media_type": "video/mp4"}],
        }
        config: dict[str, dict[str, Any]] = {
            "transcribe_content": {"model": str(whisper), "device": "cpu", "skip_silence": False},
            "analyze_content": {"output_schema": SCHEMA},
            "publish_content": {
                "target": "webhook",
                "url": origin.url("/hook"),
                "secret": "${HOOK_SECRET}",
            },
        }
        self.template = [
            entry | {"config": config.get(entry["step_type"], {})} for entry in json.loads(DOCUMENT)
        ]

    async def run(self) -> FinishedRun:
        return await run_template(
            self.template, HANDLERS, self.item, self.directory / "files", self.fetcher, {"trigger": "manual"}
        )


@pytest.fixture
async def world(
    origin: Origin, whisper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    monkeypatch.setenv("HEADWATER_SECRET_HOOK_SECRET", "s3cret")
    monkeypatch.setenv("OPENAI_BASE_URL", origin.url("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-model")
    monkeypatch.setenv("OPENAI_MODEL", "tiny-1")
    async with door(max_bytes=5_000_000, total_seconds=60.0) as fetcher:
        yield World(origin, whisper, tmp_path, fetcher)


def statuses(run: FinishedRun) -> list[str]:
    return [step["status"] for step in run.steps]


async def test_the_documents_flow(world: World) -> None:
    run = await world.run()
    assert (run.status, statuses(run)) == ("completed", ["completed"] * 4), run.steps
    downloaded, transcript, analysis, published = (run.output(index) for index in range(4))
    assert Path(downloaded["path"]).read_bytes() == world.video
    assert transcript["text"] == SENTENCE
    assert analysis["result"] == {"topic": "a flood", "score": 0.9}
    assert analysis["usage"]["total_tokens"] == 120
    assert published["status"] == 200
    assert SENTENCE in world.models.asked[0]["messages"][1]["content"]
    assert world.models.keys == ["Bearer sk-model"]
    (hook,) = world.origin.received("/hook")
    received = json.loads(hook.body)
    assert received["content_item"] == world.item
    assert received["previous_steps"] == {
        "step_1_download": downloaded,
        "step_2_transcribe": transcript,
        "step_3_analyze": analysis,
    }
    assert hook.headers["idempotency-key"] == received["idempotency_key"]
    at = int(hook.headers["x-headwater-signature"].removeprefix("t=").partition(",")[0])
    assert is_genuine("s3cret", hook.headers["x-headwater-signature"], hook.body, now=at)
    everything = json.dumps([run.output(index) for index in range(4)])
    assert "sk-model" not in everything
    assert "s3cret" not in everything


async def test_an_optional_step_that_fails_is_skipped_and_the_run_completes(world: World) -> None:
    world.origin.route("/hook", Answer(status=400, body="no"))
    run = await world.run()
    assert (run.status, statuses(run)) == ("completed", ["completed"] * 3 + ["skipped"])
    assert "400" in run.steps[3]["error"]


async def test_a_critical_step_that_fails_ends_the_run(world: World) -> None:
    world.models.answers = [Answer(status=401, body="who are you?")]
    run = await world.run()
    assert (run.status, statuses(run)) == ("failed", ["completed", "completed", "failed"])
    assert "who are you?" in run.steps[2]["error"]
    assert world.origin.received("/hook") == []
