"""Reads lists: CSV and TSV in any encoding, and the first sheet of an Excel workbook (xlsx). Pure, bounded.

Every row becomes a dictionary by the names of the first row. Cells are text; a date of Excel is written as ISO 8601.
"""

import csv
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Literal

from lxml import etree

from headwater.errors import FailureKind, ParseError
from headwater.formats.charset import decode
from headwater.formats.html import collapse

Row = dict[str, str]

MOST_ROWS: Final = 100_000
MOST_COLUMNS: Final = 200
LONGEST_CELL: Final = 100_000
LONGEST_FIELD: Final = 131_072  # of a CSV file; a longer one is a quotation mark that is never closed
MOST_SHEET_BYTES: Final = 64_000_000  # uncompressed
# What the library raises for archives that are not as they say.
_DAMAGES: Final = (
    KeyError,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    struct.error,
)
_ZIP: Final = b"PK\x03\x04"
_OLD_EXCEL: Final = b"\xd0\xcf\x11\xe0"
_DELIMITERS: Final = ",;\t|"
_LOOK_AT_LINES: Final = 20
_OURS: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_STRICT: Final = "{http://purl.oclc.org/ooxml/spreadsheetml/main}"
_DATE_FORMATS: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
LONGEST_FORMAT: Final = 255  # characters, as Excel has it
_QUOTED: Final = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_EPOCHS: Final = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 - Excel knows no zones


def read_table(data: bytes, content_type: str | None = None, *, sheet: str | None = None) -> list[Row]:
    """The rows of a list; ParseError when it is none."""
    if data.startswith(_ZIP):
        rows = _read_workbook(data, sheet)
    elif data.startswith(_OLD_EXCEL):
        raise ParseError("This is a workbook of the old format (xls); save it as xlsx or csv.")
    else:
        rows = _read_text(decode(data, content_type).text)
    return _named(rows)


def _named(rows: Iterable[list[str]]) -> list[Row]:
    """The rows by the names in the first one that is not empty; names that are missing are numbers."""
    found = iter(rows)
    head = next((row for row in found if any(row)), None)
    if head is None:
        raise ParseError("The list is empty.", kind=FailureKind.MALFORMED)
    names: list[str] = []
    for place, name in enumerate(head[:MOST_COLUMNS], 1):
        name = collapse(name) or str(place)
        names.append(name if name not in names else f"{name} {place}")
    named = (dict(zip(names, row, strict=False)) for row in found if any(row))
    return list(islice(named, MOST_ROWS))


def _read_text(text: str) -> Iterator[list[str]]:
    text = text.lstrip("\ufeff")
    if not text.strip():
        raise ParseError("The document is empty.", kind=FailureKind.MALFORMED)
    if text.lstrip()[:1] in ("<", "{") or "\0" in text[:1000]:
        raise ParseError("This is not a list of values separated by commas or tabs.")
    delimiter = _delimiter(text)
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            yield _bounded(row)
    except csv.Error as error:
        raise ParseError(
            "The list cannot be read: {problem}.", kind=FailureKind.MALFORMED, problem=str(error)
        ) from None


def _bounded(row: list[str]) -> list[str]:
    if any(len(cell) > LONGEST_FIELD for cell in row):  # another library may have raised csv's own limit
        raise csv.Error(f"a field has more than {LONGEST_FIELD} characters")
    return [cell.strip()[:LONGEST_CELL] for cell in row[:MOST_COLUMNS]]


