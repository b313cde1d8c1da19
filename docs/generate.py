"""Writes the parts of the documentation that are made from the code: `make docs`. A test compares them.

docs/reference/settings.md, docs/reference/commands.md, docs/reference/types.md, docs/reference/steps.md,
docs/reference/python.md, docs/reference/api.md, docs/reference/traceability.md, .env.example
"""

import importlib
import inspect
import json
import os
import pkgutil
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

os.environ["HEADWATER_LANGUAGE"] = "en"
os.environ.setdefault("XDG_DATA_HOME", "~/.local/share")

import typer
from docs.traceability import traceability_page
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import headwater
from headwater.cli.app import app
from headwater.cli.help import tidy
from headwater.collectors.base import Collector, FetchRequest, FetchResult, SourceConfig, is_secret
from headwater.collectors.types import TYPES, SourceType, config_model_of
from headwater.config import load_settings
from headwater.model import Item
from headwater.pipeline import steps
from headwater.pipeline.steps.base import HeavyStep, Step, StepContext, StepResult
from headwater.settings import SETTINGS, Setting
from headwater.store.core.database import Store
from headwater.web.app import create_app

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Made from the code by `make docs`; changes here are overwritten. -->\n\n"

SETTINGS_TEXT = """# Settings

A setting has its default until a later place says otherwise: `headwater.toml` in the current directory (or the file
named with `--config`), then `.env` in the current directory, then the environment, then the command line
(`--set NAME=VALUE`). A wrong value or an unknown name stops the start with one line. `headwater config` shows every
setting in force and where it came from.

| in `headwater.toml` | in the environment | default | takes | meaning |
|---|---|---|---|---|
ROWS
## Intervals by type

`FETCH_INTERVAL_<TYPE>` in the environment, or `[fetch_interval]` in `headwater.toml`, sets the minutes between visits
for a [type of source](types.md), by its alias (`FETCH_INTERVAL_RSS=120`) or its full name
(`FETCH_INTERVAL_RSS_FEED=120`). A source's own `fetch_interval_minutes` in its config wins over both.
"""
TYPES_TEXT = """# Types of sources

Names and aliases mean the same everywhere. Sources of a type that is not collected can be stored; visits to them
are skipped with one warning for each type. [Other sources than feeds](../how-to/other-sources.md) shows each
type at work, and `headwater types` lists them on the command line.

| type | alias | interval | collected |
|---|---|---|---|
ROWS
## Config

What a source may have in its config, given with `--config KEY=VALUE` when it is added (`VALUE` as JSON where the key
takes something else than text). Values of secret keys are starred out wherever a source is shown.

CONFIGS"""
STEPS_TEXT = """# Step types

What each step's `config` takes in a template; nothing in it is needed unless the step's `target` says so. How the steps
work together is in [steps](../how-to/steps.md). `${NAME}` in a secret, an address or a model's name stands for an
environment variable of the worker.

STEPS"""
PYTHON_TEXT = """# Python

Everything `headwater` exports, and below it [what plugins are given](#for-plugins). Nothing else is public.
"""
PLUGINS_TEXT = """## For plugins

What [a plugin](../how-to/write-a-plugin.md) imports from `headwater.model`, `headwater.collectors.base` and
`headwater.pipeline.steps.base`.
"""
FOR_PLUGINS = (Item, Collector, FetchRequest, FetchResult, Step, HeavyStep, StepContext, StepResult)
# Run by tests/test_docs_snippets.py, where they stand on the page.
EXAMPLES = {
    "parse": """from pathlib import Path

import headwater

feed = headwater.parse(Path("feed.xml").read_bytes(), url="https://example.org/feed.xml")
print(feed.format, feed.title)
for entry in feed.entries:
    print(entry.published, entry.title, entry.link)
""",
    "ParseError": """import headwater

try:
    headwater.parse(b"<html>no feed</html>")
except headwater.ParseError as error:
    print(error.kind, error)
""",
    "IncrementalStateManager": """import asyncio

from headwater import IncrementalStateManager, SitemapEntry


async def main() -> None:
    with IncrementalStateManager("./rss_states") as manager:
        entries = [SitemapEntry("https://example.org/1", "2025-07-12")]
        result = await manager.detect_changes("example", entries)
        print(result.new_urls, result.modified_urls)
        await manager.update_state("example", entries)


asyncio.run(main())
""",
    "Item": """from headwater.model import Enclosure, Item

item = Item(
    "episode-7",  # what tells it from the source's other items, for ever
    url="https://example.org/7",
    title="The river",
    published_at=1767225600.0,  # seconds since 1970
    enclosures=(Enclosure("https://example.org/7.mp3", "audio/mpeg", 4_000_000),),
)
""",
    "FetchResult": '''from headwater.collectors.base import Collector, FetchRequest, FetchResult, request_for
from headwater.model import Item


class Lines(Collector):
    """Every line of a text is an item."""

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        response = await fetch_request.fetcher.get(request_for(fetch_request.source, fetch_request.config))
        if response.unchanged:
            return FetchResult.of(response)
        lines = response.body.decode().splitlines()
        return FetchResult.of(response, items=tuple(Item(line, title=line) for line in lines))
''',
    "StepContext": """from typing import Any

from headwater.pipeline.steps.base import Step, StepContext, StepResult


class CountWords(Step):
    step_type = "count_words"

    async def run(self, context: StepContext, config: Any) -> StepResult:
        text = context.output_of("enrich_content").get("text") or context.content_item["title"]
        return StepResult.of(words=len(text.split()))
""",
}
KINDS: dict[Any, str] = {
    str: "text",
    float: "a number",
    int: "a whole number",
    bool: "`true` or `false`",
    dict[str, str]: "a JSON object of texts",
    dict[str, Any]: "a JSON object",
    list[str]: "a JSON list of texts",
}


