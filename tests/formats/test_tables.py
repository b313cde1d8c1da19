"""Lists in files: CSV of many kinds, Excel, what is none of them, and what is too much."""

import csv
import io
import zipfile
from random import Random

import pytest

from headwater.errors import FailureKind, ParseError
from headwater.formats.tables import MOST_COLUMNS, MOST_ROWS, guess_parts, read_table

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(rows: str, *, strings: str = "", styles: str = "", sheets: str = "", **parts: str) -> bytes:
    """A workbook as ECMA-376 has it, with the parts that reading needs."""
    book = io.BytesIO()
    sheets = sheets or '<sheet name="First" sheetId="1" r:id="r1"/>'
    written = {
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{sheets}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/>'
        '<Relationship Id="r2" Target="/xl/worksheets/sheet2.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{strings}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>',
        **parts,
    }
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in written.items():
            file.writestr(name, text)
    return book.getvalue()


ROWS = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>When</t></is></c>'
    '<c r="D1" t="str"><v>Sum</v></c></row>'
    '<row r="3"><c r="A3" t="s"><v>1</v></c><c r="B3" s="1"><v>46327.75</v></c><c r="D3"><v>12.5</v></c></row>'
    '<row r="4"><c r="A4" t="s"><v>99</v></c><c r="B4" s="2"><v>46328</v></c></row>'
)
STRINGS = "<si><t>Title</t></si><si><r><t>One </t></r><r><t>two</t></r></si>"
STYLES = (
    '<numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="165"'
    ' formatCode="0.00&quot;day&quot;"/>'
    '</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>'
)


@pytest.mark.parametrize(
    "data",
    [
        b"title,link\nOne,/1\n",
        b"\xef\xbb\xbftitle;link\r\nOne;/1\r\n",
        b"title\tlink\nOne\t/1",
        b"\n\ntitle|link\nOne|/1\n\n",
        b'"title","link"\n"One","/1"\n',
        "title,link\nOne,/1\n".encode("utf-16"),
    ],
)
def test_list_is_read_whatever_separates_it(data: bytes) -> None:
    assert read_table(data, "text/csv") == [{"title": "One", "link": "/1"}]


def test_cells_may_hold_lines_commas_and_chinese() -> None:
    data = '标题,正文\n"一, 二","第一行\n第二行 ""引"""\n'.encode("gb18030")
    assert read_table(data, "text/csv; charset=gb18030") == [
        {"标题": "一, 二", "正文": '第一行\n第二行 "引"'}
    ]


def test_rows_may_be_shorter_or_longer_and_names_missing_or_twice() -> None:
    assert read_table(b"a,,a\n1\n1,2,3,4\n,,\n") == [{"a": "1"}, {"a": "1", "2": "2", "a 3": "3"}]


def test_workbook_is_read_with_its_dates() -> None:
    assert read_table(workbook(ROWS, strings=STRINGS, styles=STYLES)) == [
        {"Title": "One two", "When": "2026-11-01 18:00:00", "3": "", "Sum": "12.5"},
        {"Title": "", "When": "2026-11-02"},
    ]


def test_sheet_is_chosen_by_name() -> None:
    sheets = '<sheet name="First" r:id="r1"/><sheet name="Other" r:id="r2"/>'
    second = f'<worksheet xmlns="{MAIN}"><sheetData>{ROWS.replace("Sum", "All")}</sheetData></worksheet>'
    book = workbook(ROWS, sheets=sheets, **{"xl/worksheets/sheet2.xml": second})
    assert "All" in read_table(book, sheet="Other")[0]
    with pytest.raises(ParseError, match="no sheet Third; there are: First, Other"):
        read_table(book, sheet="Third")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", FailureKind.MALFORMED),
        (b"\n \n", FailureKind.MALFORMED),
        (b"<html>", FailureKind.NOT_A_FEED),
        (b'{"a": 1}', FailureKind.NOT_A_FEED),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FailureKind.NOT_A_FEED),
        (b"PK\x03\x04damaged", FailureKind.MALFORMED),
        (b'a,b\n"' + b"x" * 200_000 + b'",1', FailureKind.MALFORMED),
    ],
)
@pytest.mark.parametrize("limit", [131_072, 10_000_000])
def test_what_is_no_list_says_so(data: bytes, kind: FailureKind, limit: int) -> None:
    before = csv.field_size_limit(limit)  # for the whole process, as other libraries set it
    try:
        with pytest.raises(ParseError) as raised:
            read_table(data, "text/csv")
    finally:
        csv.field_size_limit(before)
    assert raised.value.kind is kind


def test_workbook_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(ParseError, match="too large"):
        read_table(workbook("<row/>" * 20_000_000))


def test_external_entities_of_a_workbook_are_not_read() -> None:
    evil = (
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><sst xmlns="'
        + MAIN
        + '"><si><t>&e;</t></si></sst>'
    )
    (row,) = read_table(
        workbook(
            ROWS.split("</row>", 2)[0] + "</row><row><c><v>1</v></c></row>", **{"xl/sharedStrings.xml": evil}
        )
    )
    assert "root:" not in str(row)


def test_long_lists_and_wide_rows_are_cut() -> None:
    assert len(read_table(b"a,b\n" + b"1,2\n" * (MOST_ROWS + 5))) == MOST_ROWS
    wide = b",".join(str(each).encode() for each in range(MOST_COLUMNS + 50))
    assert len(read_table(wide + b"\n" + wide)[0]) == MOST_COLUMNS


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["ID", "Headline", "Web URL", "Published At"], ["id", "title", "url", "date"]),
        (["标题", "链接", "发布日期", "作者"], ["title", "url", "date", "author"]),
        (["a", "b"], []),
    ],
)
def test_columns_are_guessed_by_their_names(names: list[str], parts: list[str]) -> None:
    assert guess_parts(names) == dict(zip(parts, names, strict=bool(parts) or False)) if parts else True
    assert list(guess_parts(names)) == parts


def test_damaged_workbook_is_read_or_refused_and_nothing_else() -> None:
    whole = workbook(ROWS, strings=STRINGS, styles=STYLES)
    rng = Random(7)
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 3, 10))):
            place = rng.randrange(4, len(data))
            data[place : place + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        try:
            read_table(bytes(data))
        except ParseError:
            refused += 1
    assert refused > 50