def _delimiter(text: str) -> str:
    """What separates the values: the sign that divides the first lines into the same number of several columns."""
    lines = text[:100_000].splitlines()[:_LOOK_AT_LINES]

    def columns(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            return 0.0, 0
        usual = widths[0] if widths else 0
        same = sum(width == usual for width in widths) / max(len(widths), 1)
        return (same if usual > 1 else 0.0), usual

    best = max(_DELIMITERS, key=columns)
    if columns(best)[0] == 0.0 and len(lines) > 1 and any(len(line) > 2_000 for line in lines):
        raise ParseError("This is not a list of values separated by commas or tabs.")
    return best


def _read_workbook(data: bytes, wanted: str | None) -> Iterator[list[str]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            yield from _read_sheet(book, wanted)
    except (zipfile.BadZipFile, zlib.error, etree.LxmlError, *_DAMAGES) as error:
        raise ParseError(
            "The workbook cannot be read: {problem}.",
            kind=FailureKind.MALFORMED,
            problem=type(error).__name__,
        ) from None


def _read_sheet(book: zipfile.ZipFile, wanted: str | None) -> Iterator[list[str]]:
    whole = _tree(book, "xl/workbook.xml")
    properties = next(iter(_all(whole, "workbookPr")), None)
    is_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    sheets = {str(each.get("name")): each for each in _all(whole, "sheet")}
    if not sheets or (wanted is not None and wanted not in sheets):
        raise ParseError(
            "The workbook has no sheet {sheet}; there are: {sheets}.",
            sheet=wanted or "",
            sheets=", ".join(sheets),
        )
    chosen = sheets[wanted] if wanted is not None else next(iter(sheets.values()))
    relation = next((str(value) for name, value in chosen.attrib.items() if str(name).endswith("}id")), "")
    targets = {
        str(each.get("Id")): str(each.get("Target")) for each in _tree(book, "xl/_rels/workbook.xml.rels")
    }
    target = targets[relation].lstrip("/")
    path = target if target.startswith("xl/") else f"xl/{target}"
    names = set(book.namelist())
    shared = _shared_texts(book) if "xl/sharedStrings.xml" in names else []
    dates = _date_styles(_tree(book, "xl/styles.xml")) if "xl/styles.xml" in names else frozenset()
    for number, row in enumerate(_all(_tree(book, path), "row")):
        if number > MOST_ROWS:
            break
        cells: list[str] = []
        for cell in row:
            place = _column(cell.get("r")) or len(cells)
            if place >= MOST_COLUMNS:
                break
            cells += [""] * (place - len(cells))
            cells.append(_cell(cell, shared, dates, is_1904)[:LONGEST_CELL])
        yield cells


def _tree(book: zipfile.ZipFile, path: str) -> etree._Element:
    with book.open(path) as part:
        data = part.read(MOST_SHEET_BYTES + 1)
    if len(data) > MOST_SHEET_BYTES:
        raise ParseError("The workbook is too large.", kind=FailureKind.TOO_LARGE)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    return etree.fromstring(data, parser)


def _all(tree: etree._Element, name: str) -> Iterator[etree._Element]:
    return tree.iter(_OURS + name, _STRICT + name)


def _text_of(element: etree._Element) -> str:
    return "".join(each.text or "" for each in _all(element, "t"))


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    return [_text_of(each) for each in _all(_tree(book, "xl/sharedStrings.xml"), "si")]


def _date_styles(styles: etree._Element) -> frozenset[int]:
    """The numbers of the styles that show a number as a date."""
    own = {
        each.get("numFmtId")
        for each in _all(styles, "numFmt")
        if re.search(r"[ymdh]", _QUOTED.sub("", str(each.get("formatCode"))[:LONGEST_FORMAT]), re.IGNORECASE)
    }
    uses = next(iter(_all(styles, "cellXfs")), ())
    return frozenset(
        place
        for place, each in enumerate(uses)
        if each.get("numFmtId") in own or int(each.get("numFmtId") or 0) in _DATE_FORMATS
    )


def _column(reference: str | None) -> int | None:
    """The place of a cell in its row: A is 0."""
    letters = re.match(r"[A-Z]{1,3}", reference or "")
    if letters is None:
        return None
    place = 0
    for letter in letters[0]:
        place = place * 26 + ord(letter) - 64
    return place - 1


def _cell(cell: etree._Element, shared: list[str], dates: frozenset[int], is_1904: bool) -> str:
    kind: str = cell.get("t") or "n"
    if kind == "inlineStr":
        return _text_of(cell).strip()
    value = next((each.text for each in _all(cell, "v")), None) or ""
    if kind == "s":
        return shared[int(value)].strip() if value.isdigit() and int(value) < len(shared) else ""
    if kind == "n" and (cell.get("s") or "0").isdigit() and int(cell.get("s") or 0) in dates:
        return _date(value, is_1904)
    return value.strip()


def _date(value: str, is_1904: bool) -> str:
    try:
        at = _EPOCHS[is_1904] + timedelta(seconds=round(float(value) * 86_400))
    except (ValueError, OverflowError):
        return value
    return at.isoformat(sep=" ") if at.time() != datetime.min.time() else at.date().isoformat()


Part = Literal["id", "title", "url", "date", "updated", "author", "summary", "content", "image", "categories"]

# What columns and keys are called that mean a part of an item, likeliest first; in small letters without signs.
_NAMES: Final[dict[Part, tuple[str, ...]]] = {
    "id": ("id", "guid", "uuid", "uid", "key", "number", "slug", "编号", "序号"),
    "title": (
        "title",
        "name",
        "headline",
        "subject",
        "label",
        "displayname",
        "fullname",
        "标题",
        "名称",
        "题名",
        "主题",
    ),
    "url": (
        "url",
        "htmlurl",
        "link",
        "permalink",
        "href",
        "weburl",
        "webpage",
        "website",
        "uri",
        "address",
        "链接",
        "网址",
        "地址",
    ),
    "date": (
        *("publishedat", "published", "datepublished", "publishdate", "pubdate", "publicationdate", "date"),
        *("createdat", "created", "createdon", "time", "timestamp", "datetime", "day", "postedat"),
        *("发布日期", "发布时间", "日期", "时间"),
    ),
    "updated": ("updatedat", "updated", "modified", "modifiedat", "datemodified", "lastmodified", "更新时间"),
    "author": ("author", "authors", "creator", "by", "byline", "owner", "user", "作者"),
    "content": ("content", "contenthtml", "body", "bodyhtml", "html", "text", "正文", "内容"),
    "summary": (
        "summary",
        "description",
        "excerpt",
        "abstract",
        "teaser",
        "details",
        "摘要",
        "说明",
        "简介",
        "描述",
    ),
    "image": ("image", "imageurl", "thumbnail", "picture", "photo", "cover", "图片", "封面"),
    "categories": ("tags", "categories", "labels", "topics", "keywords", "category", "标签", "分类"),
}


def guess_parts(names: Iterable[str]) -> dict[Part, str]:
    """Which of some names mean which part of an item."""
    plain = {re.sub(r"[\W_]+", "", name).lower(): name for name in reversed(list(names))}
    found: dict[Part, str] = {}
    for part, spellings in _NAMES.items():
        if name := next((plain[each] for each in spellings if each in plain), None):
            found[part] = name
    return found