def shown_default(setting: Setting) -> str:
    if setting.name == "data_dir":
        return "`~/.local/share/headwater`"
    if setting.default in (None, ()):
        return "–"
    return f"`{setting.default:g}`" if isinstance(setting.default, float) else f"`{setting.default}`"


def settings_page() -> str:
    rows = "".join(
        f"| `{setting.name}` | {', '.join(f'`{name}`' for name in setting.env)} | {shown_default(setting)} "
        f"| {setting.allowed} | {setting.help} |\n"
        for setting in SETTINGS
    )
    return f"{NOTE}{SETTINGS_TEXT}".replace("ROWS", rows)


def types_page() -> str:
    rows = "".join(
        f"| `{kind.name}` | {f'`{kind.alias}`' if kind.alias else '–'} | {kind.interval_minutes:g} min "
        f"| {shown_collected(kind)} |\n"
        for kind in TYPES
    )
    return f"{NOTE}{TYPES_TEXT}".replace("ROWS", rows).replace("CONFIGS", "\n".join(config_texts()))


def shown_collected(kind: SourceType) -> str:
    if kind.collector is None:
        return "skipped"
    return (
        "with a `bearer_token` or a `bridge_url`, else skipped" if kind.name.startswith("twitter.") else "yes"
    )


def config_texts() -> Iterator[str]:
    """The keys of every source, then those that a type has beyond them."""
    yield config_table("every source", SourceConfig, SourceConfig.model_fields)
    for kind in TYPES:
        model = config_model_of(kind.name)
        if own := [name for name in model.model_fields if name not in SourceConfig.model_fields]:
            yield config_table(f"`{kind.name}`", model, own)


def steps_page() -> str:
    return f"{NOTE}{STEPS_TEXT}".replace("STEPS", "\n".join(step_texts()))


def step_texts() -> Iterator[str]:
    for step in step_types():
        extra = f"Needs `pip install 'headwater[{step.extra}]'`. " if step.extra else ""
        yield (
            f"## `{step.step_type}`\n\n{extra}It may take {step.timeout_seconds:g} s and is retried "
            f"{step.retries} times.\n\n"
            + config_table("config", step.config_model, step.config_model.model_fields)
        )


def step_types() -> Iterator[type[Step]]:
    """Those of our own, in modules named as they are."""
    for found in pkgutil.iter_modules(steps.__path__):
        for value in vars(importlib.import_module(f"{steps.__name__}.{found.name}")).values():
            if isinstance(value, type) and getattr(value, "step_type", None) == found.name:
                yield value


