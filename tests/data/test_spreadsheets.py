"""Excel files: read as the same table in CSV, refused with a reason, and no larger than they say."""

import sys
import zipfile

import pytest

from recsys import InputError
from recsys.data import read_interactions
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
    assert table.names == ["Kunde", "Artikel", "Sterne", "Datum"] and list(table.lines) == [2, 3, 5]
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
    with pytest.raises(InputError, match=r"pip install 'recsys\[excel\]', or save the sheet as CSV"):
        read_table(write_xlsx(tmp_path / "t.xlsx", ROWS))
