"""A shape shows what its view says: every field, in its order, times as ISO 8601."""

from dataclasses import dataclass

from pydantic import BaseModel

from headwater.views.shape import Shape, Time


@dataclass(frozen=True)
class Noun:
    name: str
    seen_at: float | None
    tags: tuple[str, ...] = ()


class NounView(BaseModel):
    count: int
    name: str
    seen_at: Time | None
    tags: list[str]


noun_json: Shape[Noun] = Shape(NounView, ("count",), tags=lambda noun: list(noun.tags))


def test_shape_reads_makes_and_takes_its_fields_in_the_order_of_the_view() -> None:
    shown = noun_json(Noun("a", 1_772_015_400.0, ("x",)), count=3)
    assert list(shown.items()) == [
        ("count", 3),
        ("name", "a"),
        ("seen_at", "2026-02-25T10:30:00.000Z"),
        ("tags", ["x"]),
    ]


def test_shape_of_a_missing_time_is_null() -> None:
    assert noun_json(Noun("a", None), count=0)["seen_at"] is None


def test_shape_without_some_fields_shows_the_others() -> None:
    assert noun_json.without("count", "tags")(Noun("a", None)) == {"name": "a", "seen_at": None}
