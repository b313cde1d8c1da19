import json
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InputError
from headwater.fetch import Fetcher
from headwater.pipeline.steps.base import PassingStepError, StepError
from headwater.pipeline.steps.publish_content import PublishConfig, PublishContent
from headwater.services.signature import is_genuine
from tests.fetch import door
from tests.origin import Answer, Origin
from tests.pipeline.steps.harness import make_context, run_step
from tests.pipeline.steps.mail_server import mail_server

ITEM = {
    "id": 7,
    "title": "Flood\r\nBcc: thief@example.org",
    "content": "<p>Rain.</p>",
    "url": "https://a.example/",
}
PREVIOUS = {"step_1_analyze": {"result": "wet"}}


async def test_a_webhook_is_signed_and_carries_its_key(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SECRET_HOOK_SECRET", "s3cret")
    url = origin.route("/hook/token123", body="thanks")
    config = {
        "target": "webhook",
        "url": url,
        "secret": "${HOOK_SECRET}",
        "headers": {"X-Team": "river"},
    }
    context = make_context(tmp_path, fetcher, item=ITEM, previous=PREVIOUS, key="7-v1-publish")
    first = (await run_step(PublishContent(), context, config)).output
    await run_step(PublishContent(), context, config)
    one, two = origin.requests
    assert json.loads(one.body) == {
        "idempotency_key": "7-v1-publish",
        "content_item": ITEM,
        "previous_steps": PREVIOUS,
    }
    assert one.headers["idempotency-key"] == two.headers["idempotency-key"] == "7-v1-publish"
    assert one.headers["x-team"] == "river"
    signature = one.headers["x-headwater-signature"]
    assert is_genuine("s3cret", signature, one.body, now=time.time())
    assert not is_genuine("another", signature, one.body, now=time.time())
    assert not is_genuine("s3cret", signature, one.body + b" ", now=time.time())
    assert not is_genuine("s3cret", signature, one.body, now=time.time() + 3600)
    assert not is_genuine("s3cret", "t=x,v1=", one.body, now=time.time())
    assert (first["target"], first["status"], first["idempotency_key"]) == ("webhook", 200, "7-v1-publish")
    assert "token123" not in str(first)


def made(kind: str, step_index: int, run_id: int = 4, **more: Any) -> dict[str, Any]:
    """A result as a step is given it."""
    return {"kind": kind, "step_index": step_index, "run_id": run_id, "format": "text", "data": None, **more}


@pytest.mark.parametrize(
    ("results", "title", "text"),
    [
        ({"summary": made("summary", 0, body="Short.")}, "Flood", "Short."),
        (
            {
                "summary": made("summary", 0, body="Short."),
                "translation:zh": made("translation", 1, body="洪水。", data={"title": "洪水"}),
            },
            "洪水",
            "洪水。",
        ),
        (
            {"analysis": made("analysis", 2, body=None, data={"mood": "wet", "score": 7})},
            "Flood",
            "Mood: wet",
        ),
        ({"summary": made("summary", 0, 3, body="Of another run.")}, "Flood", "Rain."),
        ({"full_text": made("full_text", 0, body="<p>All of it</p>", format="html")}, "Flood", "All of it"),
    ],
)
async def test_message_carries_what_the_run_has_made(
    tmp_path: Path, results: dict[str, Any], title: str, text: str
) -> None:
    item = {**ITEM, "title": "Flood", "results": results}
    context = replace(make_context(tmp_path, item=item), run_id=4)
    result = await run_step(PublishContent(), context, {"to": "team"})
    [outgoing] = result.messages
    message = outgoing.message
    assert (outgoing.target, message.title) == ("team", title)
    assert message.text.startswith(text)
    assert message.text.endswith("https://a.example/")
    assert message.html is not None
    assert f'<a href="https://a.example/">{title}</a>' in message.html
    shown = (await PublishContent().preview(context, PublishConfig(to="team"))).output["message"]
    assert (shown["title"], shown["text"]) == (message.title, message.text)


async def test_message_of_templates_has_no_separate_html(tmp_path: Path) -> None:
    context = make_context(tmp_path, item=ITEM)
    result = await run_step(PublishContent(), context, {"to": "team", "body": "Look: {{ item.url }}"})
    [outgoing] = result.messages
    assert (outgoing.message.text, outgoing.message.html) == ("Look: https://a.example/", None)


@pytest.mark.parametrize(
    ("answer", "passing", "words"),
    [
        (Answer(status=503, body="down", headers={"Retry-After": "5"}), True, "503"),
        (Answer(status=410, body="gone"), False, "410"),
        (Answer(status=302, location="http://127.0.0.1:9/elsewhere"), False, "302"),
        (Answer(fault="reset"), True, "closed"),
    ],
)
async def test_a_webhook_that_fails(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, answer: Answer, passing: bool, words: str
) -> None:
    url = origin.route("/hook/token123", answer)
    context = make_context(tmp_path, fetcher, item=ITEM)
    with pytest.raises(StepError, match=words) as caught:
        await run_step(PublishContent(), context, {"target": "webhook", "url": url})
    assert isinstance(caught.value, PassingStepError) is passing
    assert "token123" not in str(caught.value), "the address of a webhook is a secret"
    if words == "503":
        assert isinstance(caught.value, PassingStepError)
        assert caught.value.retry_after_seconds == 5


@pytest.mark.parametrize("status", [400, 503])
async def test_a_webhook_that_repeats_what_it_was_sent_gives_no_secret_away(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("HEADWATER_SECRET_HOOK_TOKEN", "t0k-in-a-header")
    url = origin.route(
        "/hook/t0k-in-the-path?key=t0k-in-the-query",
        Answer(status=status, body="no /hook/t0k-in-the-path for t0k-in-a-header with t0k-in-the-query"),
    )
    config = {"target": "webhook", "url": url, "headers": {"Authorization": "Bearer ${HOOK_TOKEN}"}}
    origin.route("/other", Answer(status=status, body=b"x" * 290 + b" Bearer t0k-in-a-header"))
    for address in (url, origin.url("/other")):
        with pytest.raises(StepError) as caught:
            await run_step(
                PublishContent(), make_context(tmp_path, fetcher, item=ITEM), {**config, "url": address}
            )
        assert f"returned {status}" in str(caught.value)
        assert "t0k" not in str(caught.value)


async def test_a_webhook_at_home_needs_the_operators_word(tmp_path: Path, origin: Origin) -> None:
    async with Fetcher(user_agent="test") as fetcher:
        context = make_context(tmp_path, fetcher, item=ITEM)
        config = {"target": "webhook", "url": origin.url("/hook", host="localhost")}
        with pytest.raises(StepError, match="HEADWATER_ALLOW_HOSTS=localhost") as caught:
            await run_step(PublishContent(), context, config)
    assert not caught.value.passing
    assert origin.requests == []


async def test_an_outlet_gets_its_mark(tmp_path: Path) -> None:
    output = (await run_step(PublishContent(), make_context(tmp_path, item=ITEM), {"outlet": "best"})).output
    assert (output["target"], output["outlet"]) == ("outlet", "best")


async def test_an_email(tmp_path: Path, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_SECRET_MAIL_PASSWORD", "hunter2")
    async with mail_server() as box, door(allow=[f"127.0.0.1:{box.port}"]) as allowed:
        config: dict[str, Any] = {
            "target": "email",
            "smtp_host": "127.0.0.1",
            "smtp_port": box.port,
            "smtp_security": "none",
            "smtp_user": "ann",
            "smtp_password": "${MAIL_PASSWORD}",
            "sender": "headwater@example.org",
            "recipients": ["ann@example.org", "bob@example.org"],
        }
        context = make_context(tmp_path, allowed, item=ITEM, previous=PREVIOUS)
        output = (await run_step(PublishContent(), context, config)).output
        again = (await run_step(PublishContent(), context, config)).output
        message = box.messages[0]
        assert message["Subject"] == "Flood Bcc: thief@example.org", "a line break begins no header"
        assert message["Bcc"] is None
        assert message["To"] == "ann@example.org, bob@example.org"
        plain, markup = (part.get_content() for part in message.iter_parts())
        assert "Rain." in plain
        assert '<a href="https://a.example/" rel="noopener noreferrer nofollow">Flood' in markup
        assert output["message_id"] == again["message_id"] == message["Message-ID"]
        assert message["Message-ID"].endswith("@example.org>")
        assert message["Date"].datetime is not None
        assert box.logins == [("ann", "hunter2")] * 2
        assert "hunter2" not in str(output)

        box.refusal = "550 no such user"
        with pytest.raises(StepError, match="550: no such user") as refused:
            await run_step(PublishContent(), context, config)
        assert not refused.value.passing
        box.refusal = "451 try later"
        with pytest.raises(PassingStepError, match="451"):
            await run_step(PublishContent(), context, config)
        box.busy = True
        with pytest.raises(PassingStepError, match="421"):
            await run_step(PublishContent(), context, config)
        async with Fetcher(user_agent="test") as guarded:
            with pytest.raises(StepError, match=f"HEADWATER_ALLOW_HOSTS=127.0.0.1:{box.port}"):
                await run_step(PublishContent(), make_context(tmp_path, guarded, item=ITEM), config)
    with pytest.raises(PassingStepError, match="cannot be reached"):
        await run_step(PublishContent(), make_context(tmp_path, fetcher, item=ITEM), config)


async def test_email_with_a_forged_title_has_the_headers_and_the_body_that_were_meant(tmp_path: Path) -> None:
    title = "=?utf-8?q?Hi=0D=0AFrom:_evil@example.org=0D=0ATo:_thief@example.org=0D=0A=0D=0AForged?="
    async with mail_server() as box, door(allow=[f"127.0.0.1:{box.port}"]) as allowed:
        config: dict[str, Any] = {
            "target": "email",
            "smtp_host": "127.0.0.1",
            "smtp_port": box.port,
            "smtp_security": "none",
            "sender": "headwater@example.org",
            "recipients": ["ann@example.org"],
        }
        await run_step(
            PublishContent(), make_context(tmp_path, allowed, item={**ITEM, "title": title}), config
        )
        (envelope,), (raw,), (message,) = box.envelopes, box.raw, box.messages
    assert (envelope.mail_from, envelope.rcpt_tos) == ("headwater@example.org", ["ann@example.org"])
    assert not any(line.lower().startswith(b"from: evil") for line in raw.splitlines())
    assert message.get_all("From") == ["headwater@example.org"]
    assert message.get_all("To") == ["ann@example.org"]
    plain, _ = (part.get_content() for part in message.iter_parts())
    assert plain.startswith("Rain.")


async def test_chat_services_by_apprise(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/notify", body="{}")
    config = {"target": "apprise", "apprise_urls": [f"json://127.0.0.1:{origin.port}/notify"]}
    context = make_context(tmp_path, fetcher, item=ITEM)
    output = (await run_step(PublishContent(), context, config)).output
    assert output["services"] == 1
    sent = json.loads(origin.received("/notify")[0].body)
    assert sent["title"] == "Flood Bcc: thief@example.org"
    assert "Rain." in sent["message"]
    origin.route("/notify", status=500)
    with pytest.raises(PassingStepError, match="apprise could not deliver"):
        await run_step(PublishContent(), context, config)
    with pytest.raises(StepError, match="number 1 is not an address that apprise knows"):
        await run_step(PublishContent(), context, config | {"apprise_urls": ["nonsense"]})


async def test_apprise_follows_no_redirect(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    with Origin() as other:
        other.route("/thief", body="{}")
        origin.route("/notify", status=307, location=other.url("/thief"))
        address = f"json://ann:hunter2@127.0.0.1:{origin.port}/notify?+X-Key=hunter2&redirect=yes"
        context = make_context(tmp_path, fetcher, item=ITEM)
        with pytest.raises(PassingStepError, match="apprise could not deliver"):
            await run_step(PublishContent(), context, {"target": "apprise", "apprise_urls": [address]})
        assert origin.received("/notify")[0].headers["x-key"] == "hunter2"
        assert other.requests == []


_TRY_EVERY_WAY = """
import socket, sys
from headwater.services import notify
notify._close_other_ways()
port = int(sys.argv[1])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for way in (
        lambda: sender.sendto(b"x", ("127.0.0.1", port)),
        lambda: sender.sendto(b"x", 0, ("127.0.0.1", port)),
        lambda: sender.sendmsg([b"x"], [], 0, ("127.0.0.1", port)),
        lambda: sender.connect(("127.0.0.1", port)),
        lambda: sender.connect_ex(("127.0.0.1", port)),
    ):
        try:
            way()
        except OSError as error:
            print(error)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local:
        try:
            local.sendto(b"x", "/dev/log")
        except OSError as error:
            print(error)
"""


def test_notifiers_child_can_send_no_datagram_and_open_no_connection() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        command = [sys.executable, "-c", _TRY_EVERY_WAY, str(listener.getsockname()[1])]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert said == ["connections other than through the proxy are refused"] * 6
        with pytest.raises(BlockingIOError):
            listener.recv(1)


async def test_apprise_reaches_nothing_but_through_the_guard(tmp_path: Path, origin: Origin) -> None:
    async with Fetcher(user_agent="test") as fetcher, mail_server() as box:
        context = make_context(tmp_path, fetcher, item=ITEM)
        by_web = {"target": "apprise", "apprise_urls": [f"json://127.0.0.1:{origin.port}/notify"]}
        with pytest.raises(StepError, match="HEADWATER_ALLOW_HOSTS") as caught:
            await run_step(PublishContent(), context, by_web)
        assert not caught.value.passing
        address = f"mailto://127.0.0.1:{box.port}/?from=a@example.org&to=b@example.org&mode=insecure"
        with pytest.raises(StepError, match="apprise"):
            await run_step(PublishContent(), context, {"target": "apprise", "apprise_urls": [address]})
        assert box.connections == 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.setblocking(False)
            address = f"rsyslog://127.0.0.1:{listener.getsockname()[1]}"
            with pytest.raises(
                StepError, match=r"number 1 is a service \(rsyslog\) that is not reached over HTTP"
            ):
                await run_step(PublishContent(), context, {"target": "apprise", "apprise_urls": [address]})
            with pytest.raises(BlockingIOError):
                listener.recv(1)
    assert origin.requests == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"target": "webhook"}, "target webhook needs the key url"),
        ({"target": "email", "smtp_host": "mail.example"}, "target email needs the key recipients"),
        ({"target": "apprise"}, "target apprise needs the key apprise_urls"),
        ({"recipients": ["unknown"]}, "unknown is not an e-mail address"),
        ({"title": "{% if %}"}, "title: the template cannot be read"),
    ],
)
async def test_what_cannot_work_is_refused_when_saved(
    tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        await run_step(PublishContent(), make_context(tmp_path), config)


def test_the_extra_is_needed_for_apprise_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.services.requests.find_spec", lambda name: None)
    step = PublishContent()
    step.check(step.config_model.model_validate({}))
    with pytest.raises(InputError, match=r"pip install 'headwater\[notify\]'"):
        step.check(step.config_model.model_validate({"target": "apprise", "apprise_urls": ["json://x"]}))
