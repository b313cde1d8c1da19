"""Every entry of the gallery, from a feed on a loopback origin to what arrives: an outlet, a mail, a webhook."""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apprise
import feedparser
import pytest

from headwater.collect.engine import Engine
from headwater.config import Settings
from headwater.errors import InputError
from headwater.pipeline.templates import read_template
from headwater.pipeline.worker import Worker
from headwater.publish.gallery import GALLERY, use_entry
from headwater.publish.media import MediaAddresses
from headwater.publish.outlets import render_outlet, write_outlet
from headwater.publish.publisher import Publisher
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import pipeline_executions
from headwater.store.pipelines.templates import change_template, get_template
from headwater.store.publishing.digests import make_due
from headwater.store.publishing.targets import get_target
from headwater.store.reading.media import media_secret
from headwater.store.reading.outlets import read_edition
from tests.fetch import door
from tests.origin import Answer, Origin, Received
from tests.pipeline.making import make_settings, until, working
from tests.pipeline.steps.mail_server import mail_server
from tests.pipeline.steps.media import wav
from tests.pipeline.steps.model_service import ModelService
from tests.pipeline.steps.tiny_whisper import write_model

ARTICLE = "<html><head><title>A flood</title></head><body><article><h1>A flood</h1>" + (
    "<p>The river rose for three days, and the harbour of the old town is closed until Friday evening.</p>"
    * 20
)
Work = Callable[[], Awaitable[None]]


