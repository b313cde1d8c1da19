"""Whatever a service answers, a collector reads it or says what is wrong with it: nothing else can happen."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.collectors import bilibili, hackernews, json_api, reddit, rsshub
from headwater.collectors.answer import read_json
from headwater.errors import VisitError
from headwater.fetch.message import NO_VALIDATORS, Response
from tests.fake_services import BOOK_CONFIG, Bilibili, HackerNews, Library, Reddit

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
CONFIG = json_api.JsonApiConfig(**BOOK_CONFIG, cursor="next", pagination="cursor")  # type: ignore[arg-type]
# An answer of each service as it should be, and what reads it. The services' own makers need no origin.
STORY = HackerNews.story(HackerNews.__new__(HackerNews), 1)
POST = Reddit.post(type("Named", (), {"name": "python"})(), 1)
VIDEO = Bilibili.video(type("Numbered", (), {"uid": 1})(), 1)
BOOK = Library.book(Library.__new__(Library), 1)
READERS: dict[str, tuple[Any, Any]] = {
    "list": (hackernews.parse_list, [1, 2]),
    "story": (hackernews.parse_story, STORY),
    "listing": (reddit.parse_listing, {"data": {"after": None, "children": [{"kind": "t3", "data": POST}]}}),
    "key": (bilibili.parse_key, {"code": 0, "data": {"wbi_img": {"img_url": "a" * 32, "sub_url": "b" * 32}}}),
    "videos": (
        bilibili.parse_videos,
        {"code": 0, "data": {"list": {"vlist": [VIDEO]}, "page": {"pn": 1, "count": 1}}},
    ),
    "books": (lambda response: json_api.parse(response, CONFIG), {"data": {"books": [BOOK]}, "next": "2"}),
    "reason": (lambda response: reddit.read_reason(response.body), {"reason": "banned"}),
    "hub": (rsshub.refuse_error_page, {"error": {"message": "x"}}),
}


def answer(body: bytes) -> Response:
    return Response("https://service.example/x", 200, {}, body, NO_VALIDATORS, unchanged=False)


def read(name: str, body: bytes) -> None:
    reader, _ = READERS[name]
    try:
        reader(answer(body))
    except VisitError as error:
        assert error.render("en")


@pytest.mark.parametrize("name", READERS)
@given(data=JSON)
def test_any_json(name: str, data: Any) -> None:
    read(name, orjson.dumps(data))


@pytest.mark.parametrize("name", READERS)
@given(body=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes(name: str, body: bytes) -> None:
    read(name, body)


@pytest.mark.parametrize("name", READERS)
@given(chooser=st.data())
def test_a_good_answer_with_any_part_replaced(name: str, chooser: st.DataObject) -> None:
    _, good = READERS[name]
    read(name, orjson.dumps(_replaced(good, chooser)))


def _replaced(good: Any, chooser: st.DataObject) -> Any:
    if not good or not isinstance(good, dict | list) or chooser.draw(st.booleans()):
        return chooser.draw(JSON)
    copy: Any = dict(good) if isinstance(good, dict) else list(good)
    place = chooser.draw(st.sampled_from(sorted(copy) if isinstance(copy, dict) else range(len(copy))))
    if isinstance(copy, dict) and chooser.draw(st.booleans()):
        del copy[place]
    else:
        copy[place] = _replaced(copy[place], chooser)
    return copy


@given(data=JSON)
def test_json_is_read_as_it_is(data: Any) -> None:
    assert read_json(answer(orjson.dumps(data))) == orjson.loads(orjson.dumps(data))
