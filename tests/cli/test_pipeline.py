"""Templates and runs on the command line, from a file to the dead letters, on both databases."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from headwater.store.core.database import Store
from headwater.store.pipelines.starting import RunQuery, list_runs
from tests.command import Headwater
from tests.origin import Origin
from tests.pipeline.making import step

FEED = (
    b'<rss version="2.0"><channel><title>One</title><link>http://one.example/</link>'
    b"<item><title>First</title><guid>1</guid></item><item><title>Second</title><guid>2</guid></item>"
    b"</channel></rss>"
)


@pytest.fixture
def headwater(tmp_path: Path, database_url: str, step_plugin: str) -> Headwater:
    command = Headwater(tmp_path, database_url)
    command.environment["PYTHONPATH"] = step_plugin
    return command


def written(directory: Path, *steps: dict[str, Any], name: str = "Notes") -> str:
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"name": name, "steps": list(steps)}))
    return str(path)


def until_ended(headwater: Headwater, count: int) -> set[str]:
    """Wait until so many runs have ended; their states."""
    with Store.open(headwater.environment["HEADWATER_DATABASE_URL"]) as store:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with store.reading() as connection:
                runs = list_runs(connection, RunQuery())
            if len(runs) == count and all(run.completed_at for run in runs):
                return {run.status for run in runs}
            time.sleep(0.1)
    raise AssertionError(runs)


def test_from_a_file_to_completed_runs(headwater: Headwater, tmp_path: Path, origin: Origin) -> None:
    assert headwater.ok("pipeline", "list") == (
        "There are no templates yet. Add one with: headwater pipeline add FILE\n"
    )
    file = written(tmp_path, step("note_test", token="hush"), step("heavy_test"))
    assert headwater.ok("pipeline", "validate", file) == "Notes is valid: 2 steps\n"
    assert headwater.ok("pipeline", "add", file) == "added template 1: Notes\n"
    shown = headwater.json("pipeline", "show", "Notes")
    assert shown["steps"][0]["config"] == {"token": "***"}
    assert "hush" not in headwater.ok("pipeline", "show", "1")

    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--no-check")
    told = headwater.ok("pipeline", "attach", "Notes", "1", "--folder", "News", "--everything")
    assert told.startswith("Notes runs for new items of: source ")
    assert told.endswith(", folder News, everything\n")
    headwater.ok("collect")
    assert [run["status"] for run in headwater.json("runs", "list")] == ["pending", "pending"]

    worker = headwater.start("worker", "--concurrency", "2")
    try:
        assert until_ended(headwater, 2) == {"completed"}
    finally:
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=40)
    assert (worker.returncode, err) == (0, "this is not an answer\n" * 2)
    assert out == "4 steps: 2 runs completed, 0 failed, 0 filtered out\n"
    assert {item["status"] for item in headwater.json("items")} == {"ANALYZED"}
    run = headwater.json("runs", "show", "1")
    assert run["steps"][1]["output_data"]["title"] in ("First", "Second")
    assert "completed" in headwater.ok("runs", "show", "1")

    assert headwater.ok("runs", "start", "Notes", "--all") == "started 0 runs of template Notes\n"
    [forced] = headwater.json("runs", "start", "1", "1", "--force", "--set", "depth=2")["started"]
    assert headwater.json("runs", "show", str(forced))["runtime_config"] == {"depth": 2}
    assert headwater.ok("runs", "cancel", str(forced)) == "cancelled 1 run\n"
    assert headwater.ok("runs", "rerun", "1", "--from", "2") == "1 run begins again at step 2\n"
    assert headwater.json("runs", "rerun", "--status", "completed") == {"runs": [2], "refused": []}
    kept = headwater.json("pipeline", "detach", "Notes", "1", "--everything")["attachments"]
    assert kept == [{"scope": "folder", "value": "News"}]
    assert (
        headwater.ok("pipeline", "detach", "Notes", "--folder", "News")
        == "Notes is attached to nothing now\n"
    )
    assert headwater.ok("pipeline", "order", "Notes") == "Notes\n"
    assert headwater.ok("pipeline", "remove", "Notes") == "removed template 1: Notes\n"
    assert headwater.json("runs", "show", "1")["template_name"] is None


def test_dead_letters_are_listed_and_retried_by_one_command(
    headwater: Headwater, tmp_path: Path, origin: Origin
) -> None:
    there = tmp_path / "there"
    headwater.ok("pipeline", "add", written(tmp_path, step("fail_test", until=str(there))))
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"))
    headwater.ok("runs", "start", "Notes", "--source", "1")
    worker = headwater.start("worker")
    try:
        until_ended(headwater, 2)
        failed = headwater.json("runs", "list", "--failed")
        assert [run["error_message"] for run in failed] == ["step 1 (fail_test): it did not work"] * 2
        there.touch()
        assert headwater.ok("runs", "retry", "--failed") == "2 runs go on\n"
        assert until_ended(headwater, 2) == {"completed"}
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=40)
    assert headwater.json("runs", "list", "--failed") == []


def test_collect_loop_works_on_pipelines_on_sqlite(
    headwater: Headwater, tmp_path: Path, origin: Origin
) -> None:
    if not headwater.environment["HEADWATER_DATABASE_URL"].startswith("sqlite"):
        pytest.skip("on PostgreSQL this is the work of `headwater worker`")
    headwater.ok("pipeline", "add", written(tmp_path, step("note_test")))
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--no-check")
    headwater.ok("pipeline", "attach", "Notes", "1")
    loop = headwater.start("collect", "--loop")
    try:
        assert until_ended(headwater, 2) == {"completed"}
    finally:
        loop.send_signal(signal.SIGTERM)
        _, err = loop.communicate(timeout=40)
    assert loop.returncode == 0
    assert all(" INFO " in line for line in err.splitlines()), err


def test_every_mistake_is_one_clear_line(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "bad.toml").write_text("steps = ")
    headwater.ok("pipeline", "add", written(tmp_path, step("note_test")))
    for arguments, message in (
        (("pipeline", "add", "none.json"), "cannot read none.json: No such file or directory"),
        (("pipeline", "add", "bad.json"), "cannot read bad.json: "),
        (("pipeline", "validate", "bad.toml"), "cannot read bad.toml: "),
        (("pipeline", "add", "Notes.json"), "template 1 has the name Notes already"),
        (("pipeline", "show", "x"), "there is no template x"),
        (("pipeline", "attach", "Notes", "9"), "there is no source 9"),
        (("pipeline", "attach", "Notes"), "name sources, or use --folder"),
        (("pipeline", "detach", "Notes", "--tag", "x"), "Notes is not attached to that"),
        (("runs", "show", "9"), "there is no run 9"),
        (("runs", "retry"), "say which runs: "),
        (("runs", "start", "Notes"), "say for which items: "),
        (("runs", "start", "Notes", "9"), "there is no item 9"),
        (("worker", "--steps", "nothing"), "there is no step type nothing; there are "),
    ):
        assert headwater.refused(*arguments).startswith(message)


def test_validate_and_add_agree_on_names_outlets_and_lists(headwater: Headwater, tmp_path: Path) -> None:
    steps = [{"step_type": "note_test"}]
    (tmp_path / "mine.json").write_text(json.dumps(steps))
    (tmp_path / "away.json").write_text(
        json.dumps([{"step_type": "publish_content", "config": {"outlet": "no"}}])
    )
    assert headwater.ok("pipeline", "validate", "mine.json") == "mine is valid: 1 step\n"
    assert headwater.ok("pipeline", "add", "mine.json") == "added template 1: mine\n"
    for file, message in (
        ("mine.json", "template 1 has the name mine already"),
        ("away.json", "a step publishes to the outlet no, but there is none"),
    ):
        assert headwater.refused("pipeline", "validate", file).startswith(message)
        assert headwater.refused("pipeline", "add", file).startswith(message)
    headwater.ok("pipeline", "validate", "mine.json", "--edit", "mine")
    assert headwater.ok("pipeline", "edit", "mine", "mine.json") == "changed template 1: mine\n"
    assert headwater.ok("pipeline", "add", "mine.json", "--name", "other") == "added template 2: other\n"


def test_templates_come_as_toml_and_from_the_standard_input(tmp_path: Path, step_plugin: str) -> None:
    import subprocess
    import sys

    headwater = Headwater(tmp_path, None)
    headwater.environment["PYTHONPATH"] = step_plugin
    text = 'name = "Notes"\n[[steps]]\nstep_type = "note_test"\nconfig = { text = "a" }\n'
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "pipeline", "add", "-"],
        input=text,
        text=True,
        capture_output=True,
        cwd=tmp_path,
        env=headwater.environment,
    )
    assert (done.stdout, done.stderr) == ("added template 1: Notes\n", "")
    (tmp_path / "other.toml").write_text(text.replace("Notes", "Other"))
    assert headwater.ok("pipeline", "edit", "Notes", "other.toml") == "changed template 1: Other\n"
