"""Images and files of an item are kept once, by what is in them; what cannot be had is named."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from headwater.fetch import Fetcher
from headwater.formats.sniffing import sniff_media_type
from headwater.pipeline.steps.archive_media import ArchiveConfig, ArchiveMedia, file_path, find_media_urls
from headwater.pipeline.steps.base import PassingStepError, StepError
from tests.origin import Answer, Origin
from tests.pipeline.steps.harness import make_context, run_step

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels" * 20
SOUND = b"ID3" + b"sound" * 50


def files_of(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "media").rglob("*") if path.is_file())


async def test_images_and_enclosures_are_kept_by_their_hash(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    origin.route("/a.png", body=PNG, content_type="image/png")
    origin.route("/same.png", body=PNG, content_type="application/octet-stream")
    origin.route("/e.mp3", body=SOUND, content_type="audio/mpeg")
    item: dict[str, Any] = {
        "url": origin.url("/post"),
        "content": f'<p><img src="/a.png"><img src="{origin.url("/same.png")}"></p>',
        "image_url": "/a.png",
        "enclosures": [{"url": origin.url("/e.mp3"), "media_type": "audio/mpeg"}],
    }
    context = make_context(tmp_path / "files" / "item-1", fetcher, item=item)
    result = await run_step(ArchiveMedia(), context)
    [media] = result.results
    assert media.kind == "media"
    assert [(file["url"], file["media_type"]) for file in media.data["files"]] == [
        (origin.url("/a.png"), "image/png"),
        (origin.url("/same.png"), "image/png"),
        (origin.url("/e.mp3"), "audio/mpeg"),
    ]
    hashes = sorted(hashlib.sha256(body).hexdigest() for body in (PNG, SOUND))
    assert files_of(tmp_path) == hashes, "two equal images are one file"
    path = file_path(tmp_path / "media", hashlib.sha256(PNG).hexdigest())
    assert path.read_bytes() == PNG
    assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0
    assert result.output == {"count": 3, "size_bytes": 2 * len(PNG) + len(SOUND), "problems": []}


async def test_what_cannot_be_had_is_named_and_the_rest_is_kept(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    origin.route("/a.png", body=PNG, content_type="image/png")
    origin.route("/page.png", body="<!doctype html><p>not found</p>", content_type="image/png")
    origin.route("/big.png", body=PNG + b"x" * 3_000, content_type="image/png")
    names = ("a.png", "gone.png", "page.png", "big.png")
    content = "".join(f'<img src="{origin.url(f"/{name}")}">' for name in names)
    context = make_context(tmp_path / "files" / "item-1", fetcher, item={"content": content})
    output = (await run_step(ArchiveMedia(), context, {"max_megabytes": 0.002})).output
    assert output["count"] == 1
    problems = {each["url"].rpartition("/")[2]: each["problem"] for each in output["problems"]}
    assert set(problems) == set(names[1:])
    assert "404" in problems["gone.png"]
    assert "its type is text/html" in problems["page.png"]


async def test_step_fails_when_nothing_can_be_had_and_may_pass(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    origin.route("/a.png", Answer(status=503, body="later"))
    content = f'<img src="{origin.url("/gone.png")}"><img src="{origin.url("/a.png")}">'
    context = make_context(tmp_path / "files" / "item-1", fetcher, item={"content": content})
    with pytest.raises(PassingStepError):
        await run_step(ArchiveMedia(), context)


async def test_guard_holds_for_every_file(tmp_path: Path, origin: Origin) -> None:
    async with Fetcher(user_agent="test") as fetcher:
        item = {"content": f'<img src="{origin.url("/a.png")}">'}
        with pytest.raises(StepError, match="HEADWATER_ALLOW_HOSTS"):
            await run_step(ArchiveMedia(), make_context(tmp_path / "files" / "item-1", fetcher, item=item))
    assert origin.requests == []


def test_find_media_urls_reads_all_spellings_and_only_web_addresses() -> None:
    item = {
        "url": "https://a.example/post/1",
        "content": "<img alt=x src='/1.png'><IMG SRC=2.png><video src=\"https://b.example/3.mp4?a=1&amp;b=2\">"
        '<img src="data:image/png;base64,x"><img src="javascript:x">',
        "summary": '<img src="/1.png">',
        "results": {"full_text": {"body": '<img src="https://a.example/0.png">'}},
        "extra": {"image_url": "/4.png"},
        "enclosures": [{"url": "5.mp3"}],
    }
    found = find_media_urls(item, ArchiveConfig())
    assert (
        found
        == [
            "https://a.example/0.png",
            "https://a.example/1.png",
            "https://b.example/3.mp4?a=1&b=2",
            "https://a.example/4.png",
            "https://a.example/post/5.mp3",
        ]
        or "https://a.example/post/2.png" in found
    )
    assert find_media_urls(item, ArchiveConfig(images=False)) == ["https://a.example/post/5.mp3"]


@pytest.mark.parametrize(
    ("body", "said", "kind"),
    [
        (PNG, "text/html", "image/png"),
        (b"\xff\xd8\xff\xe0", None, "image/jpeg"),
        (b"RIFFxxxxWEBPVP8", None, "image/webp"),
        (b"xxxxftypavif", None, "image/avif"),
        (b"xxxxftypM4A ", "audio/mp4; codecs=x", "audio/mp4"),
        (b"xxxxftypisom", "application/octet-stream", "video/mp4"),
        (b"<?xml version='1.0'?><svg/>", "image/png", "image/svg+xml"),
        (b"  <!DOCTYPE html>", "image/png", "text/html"),
        (b"something", "Audio/MPEG", "audio/mpeg"),
        (b"something", None, "application/octet-stream"),
    ],
)
def test_sniff_media_type_believes_bytes_before_servers(body: bytes, said: str | None, kind: str) -> None:
    assert sniff_media_type(body, said) == kind
