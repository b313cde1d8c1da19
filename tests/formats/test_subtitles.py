from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.formats.subtitles import Segment, read_subtitles


def test_webvtt_is_read_without_marks_notes_and_styles() -> None:
    data = b"""\xef\xbb\xbfWEBVTT - A talk

STYLE
::cue { color: red }

NOTE not spoken

first
00:00.000 --> 00:01.250 align:start position:0%
<v Ann>Hello &amp; <b>welcome</b>
to the river

01:02:03.004 --> 01:02:04.000
<00:00:01.000><c>again</c>
"""
    assert read_subtitles(data) == [
        Segment(0.0, 1.25, "Hello & welcome to the river"),
        Segment(3723.004, 3724.0, "again"),
    ]


def test_subrip_is_read() -> None:
    data = b"1\r\n00:00:01,500 --> 00:00:02,000\r\nOne\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nTwo\r\n"
    assert read_subtitles(data) == [Segment(1.5, 2.0, "One"), Segment(3.0, 4.0, "Two")]


def test_lines_of_automatic_captions_that_roll_up_are_told_once() -> None:
    data = (
        b"WEBVTT\n\n00:00.000 --> 00:02.000\nthe river\n\n00:02.000 --> 00:02.010\nthe river\n\n"
        b"00:02.010 --> 00:04.000\nthe river\nrose for days\n\n00:04.000 --> 00:06.000\nrose for days\nand fell\n"
    )
    assert [segment.text for segment in read_subtitles(data)] == ["the river", "rose for days", "and fell"]


@settings(deadline=None)
@given(
    st.binary(max_size=300)
    | st.lists(
        st.sampled_from(
            ["WEBVTT", "\n", "\n\n", "00:01.000 --> 00:02.000", "-->", "<b>", "x", "99:99", " ", "1:2:3.4"]
        )
    ).map(lambda parts: "".join(parts).encode())
)
def test_anything_is_read_without_an_error(data: bytes) -> None:
    assert all(segment.text for segment in read_subtitles(data))
