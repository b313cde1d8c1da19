"""What each extra is for, done once with the installed command, against a server on loopback."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import numpy as np

from tests.extras.installed import Installed
from tests.origin import Origin
from tests.pipeline.steps.media import mp4
from tests.pipeline.steps.model_service import ModelService
from tests.pipeline.steps.tiny_whisper import write_model

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "the river rose for three days"
ARTICLE = "".join(
    f"<p>On day {day} the river rose by {day} metres, and the harbour master wrote it down in his book.</p>"
    for day in range(1, 12)
)


@dataclass(frozen=True)
class Check:
    what: str
    try_out: Callable[[Installed, Origin], None]
    beside: tuple[str, ...] = ()  # extras that are needed too


def check_alone(headwater: Installed, origin: Origin) -> None:
    """The demo collects and shows; what an extra is missing for says which."""
    assert headwater.ok("--version").startswith("headwater ")
    template = headwater.directory / "video.json"
    template.write_text(json.dumps({"name": "t", "steps": [{"step_type": "download_video"}]}))
    assert "headwater[video]" in headwater.refused("pipeline", "add", str(template))
    check_enrich(headwater, origin)
    demo = headwater.start("demo", HEADWATER_PORT="0")
    try:
        assert demo.stdout is not None
        address = next(line for line in demo.stdout if "http://" in line).split()[-1].rstrip("/")
        opener = build_opener(ProxyHandler({}))

        def has_items() -> bool:
            with opener.open(address + "/items", timeout=60) as page:
                return bool(re.search(rb"Tide Tables|News Wire", page.read()))

        headwater.until("the demo shows items", 60.0, has_items)
    finally:
        demo.terminate()
        demo.communicate(timeout=60)
    assert demo.returncode == 0


def check_simulate(headwater: Installed, origin: Origin) -> None:
    hours = np.arange(1, 24 * 60, dtype=float)
    trace = headwater.directory / "trace.npz"
    np.savez(trace, times=3600.0 * hours, offsets=[0, len(hours)], t0=[864_000.0], t1=[3600.0 * len(hours)])
    options = ("--traces", str(trace), "--policies", "fixed,adaptive", "--budget", "24")
    assert "adaptive" in headwater.ok("simulate", *options)
    source = "from headwater.schedule import arithmetic; print(type(arithmetic.current()).__name__)"
    assert headwater.execute(source) == "Compiled", "this needs a C compiler where the wheel is built"


def check_enrich(headwater: Installed, origin: Origin) -> None:
    page = (
        "<html><head><title>Rain</title></head><body><nav>Home Contact</nav>"
        f"<article><h1>Rain</h1>{ARTICLE}</article><footer>All rights</footer></body></html>"
    )
    origin.route("/page", body=page, content_type="text/html")
    (output,) = headwater.run_steps(origin, [{"step_type": "enrich_content"}])
    assert "by 7 metres" in str(output), output
    assert "Contact" not in str(output), output


def check_video(headwater: Installed, origin: Origin) -> None:
    video = mp4()
    url = origin.route("/talk.mp4", body=video, content_type="video/mp4")
    more = f"<enclosure url='{url}' type='video/mp4' length='{len(video)}'/>"
    (output,) = headwater.run_steps(origin, [{"step_type": "download_video"}], more=more)
    assert output["size_bytes"] == len(video), output
    assert Path(output["path"]).read_bytes() == video


def check_analyze(headwater: Installed, origin: Origin) -> None:
    service = ModelService(origin)
    service.answers = [
        json.dumps({"mood": 3}),
        json.dumps({"mood": "wet"}),
    ]  # the first does not fit, and is sent back
    schema = {"type": "object", "properties": {"mood": {"type": "string"}}, "required": ["mood"]}
    config = {"base_url": service.base_url, "model": "m", "api_key": None, "output_schema": schema}
    (output,) = headwater.run_steps(origin, [{"step_type": "analyze_content", "config": config}])
    assert output["result"] == {"mood": "wet"}, output


def check_transcribe(headwater: Installed, origin: Origin) -> None:
    model = write_model(headwater.directory / "model", SENTENCE)
    video = mp4()
    url = origin.route("/talk.mp4", body=video, content_type="video/mp4")
    more = f"<enclosure url='{url}' type='video/mp4' length='{len(video)}'/>"
    config = {"model": str(model), "skip_silence": False, "device": "cpu"}
    steps: list[dict[str, Any]] = [
        {"step_type": "download_video"},
        {"step_type": "transcribe_content", "config": config},
    ]
    _, output = headwater.run_steps(origin, steps, more=more)
    assert output["text"] == SENTENCE, output


def check_oidc(headwater: Installed, origin: Origin) -> None:
    script = (
        "from joserfc import jwk, jwt; key = jwk.RSAKey.generate_key(2048);"
        " token = jwt.encode({'alg': 'RS256'}, {'sub': 'li'}, key);"
        " print(jwt.decode(token, key, algorithms=['RS256']).claims['sub'])"
    )
    assert headwater.execute(script) == "li"


def check_notify(headwater: Installed, origin: Origin) -> None:
    origin.route("/told", body="ok")
    config = {"target": "apprise", "apprise_urls": [f"json://127.0.0.1:{origin.port}/told"]}
    headwater.run_steps(origin, [{"step_type": "publish_content", "config": config}])
    told = [request.body for request in origin.requests if request.path == "/told"]
    assert len(told) == 1, origin.requests
    assert b"Three days of rain" in told[0]


def check_prefect(headwater: Installed, origin: Origin) -> None:
    origin.route("/page", body="<title>Rain</title>", content_type="text/html")
    origin.route("/sitemap.xml", body=f"<urlset><url><loc>{origin.url('/page')}</loc></url></urlset>")
    source = (
        "import asyncio, sys\n"
        "from headwater.sitemaps.flow import incremental_sitemap_to_rss_flow as flow\n"
        "asyncio.run(flow(sys.argv[1], 'site', {'title': 'T', 'description': 'D'}))\n"
    )
    quiet = {
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "DO_NOT_TRACK": "1",
    }
    headwater.execute(source, origin.url("/sitemap.xml"), **quiet)
    assert "<title>Rain</title>" in (headwater.directory / "rss_feeds" / "site.xml").read_text()


def check_build(headwater: Installed, origin: Origin) -> None:
    out = headwater.directory / "built"
    command = (headwater.python, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-300:]
    assert len(list(out.glob("headwater-*.whl"))) == 1


def check_browser(headwater: Installed, origin: Origin) -> None:
    script = f"document.body.innerHTML = {json.dumps(f'<article><h1>Rain</h1>{ARTICLE}</article>')}"
    page = f"<html><head><title>Rain</title></head><body><script>{script}</script></body></html>"
    origin.route("/page", body=page, content_type="text/html")
    steps = [{"step_type": "enrich_content", "config": {"levels": ["browser"]}}]
    (output,) = headwater.run_steps(origin, steps)
    assert "by 7 metres" in str(output), output


def check_mcp(headwater: Installed, origin: Origin) -> None:
    secret = headwater.json("key", "add", "agent", "--scope", "read")["key"]
    source = """
import anyio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "headwater", "mcp"], env={"MCP_API_KEY": sys.argv[1]}
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print(len((await session.list_tools()).tools))

anyio.run(main)
"""
    assert int(headwater.execute(source, secret)) > 3


CHECKS = {
    "none": Check("the demo collects; a missing extra is named", check_alone),
    "fast": Check("plans and replays are compiled", check_simulate),
    "simulate": Check("plans and replays are compiled", check_simulate),
    "enrich": Check("the text of a page, by trafilatura", check_enrich),
    "video": Check("a video is downloaded, by yt-dlp", check_video),
    "analyze": Check("an answer is held to a JSON schema", check_analyze),
    "transcribe": Check("a video's words, by faster-whisper", check_transcribe, ("video",)),
    "notify": Check("a message arrives, by apprise", check_notify),
    "browser": Check("the text of a page that scripts make, by a real browser", check_browser),
    "mcp": Check("an agent reads items", check_mcp),
    "oidc": Check("tokens of a sign-in provider are read", check_oidc),
    "prefect": Check("the flow runs, in Prefect", check_prefect),
    "build": Check("the wheel is built", check_build),
}
