"""How a noun becomes JSON: each field of its view is read from the attribute of the same name."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, WithJsonSchema

from headwater.wording import iso

Noun = TypeVar("Noun")
Json = dict[str, Any]

Time = Annotated[  # in UTC, to the millisecond
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-02-25T10:30:00.000Z"]})
]


def with_example(example: Callable[[], Json]) -> ConfigDict:
    """The configuration of a view whose description shows an example, which is made when it is asked for."""

    def add(schema: Json) -> None:
        schema["example"] = example()

    return ConfigDict(json_schema_extra=add)


class Shape(Generic[Noun]):
    """Makes the JSON of a noun by its view.

    A field is read from the attribute of its name; one whose name ends in `_at` is a time. `given` names the fields
    that a caller passes, since the noun does not know them; `made` says how to make the fields that differ otherwise.
    """

    def __init__(
        self, view: type[BaseModel], given: tuple[str, ...] = (), /, **made: Callable[[Noun], Any]
    ) -> None:
        self._compile(tuple(view.model_fields), given, made)

    def _compile(
        self, names: tuple[str, ...], given: tuple[str, ...], made: Mapping[str, Callable[[Noun], Any]]
    ) -> None:
        self._parts = names, given, made
        fields = []
        for name in names:
            if name in made:
                fields.append(f"{name!r}: made[{name!r}](noun)")
            elif name in given:
                fields.append(f"{name!r}: given[{name!r}]")
            else:
                fields.append(
                    f"{name!r}: iso(noun.{name})" if name.endswith("_at") else f"{name!r}: noun.{name}"
                )
        # Compiled, as dataclasses are, for lists have thousands of nouns. The names are those of our own models.
        source = f"lambda noun, given: {{{', '.join(fields)}}}"
        self._show: Callable[[Noun, Json], Json] = eval(source, {"iso": iso, "made": made})  # noqa: S307

    def without(self, *names: str) -> Self:
        """The same shape without some of its fields."""
        part = copy(self)
        fields, given, made = self._parts
        part._compile(tuple(name for name in fields if name not in names), given, made)
        return part

    def __call__(self, noun: Noun, /, **given: Any) -> Json:
        return self._show(noun, given)
