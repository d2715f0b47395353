"""What is told of `auto` with a budget beside `auto` without one."""

from benchmarks.auto_budget import parts_told, print_rows, reasons_told


def test_parts_and_reasons_are_told_briefly():
    assert parts_told({"ease": 0.25, "msdw:alpha=0.3": 0.75}) == "0.75 msdw:alpha=0.3 + 0.25 ease"
    dropped = {
        "ease": "it was number 10 of 19 on 6.2% of the likes",
        "slim": "it was number 9 of 19 on 6.2% of the likes",
        "als": "its fit on everything would take about 1.2e+02 s of the 22 s there are",
    }
    assert reasons_told(dropped) == (
        "2 × it was number … on … of the likes; "
        "1 × its fit on everything would take about … s of the … s there are"
    )


def test_figures_stand_beside_those_without_a_budget(capsys):
    whole = {
        "setting": "a/b",
        "budget": "",
        "seconds": "100",
        "auc": "0.9",
        "ndcg@10": "0.5",
        "dropped": "",
    }
    short = whole | {"budget": "60", "seconds": "50", "auc": "0.8", "dropped": "2 × why"}
    print_rows([whole, short, short | {"setting": "c/d"}])
    first, reason, second, _ = capsys.readouterr().out.splitlines()
    assert "50.0 s of 60  auc 0.8000 (-0.1000)  ndcg@10 0.5000 (+0.0000)  without: 100 s" in first
    assert reason.strip() == "2 × why" and "without" not in second
