"""Sections, pages, tables and symbols of every format, without a declaration."""

from pathlib import Path

import pytest

from nodekin.nodegraph import Document, MarkdownSplitter, NodeGraph

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    return NodeGraph(SAMPLES, progress=False)


def test_section_group_follows_headings(graph: NodeGraph) -> None:
    sections = graph.nodes("section")
    of_pdf = [node.own_metadata for node in sections if node.document_id == "files/handbook.pdf"]
    assert [(fields["level"], fields["heading"], fields["page"]) for fields in of_pdf] == [
        (1, "1 The tea handbook", 1),
        (2, "1.1 Buying", 1),
        (2, "1.2 Prices", 1),
        (1, "2 Serving", 2),
        (2, "2.1 Water", 2),
        (2, "2.2 Complaints", 2),
    ]
    of_word = [node.own_metadata for node in sections if node.document_id == "files/手册.docx"]
    assert of_word[1]["headings"] == ["第一章 茶室手册", "1.1 采购"]
    for node in sections:
        assert node.root.text[node.start : node.end] == node.text


def test_pages(graph: NodeGraph) -> None:
    pages = [(node.document_id, node.own_metadata.get("page")) for node in graph.nodes("page")]
    assert pages == [
        ("files/handbook.pdf", 1),
        ("files/handbook.pdf", 2),
        ("files/手册.docx", None),
    ]


def test_tables(graph: NodeGraph) -> None:
    ruled, table = graph.nodes("table")  # of the PDF, and of the Word file
    assert ruled.metadata["columns"] == ["Tea", "Cup", "Pot"]
    assert ruled.metadata["rows"] == 3
    assert table.own_metadata == {
        "columns": ["茶", "一杯", "一壶"],
        "rows": 2,
        "headings": ["第一章 茶室手册", "1.2 价格"],
    }


PROGRAMS = {
    "a.py: tea function, Cup class, Cup.pour method": (
        "@cached\ndef tea(): ...\nclass Cup:\n    def pour(self): ...\n"
    ),
    "a.js: tea function, Cup class, Cup.pour method, go function": (
        "// 茶\nexport const tea = () => 1\nclass Cup { pour() {} }\nfunction go() {}"
    ),
    "a.ts: Cup interface, go function": (
        "interface Cup { size: number }\nexport function go(): void {}"
    ),
    "a.tsx: View function": "export const View = () => <p>茶</p>",
    "a.java: Cup class, Cup.Cup method, Cup.pour method": (
        "class Cup { Cup() {} int pour() { return 1; } }"
    ),
    "a.go: Cup type, Pour method, Go function": (
        "package a\ntype Cup struct{}\nfunc (c Cup) Pour() {}\nfunc Go() {}"
    ),
    "a.rs: Cup struct, Cup implementation, Cup.pour method, go function": (
        "struct Cup;\nimpl Cup { fn pour(&self) {} }\nfn go() {}"
    ),
    "a.c: cup struct, pour function": (
        "struct cup { int size; };\nstatic char *pour(struct cup *c) { return 0; }"
    ),
    "a.cpp: tea module, tea.Cup class, tea.Cup.pour method": (
        "namespace tea { class Cup { void pour() {} }; }"
    ),
    "a.rb: Cup class, Cup.pour method": "class Cup\n  def pour\n  end\nend",
    "a.cs: Cup class, Cup.Pour method": "class Cup { void Pour() {} }",
    "a.php: Cup class, Cup.pour method, go function": (
        "<?php class Cup { function pour() {} } function go() {}"
    ),
    "a.sh: pour function": "pour() { echo 茶; }\n",
}


@pytest.mark.parametrize("expected", PROGRAMS)
def test_symbols(tmp_path: Path, expected: str) -> None:
    name, _, symbols = expected.partition(": ")
    (tmp_path / name).write_text(PROGRAMS[expected], encoding="utf-8")
    nodes = NodeGraph(tmp_path / name, progress=False).nodes("symbol")
    found = (f"{n.own_metadata['symbol']} {n.own_metadata['kind']}" for n in nodes)
    assert ", ".join(found) == symbols
    for node in nodes:
        assert node.root.text[node.start : node.end] == node.text
        line = node.root.text.count("\n", 0, node.start) + 1
        assert node.place == f"{name}, line {line}, {node.own_metadata['symbol']}"
    assert nodes[0].text.startswith(("@cached", "export", *"abcdefghijklmnopqrstuvwxyz"))


def test_group_declared_by_user_replaces_built_in_group() -> None:
    graph = NodeGraph(progress=False)
    assert "section" not in graph.groups
    graph.create_node_group("section", MarkdownSplitter(max_level=1))
    graph.add(Document("# A\n## B\ntext", id="a"))
    assert len(graph.nodes("section")) == 1
    assert [node.own_metadata for node in graph.nodes("page")] == [{}]
    assert {"section", "page"} <= graph.groups.keys()
    assert "table" not in graph.groups


def test_structure_groups_are_built_on_first_use(tmp_path: Path) -> None:
    with NodeGraph(SAMPLES, store=tmp_path / "g.nodekin", progress=False) as graph:
        graph.create_node_group("line", str.splitlines, "page")  # accepted as a parent group
        assert not graph.groups["page"].built
        assert graph.nodes("line")[0].own_metadata == {}
        assert graph.groups["page"].built
        assert "section" not in graph.groups
    with NodeGraph(SAMPLES, store=tmp_path / "g.nodekin", progress=False) as graph:
        assert len(graph.nodes("page")) == 3
