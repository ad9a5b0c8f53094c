"""Text files in any encoding, JSON and CSV."""

import json
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, PassageSplitter


def text_in(path: Path) -> str:
    (node,) = NodeGraph(path, progress=False).nodes("ROOT")
    return node.text


def test_json_becomes_lines_and_metadata(tmp_path: Path) -> None:
    value = {
        "name": "\u8336",
        "price": {"cup": 3.5, "pot": [8, 9], "none": None},
        "teas": [{"id": 1, "hot": True}, {"id": 2}],
        "points": [[1, 2], [3, 4]],
        "long": "leaf " * 50,
    }
    (tmp_path / "a.json").write_text(json.dumps(value))
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.text == (
        "name: 茶\nprice.cup: 3.5\nprice.pot: 8, 9\nteas.id: 1\nteas.hot: true\nteas.id: 2\n"
        f"points: [1, 2], [3, 4]\nlong: {'leaf ' * 50}"
    )
    fields = {"name": "茶", "price.cup": 3.5, "price.pot": [8, 9], "teas.id": [1, 2]}
    assert node.metadata.items() >= fields.items()
    assert "long" not in node.metadata


@pytest.mark.parametrize("content", ['{\n "a": 1 // why\n}', "[" * 100_000, "{}"])
def test_other_json_is_read_as_text(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    assert text_in(tmp_path / "a.json") == content


def test_xml_is_read_in_its_declared_encoding(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="windows-1251"?><a>чай</a>'
    (tmp_path / "a.xml").write_bytes(text.encode("cp1251"))
    (node,) = NodeGraph(tmp_path / "a.xml", progress=False).nodes("ROOT")
    assert (node.text, node.metadata["encoding"]) == (text, "cp1251")


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.html", "a.md"])
def test_few_invalid_bytes_are_replaced_and_noted(tmp_path: Path, name: str) -> None:
    lines = [f"第{n}行：绿茶在五月购买。".encode() for n in range(9)]
    lines[3] = lines[3][:-1] + b"\xff\xe9"
    (tmp_path / name).write_bytes(b"\n".join(lines))
    graph = NodeGraph(tmp_path, progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text.count("绿茶在五月购买") == 9
    (note,) = graph.read_report.notes.values()
    assert note.endswith("bytes that are not utf-8: 3 (first: line 4)")
    assert "encoding" not in node.metadata


def test_empty_texts_are_skipped_but_empty_programs_are_read(tmp_path: Path) -> None:
    for name in ("a.txt", "b.md", "c.csv", "d.py"):
        (tmp_path / name).write_text("\n" if name == "b.md" else "")
    graph = NodeGraph(tmp_path, progress=False)
    assert str(graph.read_report) == "1 read, 3 skipped: 3 empty"
    assert len(graph.failures) == 3


HEAD = "| tea | price, cup |\n| --- | --- |"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", 'tea,"price, cup"\nKeemun,3\n', f"{HEAD}\n| Keemun | 3 |"),
        ("a.csv", "tea;price, cup\nKeemun;3\n", f"{HEAD}\n| Keemun | 3 |"),
        ("a.tsv", "tea\tprice, cup\nKeemun\t3\n", f"{HEAD}\n| Keemun | 3 |"),
        ("a.csv", "sep=;\ntea;price, cup\nKeemun;3,20\n", f"{HEAD}\n| Keemun | 3,20 |"),
        ("a.csv", "1,20;3,40\n5,10;2,20\n", "| 1,20 | 3,40 |\n| --- | --- |\n| 5,10 | 2,20 |"),
        ("a.csv", 'tea;"price, cup"\n"Kee\nmun";"3; 4"\n', f"{HEAD}\n| Kee mun | 3; 4 |"),
        (
            "a.csv",
            "Prices | 2026\n\ntea;price, cup\nKeemun;3,20\nAssam;2,80\nTotal: two\n",
            f"Prices \\| 2026\n\n{HEAD}\n| Keemun | 3,20 |\n| Assam | 2,80 |\n\nTotal: two",
        ),
        (
            "a.csv",
            "Prices,,\na,b,c\n1,2,3\nTotal,,3\n",
            "Prices\n\n| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| Total |  | 3 |",
        ),
    ],
)
def test_csv_becomes_a_markdown_table(tmp_path: Path, name: str, content: str, text: str) -> None:
    (tmp_path / name).write_text(content)
    assert text_in(tmp_path / name) == text


@pytest.mark.parametrize(
    ("content", "rows", "line"),
    [
        ('tea,price\n"Keemun,3\nAssam,2\n', '"Keemun | 3\nAssam | 2', 2),
        ('sep=,\ntea,price\n"Keemun,3\nAssam,"2"\n', '"Keemun | 3\nAssam | 2', 3),
        ('tea,price\nAssam,2\nKeemun,"3', 'Assam | 2\nKeemun | "3', 3),
        (
            'tea,price\n"Kee\nmun",3\n"Assam,2\n"Oolong",4\n',
            'Kee mun | 3\n"Assam | 2\nOolong | 4',
            4,
        ),
        ('tea,price\n"5" pot,3\nA 6" pot,2\n', '5 pot | 3\nA 6" pot | 2', 0),
    ],
)
def test_unclosed_quote_in_csv_is_noted(tmp_path: Path, content: str, rows: str, line: int) -> None:
    (tmp_path / "a.csv").write_text(content)
    graph = NodeGraph(tmp_path, progress=False)
    (node,) = graph.nodes("ROOT")
    head = "| tea | price |\n| --- | --- |\n"
    assert node.text == head + "\n".join(f"| {row} |" for row in rows.split("\n"))
    notes = [note.rpartition(": ")[2] for note in graph.read_report.notes.values()]
    assert notes == ([f"line {line})"] if line else [])


def test_nul_in_csv_is_left_out_and_noted(tmp_path: Path) -> None:
    row = "| Assam | 2 |\n"
    (tmp_path / "a.csv").write_text("tea,price\n" + "Assam,2\n" * 200 + '"Kee\0mun",3\n')
    graph = NodeGraph(tmp_path, progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text == f"| tea | price |\n| --- | --- |\n{row * 200}| Keemun | 3 |"
    assert "NUL characters left out: 1" in str(graph.read_report.notes)


def test_rows_of_csv_know_the_row_below_the_title(tmp_path: Path) -> None:
    rows = "".join(f"tea {n};{n},5;town {n % 7}\n" for n in range(400))
    (tmp_path / "a.csv").write_text(f"Prices\nname;price;city\n{rows}Total;;\n")
    graph = NodeGraph(tmp_path, progress=False)
    graph.create_node_group("passage", PassageSplitter())
    passages = graph.nodes("passage")
    assert len(passages) > 5
    assert {node.metadata["table_head"] for node in passages[1:]} == {"name | price | city"}


def test_encoding_of_the_folder_decides_for_short_texts(tmp_path: Path) -> None:
    long = "Yeşil çay yapraklarını soğuk suda değil, ılık suda demlemek için bekleyin."
    for name, text in (("a", f"{long} {long}"), ("b", "Çay ılık."), ("c", "Şekersiz çay için.")):
        (tmp_path / f"{name}.txt").write_bytes(text.encode("cp1254"))
    texts = [node.text for node in NodeGraph(tmp_path, progress=False).nodes("ROOT")]
    assert texts[1:] == ["Çay ılık.", "Şekersiz çay için."]
    (tmp_path / "a.txt").unlink()
    assert "Çay ılık." not in [n.text for n in NodeGraph(tmp_path, progress=False).nodes("ROOT")]


def test_report_counts_other_encodings(tmp_path: Path) -> None:
    for name, encoding in (("a", "gb18030"), ("b", "gb18030"), ("c", "utf-16"), ("d", "utf-8-sig")):
        (tmp_path / f"{name}.txt").write_bytes(f"红茶是全发酵茶。{name}".encode(encoding))
    graph = NodeGraph(tmp_path, progress=False)
    assert str(graph.read_report) == "4 read; not in UTF-8: 2 gb18030, 1 utf-16"
    assert [node.text[-1] for node in graph.nodes("ROOT")] == ["a", "b", "c", "d"]
    assert not any("\ufeff" in node.text for node in graph.nodes("ROOT"))
