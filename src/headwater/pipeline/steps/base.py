"""What a step type is: it takes a run's context and its own config, does one thing, and returns its output.

A step knows its job and nothing else: not the run's rows, not the queue, not the other steps. It may run twice for
the same item (a worker died between its effect and the commit), so an effect on others carries the idempotency key.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from headwater.errors import PassingStepError, StepError
from headwater.fetch.client import Fetcher
from headwater.model import Result
from headwater.services.models import ModelLedger
from headwater.services.targets import MailDefaults, Message

__all__ = ["HeavyStep", "PassingStepError", "Step", "StepConfig", "StepContext", "StepError", "StepResult"]


class StepConfig(BaseModel):
    """The keys a step's config may have: none, unless a step type extends it. Secrets are marked as in a source's."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given. The first three are the context's own parts, as plain JSON values.

    `previous_steps` holds the output of every step before by name: `step_1_enrich` is the first step's, an
    `enrich_content`.
    """

    content_item: dict[str, Any]  # the item, as the API and `headwater items --json` show it
    previous_steps: dict[str, dict[str, Any]]  # outputs by name, such as `step_1_enrich`
    runtime_config: dict[str, Any]  # what the run was started with: `headwater runs start --set KEY=VALUE`
    idempotency_key: str  # the same for every attempt at this step for this version of the item
    files: Path  # a directory for what the step keeps, under the managed one
    fetcher: Fetcher | None = None  # the door to the network; None in a child process
    # What `${NAME}` in the config stands for; never part of an output.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mail: MailDefaults = MailDefaults()  # the operator's mail server
    run_id: int | None = None
    earlier_item: dict[str, Any] | None = None  # what the item said in its version before; None: it is new
    models: ModelLedger | None = field(default=None, repr=False)  # what is remembered and spent of models

    def output_of(self, step_type: str) -> dict[str, Any]:
        """The output of the nearest earlier step of this type; empty when there was none."""
        suffix = "_" + short_name(step_type)
        for name in reversed(self.previous_steps):
            if name.endswith(suffix):
                return self.previous_steps[name]
        return {}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message for a target that is stored under a name."""

    target: str
    message: Message


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step answers. `output` is for the steps after it, `results` stay with the item."""

    output: dict[str, Any]
    end_run: bool = False  # the item is not wanted: the rest of the run is skipped
    outlet: str | None = None  # the outlet that the item is in from the moment this result is stored
    results: tuple[Result, ...] = ()
    messages: tuple[Outgoing, ...] = ()  # to be sent once this result is stored

    @classmethod
    def of(cls, **output: Any) -> Self:
        return cls(output)


class Step(ABC):
    """A step type. A `heavy` one runs in its own child process that is killed, with its children, at its
    timeout; write it as blocking code in `work`. Any other runs on the event loop, in `run`.
    """

    step_type: ClassVar[str]
    config_model: ClassVar[type[StepConfig]] = StepConfig
    heavy: ClassVar[bool] = False
    extra: ClassVar[str | None] = None  # what to install for it: headwater[extra]
    needs: ClassVar[str | None] = None  # the module by which to see whether that is installed
    timeout_seconds: ClassVar[float] = 300.0  # unless the template says otherwise
    retries: ClassVar[int] = 0

    def check(self, config: Any) -> None:  # noqa: B027 - most steps have nothing to add to their config's types
        """Raise InputError for a config that its types allow and that still cannot work."""

    def outlet_of(self, config: Any) -> str | None:
        """The outlet to which a step with this config publishes: it must be there when the template is saved."""
        return None

    def target_of(self, config: Any) -> str | None:
        """The named target to which a step with this config sends: likewise."""
        return None

    async def preview(self, context: StepContext, config: Any) -> StepResult:
        """What the step would do, for a person who tries a template: without any effect outside."""
        return await self.run(context, config)

    @abstractmethod
    async def run(self, context: StepContext, config: Any) -> StepResult:
        """Do the work. Raises StepError, PassingStepError where trying again can help."""


class HeavyStep(Step):
    heavy = True

    @abstractmethod
    def work(self, context: StepContext, config: Any) -> StepResult:
        """Do the work, blocking, in a separate process."""

    async def run(self, context: StepContext, config: Any) -> StepResult:
        """For callers without a child process to give it; workers call `work` in one and can end it."""
        return await asyncio.to_thread(self.work, context, config)


def short_name(step_type: str) -> str:
    """`enrich_content` is "enrich" in the names of outputs."""
    return step_type.partition("_")[0]
