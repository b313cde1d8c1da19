"""Texts with blanks: prompts, subjects, messages, bodies of outlets.

Templates are written by the operator and run in Jinja2's immutable sandbox. What comes from the web only ever fills
blanks; it is never read as a template. A template that only fills blanks is filled at once; one that calculates or
repeats may do so for ever, or need any amount of memory, and is filled in a child process with limits on both.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from headwater.errors import InputError, StepError
from headwater.processes.pool import ChildPool

MAX_CHARACTERS = 1_000_000
LONGEST_TEMPLATE = 50_000
MOST_SECONDS = 10.0
MOST_MEGABYTES = 200

# What fills blanks and no more: its time and its memory are those of what it is given.
_SIMPLE = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.If)
_SIMPLE_FILTERS = frozenset(
    ("default", "d", "e", "escape", "first", "last", "length", "lower", "trim", "upper")
)
_FEW_FILTERS = 10  # each may read all of a long text
_WRONG = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError, SyntaxError)

_children = ChildPool(__name__, tasks_per_child=1_000, most_megabytes=MOST_MEGABYTES)


class _Generator(CodeGenerator):
    """Writes the code of a template, and calculates nothing of it: not even `"a" * 2_000_000_000`."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData | nodes.Const):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)

    def visit_EvalContextModifier(self, node: nodes.EvalContextModifier, frame: Frame) -> None:  # noqa: N802
        raise TemplateSyntaxError("autoescape cannot be used here", node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    code_generator_class = _Generator


def _environment() -> ImmutableSandboxedEnvironment:
    environment = _Environment(undefined=StrictUndefined, autoescape=False, optimized=False)
    environment.globals.pop("lipsum", None)
    return environment


@lru_cache(maxsize=256)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


@lru_cache(maxsize=256)
def _is_simple(text: str) -> bool:
    filters = 0

    def is_simple(node: nodes.Node) -> bool:
        nonlocal filters
        if isinstance(node, nodes.Filter):
            filters += 1
            return node.name in _SIMPLE_FILTERS and all(map(is_simple, node.iter_child_nodes()))
        return isinstance(node, _SIMPLE) and all(map(is_simple, node.iter_child_nodes()))

    return is_simple(_environment().parse(text)) and filters <= _FEW_FILTERS


def check_template(key: str, text: str) -> None:
    """InputError that names the key of a template that cannot be read."""
    if len(text) > LONGEST_TEMPLATE:
        raise InputError(
            "{key}: the template is longer than {limit} characters", key=key, limit=LONGEST_TEMPLATE
        )
    try:
        _compiled(text)
    except RecursionError:
        raise InputError("{key}: the template is nested too deeply", key=key) from None
    except (TemplateError, SyntaxError, MemoryError, ValueError) as error:
        raise InputError("{key}: the template cannot be read: {problem}", key=key, problem=error) from None


async def fill(key: str, text: str, values: dict[str, Any]) -> str:
    """The template with its blanks filled; StepError when one cannot be."""
    return (await fill_all({key: text}, values))[key]


async def fill_all(templates: Mapping[str, str], values: dict[str, Any]) -> dict[str, str]:
    """Templates by their keys, each with its blanks filled; StepError when one cannot be."""
    filled: dict[str, str] = {}
    difficult: dict[str, str] = {}
    for key, text in templates.items():
        if _is_surely_simple(text):
            filled[key] = _fill(key, text, values)
        else:
            difficult[key] = text
    if difficult:
        filled |= await _fill_in_child(difficult, values)
    return filled


async def _fill_in_child(templates: dict[str, str], values: dict[str, Any]) -> dict[str, str]:
    keys = ", ".join(templates)
    try:
        async with asyncio.timeout(MOST_SECONDS):
            return await _children.call({"templates": templates, "values": values})
    except TimeoutError:
        raise _too_slow(keys) from None


def fill_each(key: str, text: str, values: Sequence[dict[str, Any]]) -> list[str]:
    """One template, filled for each of these. Blocking, for a thread that waits; StepError as above."""
    if _is_surely_simple(text):
        return [_fill(key, text, each) for each in values]
    try:
        told = _children.call_blocking({"templates": {key: text}, "each": list(values)}, MOST_SECONDS)
    except TimeoutError:
        raise _too_slow(key) from None
    return [str(each) for each in told["filled"]]


def _is_surely_simple(text: str) -> bool:
    try:
        return _is_simple(text)
    except _WRONG:
        return False  # the child says what is wrong with it


def _too_slow(keys: str) -> StepError:
    return StepError("{key}: the template takes longer than {seconds:g} s", key=keys, seconds=MOST_SECONDS)


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Fill templates. Blocking, in a separate process, with limits on its time and its memory."""
    if "each" in task:
        [(key, text)] = task["templates"].items()
        return {"filled": [_fill_within_memory(key, text, values) for values in task["each"]]}
    return {key: _fill_within_memory(key, text, task["values"]) for key, text in task["templates"].items()}


def _fill_within_memory(key: str, text: str, values: dict[str, Any]) -> str:
    try:
        return _fill(key, text, values)
    except (MemoryError, OverflowError):
        raise StepError(
            "{key}: the template needs more than {limit} MB of memory", key=key, limit=MOST_MEGABYTES
        ) from None


def _fill(key: str, text: str, values: dict[str, Any]) -> str:
    parts: list[str] = []
    size = 0
    try:
        for part in _compiled(text).generate(values):
            size += len(part)
            if size > MAX_CHARACTERS:
                raise StepError(
                    "{key}: what the template makes is longer than {limit} characters",
                    key=key,
                    limit=MAX_CHARACTERS,
                )
            parts.append(part)
    except OverflowError:
        raise  # more than any memory has room for
    except _WRONG as error:
        raise StepError(
            "{key}: the template cannot be filled: {problem}", key=key, problem=str(error)[:500]
        ) from None
    return "".join(parts)
