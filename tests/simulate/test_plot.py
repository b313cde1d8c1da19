"""The picture: well-formed, and every policy in it."""

from xml.etree import ElementTree as ET

from headwater.simulate.engine import compare
from headwater.simulate.plot import draw_curves
from headwater.simulate.trace import Conditions
from tests.simulate.test_engine import make_trace


def test_every_policy_is_drawn_and_named() -> None:
    results = compare(make_trace(30), ["fixed", "adaptive", "clairvoyant"], [12.0, 3.0], Conditions())
    root = ET.fromstring(draw_curves(results, "A <title> & more", "x", "y"))  # noqa: S314 - our own text
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A <title> & more", "fixed", "adaptive", "clairvoyant"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 3


def test_nothing_to_draw_is_drawn() -> None:
    ET.fromstring(draw_curves([], "empty", "x", "y"))  # noqa: S314
