"""The outbox is sent: what may work later is retried, what cannot work is reported."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headwater.fetch.client import Fetcher
from headwater.pipeline.worker import Worker
from headwater.publish.outbox import MOST_ATTEMPTS, OutboxSender, SendingContext, compose_batch
from headwater.services.mail import MailServer
from headwater.services.targets import MailDefaults
from headwater.store.core.database import Store
from headwater.store.publishing.outbox import (
    NewDelivery,
    WaitingMessage,
    list_deliveries,
    put_in_outbox,
)
from headwater.store.publishing.targets import Target, add_target
from tests.clock import FakeClock
from tests.fetch import door
from tests.origin import Answer, Origin
from tests.pipeline.making import make_runs, make_settings, step, until_ended, working
from tests.pipeline.steps.mail_server import mail_server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with door() as opened:
        yield opened


def make_sender(
    store: Store, fetcher: Fetcher, clock: FakeClock, mail: MailDefaults | None = None
) -> OutboxSender:
    return OutboxSender(
        store, SendingContext(fetcher, {"TOKEN": "t0ken"}, mail or MailDefaults()), clock, Random(1)
    )


def put(
    store: Store, clock: FakeClock, *keys: str, target: str = "it", kind: Any = "item", **more: Any
) -> None:
    messages = [NewDelivery(target, key, f"Title {key}", f"Text {key}", **more) for key in keys]
    with store.writing() as connection:
        put_in_outbox(connection, messages, kind, clock())


def states(store: Store) -> list[tuple[str, str | None]]:
    with store.reading() as connection:
        return [(each.status, each.error_message) for each in list_deliveries(connection)]


async def test_webhook_gets_the_message_with_its_key_and_secret_headers(
    store: Store, origin: Origin, fetcher: Fetcher, clock: FakeClock
) -> None:
    config = {
        "url": origin.route("/hook", body="ok"),
        "headers": {"X-Token": "${TOKEN}"},
        "title": "New: {{ title }}",
    }
    with store.writing() as connection:
        add_target(connection, Target("it", "webhook", config), clock())
    put(store, clock, "k1", kind="digest", data={"number": 3})
    sending = make_sender(store, fetcher, clock)
    assert await sending.run_once() == 1
    assert await sending.run_once() == 0
    [request] = origin.requests
    assert json.loads(request.body) == {
        "idempotency_key": "k1",
        "title": "New: Title k1",
        "text": "Text k1",
        "html": None,
        "kind": "digest",
        "number": 3,
    }
    assert (request.headers["idempotency-key"], request.headers["x-token"]) == ("k1", "t0ken")
    assert states(store) == [("sent", None)]


async def test_delivery_that_may_work_later_is_retried_under_the_same_key(
    store: Store, origin: Origin, fetcher: Fetcher, clock: FakeClock
) -> None:
    origin.route("/hook", Answer(status=503, body="busy", headers={"Retry-After": "90"}))
    with store.writing() as connection:
        add_target(connection, Target("it", "webhook", {"url": origin.url("/hook")}), clock())
    put(store, clock, "k1")
    sending = make_sender(store, fetcher, clock)
    assert await sending.run_once() == 1
    clock.advance(89)
    assert await sending.run_once() == 0, "the service's own word counts"
    clock.advance(2)
    origin.route("/hook", body="ok")
    assert await sending.run_once() == 1
    assert {request.headers["idempotency-key"] for request in origin.requests} == {"k1"}
    assert states(store)[0][0] == "sent"


async def test_delivery_that_is_refused_or_never_works_fails(
    store: Store, origin: Origin, fetcher: Fetcher, clock: FakeClock
) -> None:
    origin.route("/no", Answer(status=410, body="gone"))
    origin.route("/busy", Answer(status=503, body="busy"))
    with store.writing() as connection:
        add_target(connection, Target("it", "webhook", {"url": origin.url("/no")}), clock())
        add_target(connection, Target("busy", "webhook", {"url": origin.url("/busy")}), clock())
    put(store, clock, "k1")
    put(store, clock, "k2", target="busy")
    sending = make_sender(store, fetcher, clock)
    for _ in range(3 * MOST_ATTEMPTS):
        await sending.run_once()
        clock.advance(2_000)
    (busy, refused) = states(store)
    assert refused[0] == "failed" and "410" in (refused[1] or "")
    assert busy[0] == "failed" and "503" in (busy[1] or "")
    assert sum(request.path == "/busy" for request in origin.requests) == MOST_ATTEMPTS


async def test_email_goes_through_the_operators_mail_server(
    store: Store, fetcher: Fetcher, clock: FakeClock
) -> None:
    async with mail_server() as box:
        mail = MailDefaults(MailServer("127.0.0.1", box.port, "none"), "Headwater <hw@example.org>")
        with store.writing() as connection:
            add_target(connection, Target("it", "email", {"recipients": ["ann@example.org"]}), clock())
        put(store, clock, "k1", html="<p>Hello <b>you</b></p><script>x</script>")
        assert await make_sender(store, fetcher, clock, mail).run_once() == 1
        [letter] = box.messages
    assert (letter["From"], letter["To"], letter["Subject"]) == (
        "Headwater <hw@example.org>",
        "ann@example.org",
        "Title k1",
    )
    plain, html = letter.get_body(("plain",)), letter.get_body(("html",))
    assert plain is not None and html is not None
    assert plain.get_content().strip() == "Text k1"
    assert "<p>Hello <b>you</b></p>" in html.get_content()
    assert "script" not in html.get_content()


async def test_email_without_a_mail_server_says_what_to_set(
    store: Store, fetcher: Fetcher, clock: FakeClock
) -> None:
    with store.writing() as connection:
        add_target(connection, Target("it", "email", {"recipients": ["ann@example.org"]}), clock())
    put(store, clock, "k1")
    await make_sender(store, fetcher, clock).run_once()
    [(status, problem)] = states(store)
    assert status == "failed"
    assert "HEADWATER_SMTP_HOST" in (problem or "")


async def test_batch_is_one_message_at_most_every_so_often(
    store: Store, origin: Origin, fetcher: Fetcher, clock: FakeClock
) -> None:
    config = {"url": origin.route("/hook", body="ok")}
    with store.writing() as connection:
        add_target(connection, Target("it", "webhook", config, batch_minutes=60.0, batch_items=2), clock())
    put(store, clock, "1", "2", "3", data={"item": {"id": 7}})
    sending = make_sender(store, fetcher, clock)
    await sending.run_once()
    await sending.run_once()
    [request] = origin.requests
    sent = json.loads(request.body)
    assert sent["title"] == "2 new items: Title 1"
    assert [each["message"]["text"] for each in sent["items"]] == ["Text 1", "Text 2"]
    assert sent["idempotency_key"] == "batch-1-to-2"
    clock.advance(3_600)
    await sending.run_once()
    assert json.loads(origin.requests[-1].body)["title"] == "Title 3", "one alone is as it is"


def test_compose_batch_escapes_titles_in_html() -> None:
    waiting = [WaitingMessage(n, f"k{n}", "a <b>", "text", None, {}, 0.0) for n in (1, 2)]
    made = compose_batch("it", waiting)
    assert made.html is not None
    assert made.html.count("<h2>a &lt;b&gt;</h2>") == 2


@pytest.mark.usefixtures("step_plugin")
async def test_pipeline_puts_its_result_into_the_outbox_with_the_end_of_its_step(
    store: Store, tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    config = {"url": origin.route("/hook", body="ok")}
    with store.writing() as connection:
        add_target(connection, Target("team", "webhook", config), time.time())
    run_ids = make_runs(
        store,
        2,
        step("make_test", results=[{"kind": "summary", "body": "Short: {n}."}]),
        step("note_test"),
        step("publish_content", to="team"),
    )
    async with working(Worker(store, make_settings(tmp_path), fetcher)):
        runs = await until_ended(store, *run_ids)
    assert {run.status for run in runs} == {"completed"}
    sending = OutboxSender(store, SendingContext(fetcher), time.time)
    assert await sending.run_once() == 2
    told = sorted(json.loads(request.body)["text"] for request in origin.requests)
    assert told == ["Short: 1.", "Short: 2."]
    keys = {request.headers["idempotency-key"] for request in origin.requests}
    assert keys == {f"item-{n}-version-1-template-1-step-3" for n in (1, 2)}
