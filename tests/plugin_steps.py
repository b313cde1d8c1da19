"""Step types for tests, made known by an entry point as any plugin's are (see tests/plugins.py)."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import Field

from headwater.collectors.base import SECRET
from headwater.errors import InputError
from headwater.fetch.message import Request
from headwater.formats.expressions import evaluate
from headwater.model import Result
from headwater.pipeline.steps.base import (
    HeavyStep,
    PassingStepError,
    Step,
    StepConfig,
    StepContext,
    StepError,
    StepResult,
)


class NoteConfig(StepConfig):
    text: str = "noted"
    seconds: float = Field(default=0.0, ge=0)
    end_run: bool = False
    token: str | None = Field(default=None, json_schema_extra=SECRET)


class Note(Step):
    """Says what it was given; may take its time."""

    step_type = "note_test"
    config_model = NoteConfig

    def check(self, config: NoteConfig) -> None:
        if config.text == "forbidden":
            raise InputError("config.text must not be {text}", text=config.text)

    async def run(self, context: StepContext, config: NoteConfig) -> StepResult:
        await asyncio.sleep(config.seconds)
        return StepResult(
            {
                "text": config.text,
                "title": context.content_item["title"],
                "previous": sorted(context.previous_steps),
                "runtime": context.runtime_config,
                "key": context.idempotency_key,
            },
            end_run=config.end_run,
        )


class MakeConfig(StepConfig):
    results: list[dict[str, Any]]  # the fields of each


class Make(Step):
    """Makes the results that it is told to make; `{n}` in a body is the item's number."""

    step_type = "make_test"
    config_model = MakeConfig

    async def run(self, context: StepContext, config: MakeConfig) -> StepResult:
        number = str(context.content_item["id"])
        made = [
            Result(**{**each, "body": each["body"].replace("{n}", number) if each.get("body") else None})
            for each in config.results
        ]
        return StepResult({"made": len(made)}, results=tuple(made))


class WhereConfig(StepConfig):
    where: str


class Where(Step):
    """Says what it finds in its context by a JMESPath expression."""

    step_type = "where_test"
    config_model = WhereConfig

    async def run(self, context: StepContext, config: WhereConfig) -> StepResult:
        whole = {"content_item": context.content_item, "previous_steps": context.previous_steps}
        return StepResult.of(found=evaluate(config.where, whole))


class TalkConfig(StepConfig):
    letters: int


class Talk(HeavyStep):
    """Says more than is kept."""

    step_type = "talk_test"
    config_model = TalkConfig

    def work(self, context: StepContext, config: TalkConfig) -> StepResult:
        return StepResult({"text": "x" * config.letters})


class FailConfig(StepConfig):
    passing: bool = False
    until: str | None = None  # a file; once it is there, the step works


class Fail(Step):
    step_type = "fail_test"
    config_model = FailConfig

    async def run(self, context: StepContext, config: FailConfig) -> StepResult:
        if config.until is not None and Path(config.until).exists():
            return StepResult.of(worked=True)
        raise (PassingStepError if config.passing else StepError)("it did not work")


class Bug(Step):
    step_type = "bug_test"

    async def run(self, context: StepContext, config: Any) -> StepResult:
        raise ValueError("a bug")


class Absent(Step):
    step_type = "absent_test"
    extra = "video"
    needs = "no_such_module_anywhere"

    async def run(self, context: StepContext, config: Any) -> StepResult:
        raise AssertionError


class PostConfig(StepConfig):
    url: str


class Post(Step):
    """Tells a receiver, as a webhook does."""

    step_type = "post_test"
    config_model = PostConfig

    async def run(self, context: StepContext, config: PostConfig) -> StepResult:
        assert context.fetcher is not None
        await context.fetcher.get(Request(f"{config.url}?key={context.idempotency_key}"))
        return StepResult.of(told=True)


class DeadlyConfig(StepConfig):
    marks: str  # a file to which each attempt adds a line


class Deadly(Step):
    """Kills the worker that runs it."""

    step_type = "deadly_test"
    config_model = DeadlyConfig

    async def run(self, context: StepContext, config: DeadlyConfig) -> StepResult:
        with Path(config.marks).open("a") as file:
            file.write("x\n")
        os.kill(os.getpid(), signal.SIGKILL)
        return StepResult.of()


class StubbornConfig(StepConfig):
    pids: str  # a directory: one file for each process
    seconds: float = 600.0


_SLEEP = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
_LEAVE_ORPHAN = (
    "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', "
    f"{_SLEEP!r}, sys.argv[1]], start_new_session=True); os._exit(0)"
)


class Stubborn(HeavyStep):
    """Sleeps in C with all signals blocked, with children of which one starts its own session."""

    step_type = "stubborn_test"
    config_model = StubbornConfig

    def work(self, context: StepContext, config: StubbornConfig) -> StepResult:
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        directory = Path(config.pids)
        leave_orphan = [sys.executable, "-c", _LEAVE_ORPHAN, str(directory / "orphan")]
        subprocess.Popen(leave_orphan, start_new_session=True)
        subprocess.Popen([sys.executable, "-c", _SLEEP, str(directory / "child")])
        while not all((directory / name).exists() for name in ("child", "orphan")):
            time.sleep(0.01)
        (directory / "step").write_text(str(os.getpid()))
        time.sleep(config.seconds)
        return StepResult.of(ended=True)


class Heavy(HeavyStep):
    """Does its work as a heavy step should."""

    step_type = "heavy_test"
    config_model = FailConfig

    def work(self, context: StepContext, config: FailConfig) -> StepResult:
        print("this is not an answer")
        if config.passing:
            raise PassingStepError("not {when}", when="now")
        return StepResult.of(title=context.content_item["title"], pid=os.getpid())


class Dying(HeavyStep):
    step_type = "dying_test"

    def work(self, context: StepContext, config: Any) -> StepResult:
        os.kill(os.getpid(), signal.SIGSEGV)
        return StepResult.of()
