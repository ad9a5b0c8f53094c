"""Tables in the answers of models."""

import pytest

from nodekin.nodegraph.models.output.tables import read_table, text_column


@pytest.mark.parametrize(
    "table",
    [
        "| # | question |\n|---|---|\n| 1 | Who wrote it, and when? |",
        "| question | tool |\n|---|---|\n| Who wrote it, and when? | plays |",
        "id,question\n1,Who wrote it, and when?",
        'id,question\n1,"Who wrote it, and when?"',
        "id\tquestion\n1\tWho wrote it, and when?",
        "Original,Rewritten\nx,Who wrote it, and when?",
    ],
)
def test_text_of_table_is_read(table: str) -> None:
    rows = read_table(table.split("\n"))
    assert rows is not None
    assert text_column(rows) == ["Who wrote it, and when?"]


def test_lines_with_commas_are_no_table() -> None:
    assert read_table(["Who wrote it, and when?", "Who painted it, and when?"]) is None