class Place:
    """An installation with one feed on loopback, in the folder News."""

    def __init__(
        self, store: Store, origin: Origin, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.store, self.origin, self.settings = store, origin, settings
        self.models = ModelService(origin)
        monkeypatch.setenv("OPENAI_BASE_URL", self.models.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "tiny-1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        origin.route("/a", body=ARTICLE, content_type="text/html")
        self.feed = origin.url("/feed")
        self.items("A flood", "A poker night")

    def items(self, *titles: str, extra: str = "") -> None:
        rows = "".join(
            f"<item><title>{title}</title><guid>{title}</guid><link>{self.origin.url('/a')}</link>"
            f"<description>In short: {title}</description>{extra}</item>"
            for title in titles
        )
        body = f'<rss version="2.0"><channel><title>One</title>{rows}</channel></rss>'
        self.origin.route("/feed", body=body, content_type="application/rss+xml")

    def use(self, key: str, **values: str) -> None:
        with self.store.writing() as connection:
            if not values.get("url"):
                add_source(connection, name="One", type="rss.feed", url=self.feed, now=1.0, folder="News")
            use_entry(connection, key, values, 1.0)

    async def collect(self) -> None:
        async with Engine(self.store, self.settings) as engine:
            await engine.collect_all()

    async def work(self) -> None:
        """Until no run is left."""

        def done() -> bool:
            with self.store.reading() as connection:
                query = pipeline_executions.select().where(pipeline_executions.c.completed_at.is_(None))
                return connection.execute(query).first() is None

        async with door() as fetcher, working(Worker(self.store, self.settings, fetcher)):
            await until(done)

    async def publish(self) -> None:
        publisher = Publisher(self.store, self.settings, lambda _: door(), clock=time.time)
        async with publisher._fetcher:
            while await publisher.digests.run_once() or await publisher.run_once():
                pass

    def read(self, name: str) -> list[Any]:
        """The entries of an outlet, by a parser that is not ours."""
        with self.store.reading() as connection:
            body = render_outlet(connection, read_edition(connection, name), "rss").body
        return list(feedparser.parse(body).entries)

    @property
    def hooked(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.origin.requests if each.path == "/hook"]


@pytest.fixture
def place(store: Store, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    settings = replace(make_settings(tmp_path), allow_hosts=("127.0.0.1",), host_spacing_seconds=0.0)
    return Place(store, origin, settings, monkeypatch)


async def test_full_text_feed_has_the_whole_articles(place: Place) -> None:
    place.use("full-text-feed", folder="News")
    await place.collect()
    await place.work()
    entries = place.read("full-text-feed")
    assert {entry.title for entry in entries} == {"A flood", "A poker night"}
    assert all("the harbour of the old town" in entry.content[0].value for entry in entries)


async def test_translated_feed_has_translated_titles_and_texts(place: Place) -> None:
    answer = {"title": "洪水", "text": "河水上涨了三天。"}
    place.models.rule = lambda prompt: json.dumps(answer)
    place.use("translated-feed", language="zh", folder="News")
    await place.collect()
    await place.work()
    entries = place.read("translated-feed")
    assert [entry.title for entry in entries] == ["洪水", "洪水"]
    assert "河水上涨了三天" in entries[0].content[0].value


async def test_daily_digest_arrives_by_mail(place: Place) -> None:
    async with mail_server() as box:
        place.settings = replace(
            place.settings,
            smtp_host="127.0.0.1",
            smtp_port=box.port,
            smtp_security="none",
            mail_sender="news@example.org",
        )
        place.use("daily-digest", email="ann@example.org", time="07:30", zone="Europe/Berlin")
        await place.collect()
        with place.store.writing() as connection:
            make_due(connection, "daily-digest", 1.0)
        await place.publish()
        [message] = box.messages
    assert message["To"] == "ann@example.org"
    html = message.get_body(("html",))
    assert html is not None
    assert "A flood" in html.get_content()
    assert "In short: A poker night" in html.get_content()


async def test_daily_digest_in_chinese_has_the_best_translated(place: Place) -> None:
    def answer(prompt: str) -> str:
        if "How much does this item matter" in prompt:
            points = 9 if "A flood" in prompt else 3
            return json.dumps({"score": points, "tags": [], "reason": "It is near."})
        return json.dumps({"title": "洪水", "text": "河水上涨了三天。"})

    place.models.rule = answer
    async with mail_server() as box:
        place.settings = replace(
            place.settings,
            smtp_host="127.0.0.1",
            smtp_port=box.port,
            smtp_security="none",
            mail_sender="news@example.org",
        )
        fields = {"email": "ann@example.org", "language": "zh", "interests": "rivers", "folder": "News"}
        place.use("daily-digest", **fields)
        await place.collect()
        await place.work()
        with place.store.writing() as connection:
            make_due(connection, "daily-digest", time.time())
        await place.publish()
        [message] = box.messages
    assert message["Subject"].startswith("每日简报")
    html = message.get_body(("html",))
    assert html is not None
    assert "河水上涨了三天" in html.get_content()
    assert "poker" not in html.get_content().lower(), "it scored 3"
    assert html.get_content().count("洪水") == 1


async def test_entry_runs_for_the_newest_items_that_are_there(place: Place) -> None:
    place.items(*(f"Item {number}" for number in range(12)))
    with place.store.writing() as connection:
        add_source(connection, name="One", type="rss.feed", url=place.feed, now=1.0, folder="News")
    await place.collect()
    with place.store.writing() as connection:
        made = use_entry(connection, "full-text-feed", {"folder": "News"}, 2.0)
    assert (made.run_count, made.asks_model, made.sends_mail) == (10, False, False)
    await place.work()
    entries = place.read("full-text-feed")
    assert sum("the harbour of the old town" in str(entry.get("content")) for entry in entries) == 10


async def test_podcast_is_transcribed_here_without_a_service(place: Place, tmp_path: Path) -> None:
    sentence = "the river rose for three days"
    model = write_model(tmp_path / "model", sentence)
    place.origin.route("/1.wav", body=wav(), content_type="audio/wav")
    place.models.rule = lambda prompt: "About rivers." if sentence in prompt else "not transcribed"
    address = place.origin.url("/1.wav")
    place.items("Episode 1", extra=f'<enclosure url="{address}" type="audio/wav" length="64044"/>')
    place.use("podcast-summary", folder="News")
    with place.store.writing() as connection:
        template = get_template(connection, 1)
        steps = [dict(step) for step in template.steps]
        steps[1]["config"] = {"model": str(model), "device": "cpu", "skip_silence": False}
        change_template(connection, 1, read_template({"name": template.name, "steps": steps}), 2.0)
    await place.collect()
    await place.work()
    [entry] = place.read("podcast-summary")
    assert "About rivers." in entry.content[0].value


async def test_podcast_is_transcribed_summarised_and_keeps_its_enclosure(place: Place) -> None:
    place.origin.route("/1.mp3", body=b"ID3" + b"\0" * 2_000, content_type="audio/mpeg")

    def transcribe(request: Received) -> Answer:
        told = {
            "text": "Today we talk about rivers.",
            "language": "en",
            "segments": [{"start": 0.0, "end": 2.0, "text": "Today we talk about rivers."}],
        }
        return Answer(body=json.dumps(told), content_type="application/json")

    place.origin.route("/v1/audio/transcriptions", transcribe)
    place.models.rule = lambda prompt: (
        "About rivers." if "Today we talk about rivers." in prompt else "not transcribed"
    )
    mp3 = place.origin.url("/1.mp3")
    place.items("Episode 1", extra=f'<enclosure url="{mp3}" type="audio/mpeg" length="2003"/>')
    place.use("podcast-summary", folder="News")
    await place.collect()
    await place.work()
    [entry] = place.read("podcast-summary")
    assert "About rivers." in entry.content[0].value
    assert [each.href for each in entry.enclosures] == [mp3]


async def test_best_of_publishes_what_scores_high_alone(place: Place) -> None:
    def score(prompt: str) -> str:
        points = 9 if "A flood" in prompt else 2
        return json.dumps({"score": points, "tags": ["weather"], "reason": "near"})

    place.models.rule = score
    place.use("best-of", interests="rivers and harbours", folder="News")
    await place.collect()
    await place.work()
    assert [entry.title for entry in place.read("best-of")] == ["A flood"]
    assert "rivers and harbours" in place.models.asked[0]["messages"][-1]["content"]


async def test_keyword_alert_reaches_the_webhook(place: Place) -> None:
    place.use("keyword-alert", keywords="poker, chess", webhook=place.origin.route("/hook", body="ok"))
    await place.collect()
    await place.work()
    await place.publish()
    [message] = place.hooked
    assert message["title"] == "A poker night"
    assert message["item"]["source_name"] == "One"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise imports it
@pytest.mark.parametrize(
    ("given", "kind", "address"),
    [
        ("https://example.org/hook", "webhook", "https://example.org/hook"),
        ("${HOOK}", "webhook", "${HOOK}"),
        ("https://hooks.slack.com/services/T/B/x", "apprise", "https://hooks.slack.com/services/T/B/x"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/abc-def", "apprise", "feishu://abc-def"),
        ("https://oapi.dingtalk.com/robot/send?access_token=abc", "apprise", "dingtalk://abc"),
        ("tgram://123456789:abcdefg_hijklmnop/12315544", "apprise", None),
    ],
)
def test_keyword_alert_takes_the_address_that_a_chat_gives_out(
    store: Store, given: str, kind: str, address: str | None
) -> None:
    with store.writing() as connection:
        use_entry(connection, "keyword-alert", {"keywords": "poker", "webhook": given}, 1.0)
        target = get_target(connection, "keyword-alert")
    key = "url" if kind == "webhook" else "apprise_urls"
    expected = address or given
    assert (target.kind, target.config[key]) == (kind, expected if kind == "webhook" else [expected])
    if kind == "apprise":
        assert apprise.Apprise.instantiate(expected) is not None, "apprise knows it"


async def test_page_watch_sends_the_difference(place: Place) -> None:
    def page(price: int) -> None:
        body = f"<html><head><title>Shop</title></head><body><p>A boat costs {price} euros today.</p></body></html>"
        place.origin.route("/shop", body=body, content_type="text/html")

    page(100)
    hook = place.origin.route("/hook", body="ok")
    place.use("page-watch", url=place.origin.url("/shop"), webhook=hook)
    await place.collect()
    await place.work()
    await place.publish()
    assert place.hooked == []
    page(120)
    await place.collect()
    await place.work()
    await place.publish()
    [message] = place.hooked
    assert message["title"] == "Shop"
    assert "<del>100</del><ins>120</ins>" in message["html"]


async def test_archive_keeps_articles_and_images_and_serves_them(place: Place, tmp_path: Path) -> None:
    picture = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000 1f15c489"
        "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082".replace(" ", "")
    )
    image = place.origin.route("/p.png", body=picture, content_type="image/png")
    place.items("A flood", extra=f'<enclosure url="{image}" type="image/png" length="70"/>')
    place.use("archive", folder="News")
    await place.collect()
    await place.work()
    with place.store.reading() as connection:
        secret = media_secret(connection)
        addresses = MediaAddresses.under(place.settings.data_dir, secret, "https://here.example")
        [(path, _)] = write_outlet(connection, "archive", tmp_path / "site", ["rss"], addresses=addresses)
    [entry] = feedparser.parse(path.read_bytes()).entries
    assert "the harbour of the old town" in entry.content[0].value
    assert entry.enclosures[0].href.startswith("https://here.example/media/")


def test_gallery_refuses_what_is_missing_and_makes_nothing(store: Store) -> None:
    with store.writing() as connection:
        with pytest.raises(InputError, match="needs the field language"):
            use_entry(connection, "translated-feed", {}, 1.0)
        with pytest.raises(InputError, match="has no field colour"):
            use_entry(connection, "archive", {"colour": "red"}, 1.0)
        with pytest.raises(InputError, match="the gallery has no nothing"):
            use_entry(connection, "nothing", {}, 1.0)
        with pytest.raises(InputError, match="is not an address: it begins"):
            use_entry(connection, "keyword-alert", {"keywords": "a", "webhook": "example.org"}, 1.0)
        with pytest.raises(InputError, match="no folder Nowhere"):
            use_entry(connection, "archive", {"folder": "Nowhere"}, 1.0)
    assert len({entry.key for entry in GALLERY}) == len(GALLERY) == 8
