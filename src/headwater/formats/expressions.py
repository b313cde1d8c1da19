"""JMESPath expressions of people over documents of others, in so many steps and no more. Pure.

A short expression can double what the next part of it has to do, dozens of times. Every part that is looked at is a
step, and so is everything that a function or a comparison has to read or to write.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult
from jmespath.visitor import TreeInterpreter

MOST_STEPS: Final = 1_000_000  # of all expressions on one document
LONGEST_EXPRESSION: Final = 10_000
_CHARACTERS_A_STEP: Final = 100
_CHEAP: Final = re.compile(
    r"@|[A-Za-z_][A-Za-z0-9_]{0,50}(?:\.[A-Za-z_][A-Za-z0-9_]{0,50}|\[\d{1,3}\]){0,10}"
)
_DEEP: Final = frozenset(
    ("to_string", "contains")
)  # functions that read all that is inside of what they are given


@lru_cache(1024)
def compile_expression(expression: str) -> ParsedResult:
    """The expression, read; ValueError says what is wrong with it."""
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(f"it is longer than {LONGEST_EXPRESSION} characters")
    try:
        return jmespath.compile(expression)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except JMESPathError as error:
        raise ValueError(" ".join(str(error).split())[:300]) from None


def evaluate(expression: str, data: Any, budget: "Budget | None" = None) -> Any:
    """What the expression finds in `data`; ValueError when it does not fit, or takes too many steps.

    `budget`: the steps that this one shares with others.
    """
    try:
        return _Interpreter(budget or Budget()).visit(compile_expression(expression).parsed, data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (JMESPathError, TypeError, ArithmeticError) as error:
        raise ValueError(" ".join(str(error).split())[:300]) from None


def is_cheap(expression: str) -> bool:
    """Whether an expression only goes down into what it is given, so that a step or two a part are all it takes."""
    return _CHEAP.fullmatch(expression) is not None


class Budget:
    """Steps that several expressions share."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self.most = steps
        self.left = steps


class _Interpreter(TreeInterpreter):
    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._spend(1)
        return super().visit(node, *args, **kwargs)

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        given = [self.visit(child, value) for child in node["children"]]
        name = node["value"]
        for each in given:
            self._spend(self._read(each) if name in _DEEP else _size(each))
        if name == "join" and len(given) == 2 and isinstance(given[1], list):
            self._spend(len(given[1]) * _size(given[0]) + sum(map(_size, given[1])))
        functions: Any = self._functions  # type: ignore[attr-defined]  # the stubs do not know it
        result = functions.call_function(name, given)
        self._spend(_size(result))
        return result

    def visit_comparator(self, node: Any, value: Any) -> Any:
        for child in node["children"]:
            self._read(self.visit(child, value))
        return super().visit_comparator(node, value)

    def _read(self, value: Any) -> int:
        """Spend a step for everything inside of a value, as often as it stands there."""
        waiting = [value]
        while waiting:
            each = waiting.pop()
            self._spend(_size(each))
            inside: Iterable[Any] = each.values() if isinstance(each, dict) else each
            if isinstance(each, dict | list):
                waiting.extend(inside)
        return 0

    def _spend(self, steps: int) -> None:
        self._budget.left -= steps
        if self._budget.left < 0:
            raise ValueError(f"it takes more than {self._budget.most} steps")


def _size(value: Any) -> int:
    """The steps that it takes to read a value, without what is inside of it."""
    if isinstance(value, str):
        return 1 + len(value) // _CHARACTERS_A_STEP
    return 1 + len(value) if isinstance(value, list | dict) else 1
