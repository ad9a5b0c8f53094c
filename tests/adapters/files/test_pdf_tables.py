"""PDF tables with ruled cells."""

from itertools import pairwise
from pathlib import Path

import pytest
from support.sample_files import pdf_of

from nodekin.nodegraph import NodeGraph

COLUMNS = (20, 110, 200, 280)


def words(*placed: tuple[int, int, str]) -> str:
    """Return content that writes texts at places."""
    return "".join(f"BT /F 10 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in placed)


def rules(*lines: tuple[int, int, int, int]) -> str:
    return "".join(f"{x} {y} m {to_x} {to_y} l S\n" for x, y, to_x, to_y in lines)


def ruled(columns, rows) -> str:
    """Return PDF content for a grid of crossing lines."""
    return rules(
        *((columns[0], y, columns[-1], y) for y in rows),
        *((x, rows[0], x, rows[-1]) for x in columns),
    )


PRICES = words(
    *((24, 224, "Tea"), (114, 224, "Cup"), (204, 224, "Pot")),
    *((24, 204, "Longjing"), (114, 204, "4.20"), (204, 204, "11.00")),
    *((24, 184, "Keemun"), (114, 184, "3.80"), (204, 184, "9.50")),
)

TABLE = """\
| Tea | Cup | Pot |
| --- | --- | --- |
| Longjing | 4.20 | 11.00 |
| Keemun | 3.80 | 9.50 |"""

ROWS = (240, 220, 200, 180)

BOXES = "".join(
    f"{x} {y - 20} {to_x - x} 20 re S\n" for y in ROWS[:3] for x, to_x in pairwise(COLUMNS)
)


def text_in(folder: Path, content: str) -> str:
    (folder / "a.pdf").write_bytes(pdf_of(content.encode()))
    (node,) = NodeGraph(folder / "a.pdf", progress=False).nodes("ROOT")
    return node.text


@pytest.mark.parametrize(
    "drawn",
    [
        ruled(COLUMNS, ROWS),
        BOXES,
        rules(*((20, y, 280, y) for y in ROWS), (110, 240, 110, 180), (200, 240, 200, 180)),
        ruled(COLUMNS, (240, 220, 180)),  # a head, and a body without lines
        ruled(COLUMNS, (240, 239, 220, 200, 180, 179)),  # double lines
    ],
    ids=["lines", "boxes", "open sides", "head and body", "double"],
)
def test_ruled_table_becomes_markdown(tmp_path: Path, drawn: str) -> None:
    around = words((20, 260, "Prices of all rooms."), (20, 160, "They hold until March."))
    text = text_in(tmp_path, drawn + PRICES + around)
    assert TABLE in text
    assert text.count("Prices of all rooms.") == text.count("They hold until March.") == 1
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    (table,) = graph.nodes("table")
    assert table.metadata["columns"] == ["Tea", "Cup", "Pot"]
    assert (table.metadata["rows"], table.metadata["page"], table.text) == (2, 1, TABLE)


def test_multiline_and_merged_cells_become_markdown(tmp_path: Path) -> None:
    content = ruled((20, 110), (240, 220, 190, 160)) + rules(
        *((110, y, 280, y) for y in (240, 220, 190, 160)),
        *((280, 240, 280, 160), (200, 220, 200, 160)),
    )
    content += words(
        *((24, 224, "Tea"), (150, 224, "Prices in euro")),
        *((24, 208, "Longjing"), (24, 196, "of spring"), (114, 208, "4.20"), (204, 208, "11.00")),
        *((24, 178, "Keemun"), (114, 178, "3.80"), (204, 178, "9.50"), (204, 166, "or less")),
    )
    assert text_in(tmp_path, content) == (
        "| Tea | Prices in euro |  |\n| --- | --- | --- |\n| Longjing of spring | 4.20 | 11.00 |\n"
        "| Keemun | 3.80 | 9.50 or less |"
    )


@pytest.mark.parametrize(
    "drawn",
    ["", rules((20, 240, 280, 240), (20, 180, 280, 180)), "20 180 260 60 re S\n"],
    ids=["nothing", "two lines", "a frame"],
)
def test_table_without_grid_stays_lines(tmp_path: Path, drawn: str) -> None:
    text = text_in(tmp_path, drawn + PRICES)
    assert "|" not in text
    assert text.split() == "Tea Cup Pot Longjing 4.20 11.00 Keemun 3.80 9.50".split()


def test_line_crossing_table_border_is_not_split(tmp_path: Path) -> None:
    long = words((24, 190, "A line that has nothing to do with lines that go through it."))
    drawn = ruled((20, 80, 140), (240, 220, 180))
    inner = words((24, 224, "Tea"), (84, 224, "Cup"), (24, 206, "Keemun"), (84, 206, "3"))
    text = text_in(tmp_path, drawn + inner + long)
    assert "|" not in text
    assert "A line that has nothing to do with lines that go through it." in text
