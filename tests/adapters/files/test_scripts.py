"""Superscripts, subscripts and merged cells of every format."""

import pytest

from nodekin.adapters.files.html import markdown
from nodekin.adapters.files.markup import superscript


@pytest.mark.parametrize(
    ("before", "text", "after", "expected"),
    [
        ("that is 2", "30", " bytes", "^30"),
        ("10", "-9", " m", "^-9"),
        ("10", "9", "5", "^9 "),
        ("1,000", "2", "", "^2"),
        ("25 m", "2", "", "^2"),
        ("5 km", "2", "", "^2"),
        ("sin", "2", "x", "^2"),
        ("Na", "+", "", "^+"),
        ("x", "n+1", "", "^(n+1)"),
        ("", "14", "C", "^14"),
        ("5", "1", " euros", "[1]"),
        ("in 1998", "4", " it", "[4]"),
        ("the tea", "12", ".", "[12]"),
        ("the tea.", "1,2", " It", "[1,2]"),
        ("红茶", "2", "和", "[2]"),
        ("", "3", " See page 4.", "[3]"),
        ("19", "th", " century", "th"),
        ("M", "me", " Curie", "me"),
        ("word", "*", "", "*"),
        ("word", "[7]", "", "[7]"),
    ],
)
def test_superscript(before: str, text: str, after: str, expected: str) -> None:
    assert superscript(before, text, after) == expected


def test_linked_superscript_is_note_mark() -> None:
    html = '<p>x<sup><a href="#n">2</a></sup> y<a href="#m"><sup>3</sup></a> z<sup>4</sup></p>'
    assert markdown(html) == "x[2] y[3] z^4"


def test_number_bases_and_names_keep_subscripts_apart() -> None:
    html = "CO<sub>2</sub>, 101<sub>2</sub>, v<sub>max</sub>, log<sub>10</sub>5"
    assert markdown(html) == "CO2, 101_2, v_max, log10 5"


def test_merged_cells_are_repeated() -> None:
    table = (
        "<table><tr><th rowspan='2'>Tea</th><th colspan='2'>Price</th></tr>"
        "<tr><th>Cup</th><th>Pot</th></tr><tr><td>Keemun</td><td>3</td><td>8</td></tr></table>"
    )
    assert markdown(table) == (
        "| Tea | Price | Price |\n| --- | --- | --- |\n| Tea | Cup | Pot |\n| Keemun | 3 | 8 |"
    )


def test_huge_spans_stay_small() -> None:
    row = "<tr><td rowspan=65535 colspan=99999>" + "a" * 5_000 + "</td></tr>"
    assert len(markdown(f"<table>{row}{'<tr></tr>' * 50}</table>")) < 40_000
