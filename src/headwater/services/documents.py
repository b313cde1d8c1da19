"""A digest as a document: its lines, in groups, in Markdown or HTML. Pure; what comes from the web is plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from html import escape
from typing import Any

from headwater.formats.html import collapse

Group = tuple[str, list["Line"]]


@dataclass(frozen=True, slots=True)
class Line:
    """What a digest shows of an item: plain text throughout."""

    id: int | None
    title: str
    url: str | None
    source: str
    at: float | None
    text: str
    score: float | None = None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            name: getattr(self, name) for name in ("id", "title", "url", "source", "at", "text")
        }
        if self.score is not None:
            shown |= {"score": self.score, "reason": self.reason}
        return shown


def make_line(
    *,
    id: int | None,
    title: str,
    url: Any,
    source: str,
    at: float | None,
    text: str,
    characters: int,
    score: float | None = None,
    reason: str = "",
) -> Line:
    """A line of at most so many characters of text."""
    text = collapse(text)
    return Line(
        id,
        collapse(title) or str(url or "?"),
        safe_url(url),
        collapse(source),
        at,
        text if len(text) <= characters else text[:characters].rstrip() + "…",
        score,
        collapse(reason),
    )


def safe_url(given: Any) -> str | None:
    """An address that a reader can follow without harm, written so that no format can misread it."""
    url = str(given or "")
    if not url.lower().startswith(("http://", "https://")):
        return None
    for character, code in (
        (" ", "%20"),
        ("(", "%28"),
        (")", "%29"),
        ("<", "%3C"),
        (">", "%3E"),
        ('"', "%22"),
    ):
        url = url.replace(character, code)
    return url


def group_lines(lines: Sequence[Line], by: str) -> list[Group]:
    """Lines under their sources' names, in the order in which these come up; else all under no name."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.source if by == "source" else "", []).append(line)
    return list(groups.items())


def write_markdown(
    title: str, introduction: str | None, groups: Sequence[Group], note: str = "", zone: tzinfo = UTC
) -> str:
    parts = [f"# {_plain(title)}"]
    if introduction:
        parts.append(introduction.strip())
    for heading, lines in groups:
        if heading:
            parts.append(f"## {_plain(heading)}")
        rows = []
        for line in lines:
            name = _plain(line.title)
            link = f"[{name}]({line.url})" if line.url else name
            about = (link, _score(line), _day(line.at, zone))
            rows.append(f"- {' · '.join(part for part in about if part)}")
            rows.extend(f"  {_plain(text)}" for text in (line.reason, line.text) if text)
        parts.append("\n".join(rows))
    if note:
        parts.append(_plain(note))
    return "\n\n".join(parts) + "\n"


def write_html(
    title: str, introduction: str | None, groups: Sequence[Group], note: str = "", zone: tzinfo = UTC
) -> str:
    parts = [f"<h1>{escape(title)}</h1>"]
    for paragraph in (introduction or "").split("\n\n"):
        if paragraph.strip():
            parts.append(f"<p>{escape(paragraph.strip())}</p>")
    for heading, lines in groups:
        if heading:
            parts.append(f"<h2>{escape(heading)}</h2>")
        parts.append("<ul>")
        for line in lines:
            name = escape(line.title)
            link = f'<a href="{escape(line.url)}">{name}</a>' if line.url else name
            score = f" <b>{_score(line)}</b>" if line.score is not None else ""
            day = f" <time>{_day(line.at, zone)}</time>" if line.at is not None else ""
            texts = "".join(f"<p>{escape(text)}</p>" for text in (line.reason, line.text) if text)
            parts.append(f"<li>{link}{score}{day}{texts}</li>")
        parts.append("</ul>")
    if note:
        parts.append(f"<p>{escape(note)}</p>")
    return "\n".join(parts) + "\n"


def _score(line: Line) -> str:
    return "" if line.score is None else f"{line.score:g}"


def _day(at: float | None, zone: tzinfo) -> str:
    return "" if at is None else datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d")


_MARKDOWN_SIGNS = str.maketrans({sign: "\\" + sign for sign in "\\`*_[]<>#|~!&"})


def _plain(text: str) -> str:
    """Text in which Markdown finds nothing to obey."""
    return text.translate(_MARKDOWN_SIGNS)
