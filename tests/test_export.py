"""CSV for other programs."""

import csv
import io

from recsys.utils.export import csv_text


def test_a_carriage_return_does_not_end_a_line_behind_which_a_formula_runs():
    given = "tea\r=1+1"
    text = csv_text(("item",), [(given,)])
    assert text == 'item\n"tea\r=1+1"\n'
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["item"], [given]]
