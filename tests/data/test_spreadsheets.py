"""Excel files: read as the same table in CSV, refused with a reason, and no larger than they say."""

import hashlib
import sys
import zipfile

import pytest

from recsys import InputError
from recsys.data import read_interactions, spreadsheets
from recsys.data.readers import read_table

CONTENT = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>
<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>
</Types>"""
RELS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/>{more}
</Relationships>"""
STYLES = """<?xml version="1.0" encoding="UTF-8"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<fonts count="1"><font/></fonts><fills count="1"><fill/></fills><borders count="1"><border/></borders>
<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs>
</styleSheet>"""
BOOK = """<?xml version="1.0" encoding="UTF-8"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
<sheets><sheet name="ratings" sheetId="1" r:id="rId1"/></sheets></workbook>"""


def write_xlsx(path, rows):
    """Write a workbook of one sheet; ("date", days since 1900) is a date, None no cell."""

    def cell(place, value):
        if value is None:
            return ""
        if isinstance(value, tuple):
            return f'<c r="{place}" s="1"><v>{value[1]}</v></c>'
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c r="{place}"><v>{value}</v></c>'

    body = "".join(
        f'<row r="{k}">' + "".join(cell(f"{chr(65 + j)}{k}", v) for j, v in enumerate(row)) + "</row>"
        for k, row in enumerate(rows, 1)
    )
    sheet = (
        '<?xml version="1.0" encoding="UTF-8"?><worksheet '
        f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{body}</sheetData></worksheet>'
    )
    styles = '<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", CONTENT)
        archive.writestr(
            "_rels/.rels", RELS.format(kind="officeDocument", target="xl/workbook.xml", more="")
        )
        archive.writestr("xl/workbook.xml", BOOK)
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            RELS.format(kind="worksheet", target="worksheets/sheet1.xml", more=styles),
        )
        archive.writestr("xl/styles.xml", STYLES)
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    return path


@pytest.fixture
def calamine():
    pytest.importorskip("python_calamine")


ROWS = [
    ["Kunde", "Artikel", "Sterne", "Datum"],
    [7, "A & B".replace("&", "&amp;"), 4.5, ("date", 44197)],
    ["007", "tea", 3, ("date", 44198)],
    [None, None, None, None],
    ["ada", None, 2, ("date", 44199.75)],
]


def test_a_sheet_is_a_table_of_text(calamine, tmp_path):
    table = read_table(write_xlsx(tmp_path / "t.xlsx", ROWS))
    assert table.names == ["Kunde", "Artikel", "Sterne", "Datum"]
    assert [table.where(k) for k in range(3)] == ["line 2", "line 3", "line 5"]
    assert [list(column) for column in table.columns] == [
        ["7", "007", "ada"], ["A & B", "tea", ""], ["4.5", "3", "2"],
        ["2021-01-01", "2021-01-02", "2021-01-03T18:00:00"],
    ]  # fmt: skip


def test_interactions_of_a_sheet_are_those_of_the_same_csv(calamine, tmp_path):
    rows = [["user", "item", "rating"], ["a", 1, 4], ["a", 2, 5], ["b", 1, 1]]
    sheet = read_interactions(write_xlsx(tmp_path / "t.xlsx", rows))
    csv = tmp_path / "t.csv"
    csv.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    text = read_interactions(csv)
    assert (sheet.matrix != text.matrix).nnz == 0 and sheet.rating.tolist() == text.rating.tolist()
    assert (
        sheet.user_ids.tolist() == text.user_ids.tolist()
        and sheet.item_ids.tolist() == text.item_ids.tolist()
    )


REFUSED = {
    "empty": ([], "no interactions; the file is empty"),
    "header only": ([["user", "item"]], "there is a header only"),
    "no name": ([["user", None], ["a", "b"]], "line 1: column 2 has no name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_sheets_that_are_no_table_are_refused(calamine, tmp_path, case):
    rows, told = REFUSED[case]
    with pytest.raises(InputError, match=told):
        read_table(write_xlsx(tmp_path / "t.xlsx", rows))


def test_what_is_no_workbook_is_refused(calamine, tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"user,item\na,b\n")
    with pytest.raises(InputError, match="is no readable Excel file"):
        read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(InputError, match="is no readable Excel file"):
        read_table(path)
    write_xlsx(path, ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is no readable Excel file"):
        read_table(path)


def test_a_sheet_that_unpacks_to_too_much_is_refused(calamine, tmp_path, monkeypatch):
    from recsys.data import spreadsheets

    path = write_xlsx(tmp_path / "t.xlsx", [["user", "item"], *[["a", "b" * 50]] * 2000])
    assert len(read_table(path)) == 2000
    monkeypatch.setattr(spreadsheets, "MOST_BYTES", 100_000)
    with pytest.raises(InputError, match="unpacks to .* MB in 6 parts; at most 0 MB"):
        read_table(path)
    monkeypatch.undo()
    # A part that says it is smaller than it is: the sizes in the archive are not believed.
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        sheet = archive.getinfo("xl/worksheets/sheet1.xml")
    size = sheet.file_size.to_bytes(4, "little")
    while (at := content.find(size)) >= 0:
        content[at : at + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="is no readable Excel file"):
        read_table(path)


def test_without_the_reader_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InputError, match=r"pip install '.*\[excel\]', or save the sheet as CSV"):
        read_table(write_xlsx(tmp_path / "t.xlsx", ROWS))


def with_part(source, target, name, change):
    """Write an archive again with one part changed, or added."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            if part != name:
                new.writestr(part, old.read(part))
        new.writestr(name, change(old.read(name) if name in old.namelist() else b""))


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize("place", ["XFD1048576", "ABC100000", "B6000000"])
def test_a_cell_far_away_makes_no_table_that_kills_the_process(tmp_path, place):
    """Before, the reader's library asked for all cells up to it and aborted."""
    good, bad = tmp_path / "good.xlsx", tmp_path / "bad.xlsx"
    write_xlsx(good, [["user", "item"], ["u1", "i1"]])
    for quote in (b'"', b"'"):
        cell = b"<row><c r=" + quote + place.encode() + quote + b"><v>1</v></c></row></sheetData>"
        with_part(good, bad, SHEET, lambda text, cell=cell: text.replace(b"</sheetData>", cell))
        with pytest.raises(
            InputError, match="has a sheet of .* columns; at most 10,000,000 cells are read"
        ):
            read_table(bad)


def test_a_long_text_in_many_cells_is_refused(tmp_path):
    good, bad = tmp_path / "good.xlsx", tmp_path / "bad.xlsx"
    write_xlsx(good, [["user", "item"], ["u1", "i1"]])
    noise = b"".join(hashlib.sha256(str(k).encode()).hexdigest().encode() for k in range(8000))
    texts = b"<sst><si><t>short</t></si><si><t>" + noise + b"</t></si></sst>"
    with_part(good, tmp_path / "texts.xlsx", "xl/sharedStrings.xml", lambda _: texts)
    for number, refused in ((1, True), (0, False)):
        rows = b"".join(
            b'<row r="%d"><c r="A%d" t="s"><v>%d</v></c></row>' % (k, k, number) for k in range(3, 3000)
        )
        end = rows + b"</sheetData>"
        with_part(
            tmp_path / "texts.xlsx", bad, SHEET, lambda text, end=end: text.replace(b"</sheetData>", end)
        )
        if refused:
            with pytest.raises(InputError, match="cells of more than 1,000 MB of text"):
                spreadsheets._check_archive(bad)
        else:
            spreadsheets._check_archive(bad)
