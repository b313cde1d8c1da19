"""Pixels that count readers and links that count clicks are taken out of letters; everything else stays."""

import base64
import time

import pytest

from headwater.formats.mail.clean import clean_letter, direct_address, is_pixel

TARGET = "https://garden.example/post?id=7"
CODED = base64.urlsafe_b64encode(TARGET.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "tag",
    [
        '<img src="https://e.example/x.gif" width="1" height="1">',
        '<img src="https://e.example/x.gif" width=0 height=0>',
        '<img src="https://e.example/x" style="display:none">',
        '<img src="https://e.example/x" style="width:1px;height:1px">',
        '<img src="https://e.example/track/open.php?u=1">',
        '<img src="https://e.example/wf/open?upn=abc" alt="">',
        '<img src="https://e.example/o/AAA/open">',
        '<img src="https://www.google-analytics.com/collect?v=1">',
        "<IMG HEIGHT='1' WIDTH='1' SRC='https://e.example/i'>",
    ],
)
def test_is_pixel_of_counters(tag: str) -> None:
    assert is_pixel(tag)
    assert clean_letter(f"<p>a{tag}b</p>").html == "<p>ab</p>"
    assert tag in clean_letter(f"<p>a{tag}b</p>", keep_trackers=True).html


@pytest.mark.parametrize(
    "tag",
    [
        '<img src="https://e.example/photo.jpg" width="600" height="400">',
        '<img src="https://e.example/photo.jpg">',
        '<img src="https://e.example/line.png" width="600" height="1">',
        '<img src="https://e.example/opening-night.jpg" style="width:100%">',
        '<img src="https://e.example/a.png" style="max-width:100px">',
    ],
)
def test_is_pixel_of_pictures_is_false(tag: str) -> None:
    assert not is_pixel(tag)
    assert clean_letter(tag).html == tag


@pytest.mark.parametrize(
    "address",
    [
        f"https://click.e.example/?url={'https%3A%2F%2Fgarden.example%2Fpost%3Fid%3D7'}",
        "https://e.example/redirect?to=https%3A%2F%2Fgarden.example%2Fpost%3Fid%3D7&sub=99",
        "https://e.example/CL0/https:%2F%2Fgarden.example%2Fpost%3Fid=7/1/0100/abc",
        f"https://e.example/c/{CODED}/h/sig",
        f"https://e.example/click?p1={CODED}",
        "https://garden.example/post?id=7&utm_source=letter&utm_medium=email&mc_eid=12",
        "https://track.e.example/?u=https%3A%2F%2Fgarden.example%2Fpost%3Fid%3D7%26utm_source%3Dx",
    ],
)
def test_direct_address_of_counted_link_is_where_it_leads(address: str) -> None:
    assert direct_address(address) in (TARGET, TARGET + "/1/0100/abc")


@pytest.mark.parametrize(
    "address",
    [
        TARGET,
        "https://e.example/search?q=redirect",
        "https://web.archive.example/web/2020/https://garden.example/",
        "https://e.example/share?url=https%3A%2F%2Fgarden.example",
        "https://e.example/click/opaque-token",
        "mailto:a@b.example",
        "https://[broken",
        "",
    ],
)
def test_direct_address_of_other_links_stays(address: str) -> None:
    assert direct_address(address) == address


def test_clean_letter_replaces_counted_links_in_place() -> None:
    body = (
        '<a class="x" href="https://e.example/click?url=https%3A%2F%2Fgarden.example%2F&amp;s=1">Garden</a>'
    )
    assert clean_letter(body).html == '<a class="x" href="https://garden.example/">Garden</a>'


def test_clean_letter_link_cannot_leave_its_attribute() -> None:
    body = "<a href='https://e.example/click?url=https%3A%2F%2Fx.example%2F%27onclick%3Dalert(1)'>x</a>"
    assert "'onclick" not in clean_letter(body).html


def test_clean_letter_drops_head_and_frames() -> None:
    body = (
        "<html><head><title>T</title><style>p{}</style></head><body><p>x</p><iframe src=y>z</iframe></body>"
    )
    assert clean_letter(body).html == "<html><body><p>x</p></body>"


@pytest.mark.parametrize(
    "body", ["<" * 500_000, "<img " * 200_000, '<a href="' * 100_000, "<a href=x " + "a=b " * 500_000]
)
def test_clean_letter_takes_time_by_length(body: str) -> None:
    began = time.process_time()
    clean_letter(body)
    assert time.process_time() - began < 2
