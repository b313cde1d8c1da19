import asyncio
import os
import time
from pathlib import Path

import av
import psutil
import pytest

from headwater.fetch import Fetcher
from headwater.pipeline.steps import ffmpeg
from headwater.pipeline.steps.base import PassingStepError, StepError
from headwater.pipeline.steps.download_video import DownloadVideo
from headwater.pipeline.steps.files import name_for, sweep
from headwater.pipeline.steps.transcribe_content import TranscribeContent
from tests.fetch import door
from tests.origin import Origin
from tests.pipeline.steps.harness import make_context, run_step
from tests.pipeline.steps.media import mp4, wav

pytestmark = pytest.mark.slow


async def test_a_media_file_is_downloaded_once(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    video = mp4()
    url = origin.route("/talk.mp4", body=video, content_type="video/mp4")
    item = {"url": origin.url("/page"), "enclosures": [{"url": url, "media_type": "video/mp4"}]}
    context = make_context(tmp_path / "files", fetcher, item=item)
    output = (await run_step(DownloadVideo(), context)).output
    path = Path(output["path"])
    assert path.read_bytes() == video
    assert path.parent == tmp_path / "files"
    assert (output["size_bytes"], output["media_type"], output["url"]) == (len(video), "video/mp4", url)
    asked = len(origin.requests)
    again = (await run_step(DownloadVideo(), context)).output
    assert again == output
    assert len(origin.requests) == asked, "a repeated attempt finds the file"
    assert sorted(each.suffix for each in path.parent.iterdir()) == [".json", ".mp4"]


async def test_an_audio_file_under_the_items_own_address(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    url = origin.route("/episode.wav", body=wav(), content_type="audio/x-wav")
    context = make_context(tmp_path / "files", fetcher, item={"url": url})
    output = (await run_step(DownloadVideo(), context, {"audio_only": True})).output
    assert Path(output["path"]).read_bytes() == wav()


async def test_audio_only_download_of_a_video_keeps_the_sound_alone(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = origin.route("/talk.mp4", body=mp4(), content_type="video/mp4")
    context = make_context(tmp_path / "files", fetcher, item={"url": url})
    output = (await run_step(DownloadVideo(), context, {"audio_only": True})).output
    assert (Path(output["path"]).suffix, output["media_type"]) == (".m4a", "audio/mp4")
    with av.open(output["path"]) as media:
        assert [stream.type for stream in media.streams] == ["audio"]
        assert media.duration is not None
        assert media.duration / 1_000_000 == pytest.approx(2.0, abs=0.2)
    monkeypatch.setattr(ffmpeg, "is_installed", lambda: False)
    other = make_context(tmp_path / "other", fetcher, item={"url": url})
    kept = (await run_step(DownloadVideo(), other, {"audio_only": True})).output
    assert Path(kept["path"]).read_bytes() == mp4()


async def test_ffmpeg_reads_no_playlist_that_names_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret.wav").write_bytes(wav())
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{tmp_path / 'secret.wav'}\n#EXT-X-ENDLIST\n"
    for text in (playlist, f"ffconcat version 1.0\nfile {tmp_path / 'secret.wav'}\n"):
        (tmp_path / "talk.mp4").write_text(text)
        with pytest.raises(StepError, match="ffmpeg found no sound"):
            await ffmpeg.extract_sound(tmp_path / "talk.mp4", tmp_path / "out.m4a")


PAGE = """<html><head><title>A talk</title></head><body><video src="/talk.mp4" controls>
<track kind="subtitles" src="/talk.vtt" srclang="{language}"></video></body></html>"""


@pytest.mark.parametrize(("language", "wanted"), [("en", None), ("de", "de")])
async def test_subtitles_that_the_page_offers_come_along(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, language: str, wanted: str | None
) -> None:
    origin.route("/talk.mp4", body=mp4(), content_type="video/mp4")
    said = "WEBVTT\n\n00:00.000 --> 00:01.500\nhello there\n"
    origin.route("/talk.vtt", body=said, content_type="text/vtt")
    url = origin.route("/page", body=PAGE.format(language=language), content_type="text/html")
    context = make_context(tmp_path / "files", fetcher, item={"url": url})
    output = (await run_step(DownloadVideo(), context, {"subtitle_language": wanted})).output
    found = output["subtitles"]
    assert (found["language"], found["automatic"]) == (language, False)
    assert Path(found["path"]).read_text() == said
    assert Path(output["path"]).read_bytes() == mp4()
    after = make_context(tmp_path / "files", fetcher, previous={"step_1_download": output})
    assert (await run_step(TranscribeContent(), after)).output["text"] == "hello there"


async def test_subtitles_alone_suffice_where_there_are_some(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    origin.route("/talk.mp4", body=mp4(), content_type="video/mp4")
    origin.route(
        "/talk.vtt", body="WEBVTT\n\n00:00.000 --> 00:01.500\nhello there\n", content_type="text/vtt"
    )
    url = origin.route("/page", body=PAGE.format(language="en"), content_type="text/html")
    context = make_context(tmp_path / "files", fetcher, item={"url": url})
    output = (await run_step(DownloadVideo(), context, {"subtitles_suffice": True})).output
    assert (output["path"], output["subtitles"]["language"]) == (None, "en")
    again = (await run_step(DownloadVideo(), context, {"subtitles_suffice": True})).output
    assert again == output, "an earlier attempt got this far"
    after = make_context(tmp_path / "files", fetcher, previous={"step_1_download": output})
    transcribed = await run_step(TranscribeContent(), after)
    assert transcribed.results[0].body == "hello there"
    assert transcribed.results[0].data["segments"][0]["end"] == 1.5
    # Without subtitles, the video is downloaded.
    other = make_context(tmp_path / "files", fetcher, item={"url": origin.url("/talk.mp4")}, key="other")
    output = (await run_step(DownloadVideo(), other, {"subtitles_suffice": True})).output
    assert output["subtitles"] is None
    assert Path(output["path"]).read_bytes() == mp4()


async def test_subtitles_that_cannot_be_had_or_are_not_wanted_are_left_out(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    origin.route("/talk.mp4", body=mp4(), content_type="video/mp4")
    origin.route("/talk.vtt", status=404)
    url = origin.route("/page", body=PAGE.format(language="en"), content_type="text/html")
    context = make_context(tmp_path / "files", fetcher, item={"url": url})
    output = (await run_step(DownloadVideo(), context)).output
    assert output["subtitles"] is None
    assert Path(output["path"]).read_bytes() == mp4()
    asked = len(origin.received("/talk.vtt"))
    other = make_context(tmp_path / "other", fetcher, item={"url": url})
    assert (await run_step(DownloadVideo(), other, {"subtitles": False})).output["subtitles"] is None
    assert len(origin.received("/talk.vtt")) == asked


async def test_neither_address_nor_redirect_gets_past_the_guard(tmp_path: Path, origin: Origin) -> None:
    with Origin() as private:
        private.route("/secret.mp4", body=mp4(), content_type="video/mp4")
        origin.route("/talk.mp4", status=302, location=private.url("/secret.mp4"))
        playlist = (
            f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{private.url('/secret.ts')}\n#EXT-X-ENDLIST\n"
        )
        origin.route("/list.m3u8", body=playlist, content_type="application/vnd.apple.mpegurl")
        async with door(allow=[f"127.0.0.1:{origin.port}"]) as fetcher:
            for url in (private.url("/secret.mp4"), origin.url("/talk.mp4"), origin.url("/list.m3u8")):
                context = make_context(tmp_path / "files", fetcher, item={"url": url})
                with pytest.raises(StepError, match="HEADWATER_ALLOW_HOSTS=") as caught:
                    await run_step(DownloadVideo(), context)
                assert not caught.value.passing
        assert private.connections == 0
    assert [path for path in (tmp_path / "files").iterdir() if path.is_file()] == []


@pytest.mark.parametrize("announced", [True, False])
async def test_too_large_a_file_is_not_kept(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, announced: bool
) -> None:
    data = mp4() + b"\0" * 2_000_000
    if announced:
        origin.route("/talk.mp4", body=data, content_type="video/mp4")
    else:
        origin.route("/talk.mp4", body=data, content_type="video/mp4", fault="endless")
    context = make_context(tmp_path / "files", fetcher, item={"url": origin.url("/talk.mp4")})
    with pytest.raises(StepError, match="larger than max_megabytes = 1 "):
        await run_step(DownloadVideo(), context, {"max_megabytes": 1})
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.parametrize(
    ("status", "passing"),
    [(404, False), (503, True)],
)
async def test_what_cannot_be_had(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, status: int, passing: bool
) -> None:
    origin.route("/talk.mp4", status=status, body="no")
    context = make_context(tmp_path / "files", fetcher, item={"url": origin.url("/talk.mp4")})
    with pytest.raises(StepError, match=str(status)) as caught:
        await run_step(DownloadVideo(), context)
    assert isinstance(caught.value, PassingStepError) is passing


async def test_a_page_without_a_video(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    url = origin.route("/page", body="<html><p>words</p></html>", content_type="text/html")
    with pytest.raises(StepError, match="yt-dlp could not download it"):
        await run_step(DownloadVideo(), make_context(tmp_path / "files", fetcher, item={"url": url}))
    with pytest.raises(StepError, match="nothing to download"):
        await run_step(DownloadVideo(), make_context(tmp_path / "files", fetcher, item={"title": "x"}))


async def test_given_up_it_leaves_no_process_and_no_file(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    url = origin.route("/talk.mp4", body=b"x", content_type="video/mp4", fault="hang")
    context = make_context(tmp_path / "files", fetcher, item={"url": url})
    running = asyncio.create_task(run_step(DownloadVideo(), context))
    async with asyncio.timeout(30):
        while not origin.requests:
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    programs = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    assert not any("yt_dlp" in program for program in programs)
    assert list((tmp_path / "files").iterdir()) == []


def test_sweeping_takes_the_old_and_then_the_oldest_of_our_files(tmp_path: Path) -> None:
    now = time.time()
    names = {letter: name_for(letter) for letter in "abcdefg"}
    for letter, days, size in (("a", 40, 10), ("b", 20, 1000), ("c", 10, 1000), ("d", 1, 1000)):
        folder = tmp_path / f"item-{letter}"
        folder.mkdir()
        (folder / f"{names[letter]}.mp4").write_bytes(b"x" * size)
        (folder / f"{names[letter]}.json").write_bytes(b"{}")
        os.utime(folder / f"{names[letter]}.mp4", (now, now - days * 86_400))
    for letter, days in (("e", 0), ("f", 90)):
        unfinished = tmp_path / f"{names[letter]}.part"
        unfinished.mkdir()
        (unfinished / "media.mp4").write_bytes(b"x" * 5000)
        os.utime(unfinished / "media.mp4", (now, now - days * 86_400))
    (tmp_path / "headwater.db").write_bytes(b"x" * 9000)
    os.utime(tmp_path / "headwater.db", (now, 0))
    assert sweep(tmp_path, max_age_seconds=30 * 86_400, max_bytes=7_500) == 3
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == sorted(
        [
            *(f"item-{letter}/{names[letter]}.{kind}" for letter in "cd" for kind in ("json", "mp4")),
            f"{names['e']}.part/media.mp4",
            "headwater.db",
        ]
    )
    assert sweep(tmp_path, max_age_seconds=None, max_bytes=None) == 0
