import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from nodekin.adapters.cli.line_breaks import wrapped


def lines(text, width):
    return [line.plain for line in wrapped(Text(text), width)]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("green tea is steamed", 12, ["green tea is", "steamed"]),
        ("谭卫道（Armand David）在四川", 16, ["谭卫道（Armand", "David）在四川"]),
        ("绿茶不发酵。红茶发酵。", 10, ["绿茶不发", "酵。红茶发", "酵。"]),
        ("他说“好”。", 6, ["他说", "“好”。"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("约9.9小时", 5, ["约9.9", "小时"]),
        ("", 5, [""]),
    ],
)
def test_lines_break_between_words_and_letters(text, width, expected):
    assert lines(text, width) == expected


@given(st.text("ab 茶。（）“”9.", max_size=60), st.integers(4, 20))
def test_wrapped_lines_fit_and_keep_the_text(text, width):
    found = lines(text, width)
    assert all(cell_len(line) <= width for line in found)
    assert re.sub(r"\s", "", "".join(found)) == re.sub(r"\s", "", text)


def test_styles_survive_line_breaks():
    row = Text("green tea is steamed")
    row.stylize("bold", 6, 20)
    first, second = wrapped(row, 12)
    assert [span.style for span in (*first.spans, *second.spans)] == ["bold", "bold"]
