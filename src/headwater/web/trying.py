"""Trying a template on one item: its steps run, nothing is stored and nothing is published."""

from typing import Any

from headwater.fetch.client import make_fetcher
from headwater.model import StoredItem
from headwater.pipeline.advance import Workbench
from headwater.pipeline.ledger import make_ledger
from headwater.pipeline.trying import TriedStep, try_steps
from headwater.services.requests import secrets_for_steps
from headwater.services.targets import mail_defaults
from headwater.store.pipelines.templates import NewTemplate
from headwater.web.context import Context


async def try_template(
    context: Context, template: NewTemplate, item: StoredItem, runtime_config: dict[str, Any] | None = None
) -> list[TriedStep]:
    async with make_fetcher(context.settings) as fetcher:
        bench = Workbench(
            context.settings.data_dir,
            fetcher,
            secrets_for_steps(context.settings.secrets),
            mail_defaults(context.settings),
            make_ledger(context.store, context.settings, context.clock),
            context.clock,
        )
        return await try_steps(template.steps, item, bench, runtime_config)
