"""The document's own pipeline as a user runs it: commands and a worker process, on both databases."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headwater.store.core.database import Store
from headwater.web.app import create_app
from tests.acceptance.test_pipeline_document import DOCUMENT, SCHEMA, SENTENCE
from tests.command import Headwater
from tests.origin import Answer, Origin
from tests.pipeline.making import make_settings
from tests.pipeline.steps.media import mp4
from tests.pipeline.steps.model_service import ModelService
from tests.pipeline.steps.tiny_whisper import write_model

pytestmark = pytest.mark.slow

pytest.importorskip("headwater.pipeline.worker")


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("whisper") / "model", SENTENCE)


class World:
    def __init__(self, origin: Origin, headwater: Headwater, whisper: Path) -> None:
        self.origin = origin
        self.headwater = headwater
        self.models = ModelService(origin)
        self.models.answers = ['{"topic": "a flood", "score": 0.9}']
        media = origin.route("/talk.mp4", body=mp4(), content_type="video/mp4")
        origin.route("/hook", body="{}")
        enclosure = f'<enclosure url="{media}" type="video/mp4" length="9"/>'
        origin.route(
            "/feed",
            body=f'<rss version="2.0"><channel><title>One</title><item><title>A talk</title><guid>1</guid>'
            f"<link>{origin.url('/page')}</link>{enclosure}</item></channel></rss>",
        )
        headwater.environment |= {
            "OPENAI_BASE_URL": self.models.base_url,
            "OPENAI_API_KEY": "sk-model",
            "OPENAI_MODEL": "tiny-1",
            "HEADWATER_SECRET_HOOK_SECRET": "s3cret",
        }
        config: dict[str, dict[str, Any]] = {
            "transcribe_content": {"model": str(whisper), "device": "cpu", "skip_silence": False},
            "analyze_content": {"output_schema": SCHEMA},
            "publish_content": {"target": "webhook", "url": origin.url("/hook"), "secret": "${HOOK_SECRET}"},
        }
        steps = [entry | {"config": config.get(entry["step_type"], {})} for entry in json.loads(DOCUMENT)]
        template = headwater.directory / "template.json"
        template.write_text(json.dumps({"name": "document", "steps": steps}))
        headwater.ok("pipeline", "add", str(template))
        headwater.ok("source", "add", origin.url("/feed"), "--no-check")
        headwater.ok("pipeline", "attach", "document", "1")
        headwater.ok("collect")

    def run_to_its_end(self) -> dict[str, Any]:
        [run] = self.headwater.work_until_ended(1)
        return dict(run)


@pytest.fixture
def world(origin: Origin, whisper: Path, tmp_path: Path, database_url: str) -> Iterator[World]:
    yield World(origin, Headwater(tmp_path, database_url), whisper)


def test_the_documents_flow(world: World, database_url: str, tmp_path: Path) -> None:
    run = world.run_to_its_end()
    assert run["status"] == "completed", run
    assert [step["status"] for step in run["steps"]] == ["completed"] * 4
    downloaded, transcript, analysis, published = (step["output_data"] for step in run["steps"])
    assert Path(downloaded["path"]).read_bytes() == mp4()
    assert transcript["text"] == SENTENCE
    assert analysis["result"] == {"topic": "a flood", "score": 0.9}
    (hook,) = world.origin.received("/hook")
    received = json.loads(hook.body)
    assert received["previous_steps"] == {
        "step_1_download": downloaded,
        "step_2_transcribe": transcript,
        "step_3_analyze": analysis,
    }
    assert received["content_item"]["title"] == "A talk"
    assert hook.headers["idempotency-key"] == published["idempotency_key"]
    assert "s3cret" not in json.dumps(run)
    assert world.headwater.json("items")[0]["status"] == "ANALYZED"
    item, page = _shown(world.headwater, database_url, tmp_path)
    assert item["results"]["transcript"]["body"] == SENTENCE
    assert item["results"]["analysis"]["data"] == {"topic": "a flood", "score": 0.9}
    assert SENTENCE in page
    assert "a flood" in page


def test_an_optional_failure_is_skipped(world: World) -> None:
    world.origin.route("/hook", Answer(status=400, body="no"))
    run = world.run_to_its_end()
    assert run["status"] == "completed"
    assert [step["status"] for step in run["steps"]] == ["completed"] * 3 + ["skipped"]
    assert "400" in run["steps"][3]["error_message"]


def test_a_critical_failure_ends_the_run(world: World) -> None:
    world.models.answers = [Answer(status=401, body="who are you?")]
    run = world.run_to_its_end()
    assert run["status"] == "failed"
    assert [step["status"] for step in run["steps"]] == ["completed", "completed", "failed", "pending"]
    assert world.origin.received("/hook") == []


def test_the_documents_own_list_of_steps_is_added_and_run_as_it_is_written(
    origin: Origin, whisper: Path, tmp_path: Path, database_url: str
) -> None:
    headwater = Headwater(tmp_path, database_url)
    models = ModelService(origin)
    models.answers = ["a flood"]
    media = origin.route("/talk.mp4", body=mp4(), content_type="video/mp4")
    origin.route(
        "/feed",
        body='<rss version="2.0"><channel><title>One</title><item><title>A talk</title><guid>1</guid>'
        f'<enclosure url="{media}" type="video/mp4" length="9"/></item></channel></rss>',
    )
    # The model of the usual size is there already, as after its first use.
    cached = tmp_path / "hub" / "models--Systran--faster-whisper-small"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("1")
    shutil.copytree(whisper, cached / "snapshots" / "1")
    headwater.environment |= {
        "OPENAI_BASE_URL": models.base_url,
        "OPENAI_API_KEY": "sk-model",
        "OPENAI_MODEL": "tiny-1",
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "1",
    }
    (tmp_path / "document.json").write_text(DOCUMENT)
    headwater.ok("pipeline", "validate", "document.json")
    headwater.ok("pipeline", "add", "document.json")
    headwater.ok("source", "add", origin.url("/feed"), "--no-check")
    headwater.ok("pipeline", "attach", "document", "1")
    headwater.ok("collect")
    [run] = headwater.work_until_ended(1)
    assert [step["status"] for step in run["steps"]] == ["completed"] * 4, run
    assert run["steps"][2]["output_data"]["result"] == "a flood"
    assert run["steps"][3]["output_data"]["outlet"] == "default"
    assert [outlet["name"] for outlet in headwater.json("outlet", "list")] == ["default"]
    item, page = _shown(headwater, database_url, tmp_path)
    assert "transcript" in item["results"]
    assert item["results"]["analysis"]["body"] == "a flood"
    assert item["results"]["analysis"]["step_type"] == "analyze_content"
    assert "a flood" in page


def _shown(headwater: Headwater, database_url: str, tmp_path: Path) -> tuple[dict[str, Any], str]:
    """The item in the API, and the results on its page."""
    key = headwater.json("key", "add", "reader")["key"]
    with Store.open(database_url) as store:
        app = create_app(store, make_settings(tmp_path))
        with TestClient(app, base_url="http://127.0.0.1:8626") as browser:
            item = browser.get("/api/items/1", headers={"Authorization": f"Bearer {key}"}).json()
            page = browser.get("/items/1", headers={"Sec-Fetch-Site": "same-origin"}).text
    return item, page[page.index('id="results"') :]