def config_table(of: str, model: type[BaseModel], names: Iterable[str]) -> str:
    text = f"| of {of} | takes | default | secret | meaning |\n|---|---|---|---|---|\n"
    for name in names:
        field = model.model_fields[name]
        secret = "yes" if is_secret(name, model) else ""
        default = (
            shown_value(field.get_default(call_default_factory=True))
            if not field.is_required()
            else "required"
        )
        text += f"| `{name}` | {shown_takes(field)} | {default} | {secret} | {field.description or ''} |\n"
    return text


def shown_value(value: Any) -> str:
    """A default as it is written in JSON; long texts by their beginning, nothing where there is none."""
    if value is None or value in ("", {}, [], ()):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=list)
    text = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}…`"


def shown_takes(field: FieldInfo) -> str:
    """What a key takes, for its documentation: its type without None, and its limits."""
    kinds = (field.annotation,)
    if get_origin(field.annotation) in (Union, UnionType):
        kinds = get_args(field.annotation)
    words = [shown_kind(kind) for kind in kinds if kind is not type(None)]
    limits = {name: value for each in field.metadata for name, value in vars_of(each)}
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    between = f" from {low:g} to {high:g}" if low is not None and high is not None else ""
    return " or ".join(words) + between


def shown_kind(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if get_origin(kind) is list and get_origin(get_args(kind)[0]) is Literal:
        return f"a JSON list of {shown_kind(get_args(kind)[0])}"
    return KINDS.get(kind, f"`{shown_type(kind)}`")


def vars_of(limit: Any) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(limit, name)) for name in ("ge", "gt", "le", "lt") if hasattr(limit, name))


def commands_page() -> str:
    return NOTE + "# Commands\n\n" + "\n".join(command_texts(tidy(typer.main.get_command(app)), "headwater"))


def command_texts(command: Any, path: str) -> Iterator[str]:
    yield f"## `{path}`\n\n{command.help or ''}\n"
    rows = ""
    for parameter in command.params:
        if parameter.name in ("help", "install_completion", "show_completion"):
            continue
        is_option = parameter.opts[0].startswith("-")
        names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.metavar]
        shown = ", ".join(f"`{name}`" for name in names).replace("|", "\\|")
        rows += f"| {shown} | {parameter.help or ''} |\n"
    if rows:
        yield "| | |\n|---|---|\n" + rows
    for name in sorted(getattr(command, "commands", {})):
        yield from command_texts(command.commands[name], f"{path} {name}")


def python_page() -> str:
    parts = [NOTE + PYTHON_TEXT]
    parts += [shown_thing(name, getattr(headwater, name), 2) for name in headwater.__all__]
    parts.append(PLUGINS_TEXT)
    parts += [shown_thing(thing.__name__, thing, 3) for thing in FOR_PLUGINS]
    return "\n".join(parts)


def shown_thing(name: str, thing: Any, level: int) -> str:
    """A heading, what the code says of it, its fields or methods, and an example if there is one."""
    if name == "__version__":
        return f"{'#' * level} `__version__`\n\nThe version, as text.\n"
    signature = str(inspect.signature(thing)) if inspect.isfunction(thing) else ""
    text = inspect.cleandoc(thing.__doc__ or "")
    if is_dataclass(thing):
        text = ("" if text.startswith(f"{name}(") else f"{text}\n\n") + field_table(thing)
    elif isinstance(thing, type) and issubclass(thing, StrEnum):
        text += "\n\n" + ", ".join(f"`{each.value}`" for each in thing)
    elif isinstance(thing, type) and not issubclass(thing, Exception):
        text += "\n\n" + "".join(method_lines(thing))
    example = f"\n\n```python\n{EXAMPLES[name]}```" if name in EXAMPLES else ""
    return f"{'#' * level} `{name}{signature}`\n\n{text.strip()}{example}\n"


def field_table(thing: Any) -> str:
    comments = comments_of(thing)
    rows = "".join(
        f"| `{each.name}` | `{shown_type(each.type)}` | {shown_field_default(each)} | {comments.get(each.name, '')} |\n"
        for each in fields(thing)
    )
    return f"| field | type | default | meaning |\n|---|---|---|---|\n{rows}"


def shown_field_default(field: Any) -> str:
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else ""
    return shown_value(field.default) if isinstance(field.default, str | int | float | bool) else ""


def comments_of(thing: type) -> dict[str, str]:
    """What stands behind a field in the code."""
    found = re.findall(r"^    (\w+): .*?  # (.+)$", inspect.getsource(thing), re.MULTILINE)
    return {name: comment[0].upper() + comment[1:].replace("|", "\\|") for name, comment in found}


def method_lines(thing: type) -> Iterator[str]:
    for name, method in vars(thing).items():
        if name.startswith("_") or not inspect.isfunction(inspect.unwrap(method)) or not method.__doc__:
            continue
        first = " ".join(inspect.cleandoc(method.__doc__).partition("\n\n")[0].split())
        wait = "async " if inspect.iscoroutinefunction(method) else ""
        parameters = re.sub(r"'|\b(?:\w+\.)+(?=[A-Z])", "", str(inspect.signature(method)))
        yield f"- `{wait}{name}{parameters}`: {first}\n"


API_TEXT = """# HTTP API

How to get a key and make the first request: [use the API](../how-to/use-the-api.md). The same description for programs
is at `/api/openapi.json` of a running `headwater serve`.
"""


def api_page() -> str:
    schema = api_schema()
    models = schema["components"]["schemas"]
    parts = [NOTE + API_TEXT]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            parts.append(f"## `{method.upper()} {path}`\n\n{operation['description']}\n")
            if parameters := operation.get("parameters"):
                rows = "".join(
                    f"| `{each['name']}` | {each['in']} | {each.get('description', '')} |\n"
                    for each in parameters
                )
                parts.append("| parameter | in | meaning |\n|---|---|---|\n" + rows)
            if body := operation.get("requestBody"):
                parts.append(f"Takes {shown_body(body)}.\n")
            statuses = sorted(operation["responses"])
            good = [status for status in statuses if status < "400"]
            parts.append(f"Answers {', '.join(good)}; problems: {', '.join(statuses[len(good) :])}.\n")
    parts.append("## What is in questions and answers\n")
    for name, model in models.items():
        if "properties" not in model or name in ("HTTPValidationError", "ValidationError"):
            continue
        parts.append(f"### {name}\n\n{inspect.cleandoc(model.get('description', ''))}".rstrip() + "\n")
        rows = "".join(
            f"| `{field}` | {shown_schema(each)} | {each.get('description', '')} |\n"
            for field, each in model["properties"].items()
        )
        parts.append("| field | type | meaning |\n|---|---|---|\n" + rows)
    return "\n".join(parts)


def shown_body(body: dict[str, Any]) -> str:
    json = body["content"].get("application/json")
    return shown_schema(json["schema"]) if json else f"`{next(iter(body['content']))}`"


def api_schema() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        settings = load_settings(directory=Path(directory), environment={})
        with Store(f"sqlite:///{directory}/none.db") as store:
            return create_app(store, settings).openapi()


def shown_schema(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(shown_schema(each) for each in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {shown_schema(schema['items'])}"
    if "const" in schema:
        return f"`{schema['const']}`"
    return str(schema.get("format") or schema.get("type", "anything"))


def shown_type(kind: Any) -> str:
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text).replace("|", "\\|")


def example_environment() -> str:
    lines = ["# Every setting, with its default. Copy to .env and change what you need.", ""]
    for setting in SETTINGS:
        default = setting.default
        if default in (None, ()) or callable(default):
            default = ""
        value = f"{default:g}" if isinstance(default, float) else default
        lines += [f"# {setting.help}", f"# Takes {setting.allowed}.", f"#{setting.env[0]}={value}", ""]
    lines += [
        "# Minutes between visits to the sources of a type.",
        *(
            f"#FETCH_INTERVAL_{(kind.alias or kind.name).upper().replace('.', '_')}={kind.interval_minutes:g}"
            for kind in TYPES
        ),
    ]
    return "\n".join(lines) + "\n"


PAGES = {
    "docs/reference/settings.md": settings_page,
    "docs/reference/types.md": types_page,
    "docs/reference/steps.md": steps_page,
    "docs/reference/commands.md": commands_page,
    "docs/reference/python.md": python_page,
    "docs/reference/api.md": api_page,
    "docs/reference/traceability.md": lambda: NOTE + traceability_page(),
    ".env.example": example_environment,
}


def main() -> None:
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
