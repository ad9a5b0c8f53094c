"""The graph's face: documents, declarations, errors, summaries, pickling."""

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import (
    Document,
    Node,
    NodeGraph,
    ReadError,
    TransformError,
    UnknownGroupError,
)

pytestmark = pytest.mark.usefixtures("every_store")


def texts(nodes: list[Node]) -> list[str]:
    return [node.text for node in nodes]


def split_lines(text: str) -> list[str]:
    return text.splitlines()


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document("a b\nc", {"topic": "one"}, id="1"), Document("d", id="2")])
    graph.create_node_group("line", split_lines)
    graph.create_node_group("word", str.split, parent="line")
    return graph


# Declaring


def test_an_unknown_parent_is_told_with_the_nearest_names(graph: NodeGraph) -> None:
    with pytest.raises(UnknownGroupError, match="no node group 'lines'; the graph has 'line', "):
        graph.create_node_group("new", str.split, parent="lines")
    assert "new" not in graph.groups


@pytest.mark.parametrize(
    "use",
    [
        lambda graph: graph.nodes("wrod"),
        lambda graph: graph.find("wrod"),
        lambda graph: graph.build("wrod"),
        lambda graph: graph.ancestry("wrod"),
        lambda graph: graph.reading("wrod").__enter__(),
    ],
)
def test_an_unknown_group_is_told_with_the_nearest_names(
    graph: NodeGraph, use: Callable[[NodeGraph], Any]
) -> None:
    with pytest.raises(LookupError, match="no node group 'wrod'; the graph has 'word', "):
        use(graph)


def test_a_name_is_not_given_to_another_rule(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match=r"'line' exists with another rule .*replace=True"):
        graph.create_node_group("line", str.split)
    with pytest.raises(ValueError, match="'word' exists with another rule"):
        graph.create_node_group("word", str.split)  # the same transform, another parent
    assert texts(graph.nodes("line")) == ["a b", "c", "d"]


def test_the_same_rule_again_is_no_change(graph: NodeGraph) -> None:
    graph.nodes("line")
    graph.create_node_group("line", split_lines)
    assert graph.groups["line"].built


def test_replacing_a_rule_makes_its_group_and_those_below_anew(graph: NodeGraph) -> None:
    assert texts(graph.nodes("word")) == ["a", "b", "c", "d"]
    graph.create_node_group("other", split_lines)
    graph.nodes("other")
    graph.create_node_group("line", lambda text: [text.upper()], replace=True)
    assert {name: each.built for name, each in graph.groups.items() if each.size} == {
        "ROOT": True,
        "line": False,
        "word": False,
        "other": True,
    }
    assert texts(graph.nodes("word")) == ["A", "B", "C", "D"]
    assert texts(graph.nodes("line")) == ["A B\nC", "D"]
    assert graph.node("1").children.keys() == {"line", "other"}


def test_replacing_there_and_back_gives_the_same_nodes(graph: NodeGraph) -> None:
    before = [(node.id, node.start) for node in graph.nodes("word")]
    graph.create_node_group("line", lambda text: [text[:1]], replace=True)
    assert texts(graph.nodes("word")) == ["a", "d"]
    graph.create_node_group("line", split_lines, replace=True)
    assert [(node.id, node.start) for node in graph.nodes("word")] == before


def test_a_group_may_move_to_another_parent(graph: NodeGraph) -> None:
    graph.nodes("word")
    graph.create_node_group("word", str.split, replace=True)
    assert [node.parent_id for node in graph.nodes("word")] == ["1", "1", "1", "2"]
    assert graph.groups["word"].parent == "ROOT"


def test_a_cycle_is_refused(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match="'line' can't be made from 'word', which is made from"):
        graph.create_node_group("line", str.split, parent="word", replace=True)
    assert graph.groups["line"].parent == "ROOT"
    assert texts(graph.nodes("word")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(name="x", parent="x"), ValueError, "'x' can't be its own parent"),
        (dict(name="ROOT"), ValueError, "can't be called 'ROOT'"),
        (dict(name=""), ValueError, "can't be called ''"),
        (dict(name=" \n"), ValueError, "can't be called"),
        (dict(name=3), TypeError, "a group's name is a str, not 3"),
        (dict(name="x", parent=None), TypeError, "a group's parent is a str, not None"),
        (dict(name="x", num_workers=-1), ValueError, "num_workers must be 0 or more, not -1"),
        (dict(name="x", transform=3), TypeError, "a transform is a callable"),
        (dict(name="x", transform=[]), TypeError, "empty"),
    ],
)
def test_a_wrong_declaration_is_refused(
    graph: NodeGraph, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = list(graph.groups)
    with pytest.raises(error, match=message):
        graph.create_node_group(**{"transform": str.split, **arguments})
    assert list(graph.groups) == before


def test_the_constructor_checks() -> None:
    with pytest.raises(ValueError, match='on_error is "raise" or "skip", not \'ignore\''):
        NodeGraph(on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not 'ignore'"):
        NodeGraph().build("FineChunk", on_error="ignore")  # type: ignore[arg-type]
    for source in (42, b"docs", [Document("text")], [42], {"a": "b"}):
        with pytest.raises(TypeError, match="source takes paths, not "):
            NodeGraph(source)  # type: ignore[arg-type]
    with pytest.raises(ReadError, match=r"no file or folder '.*nowhere at all'"):
        NodeGraph("nowhere at all")


# Documents


def test_add_returns_the_ids_in_order(graph: NodeGraph) -> None:
    given = [Document("x", id="9"), "some text", Document("d", id="2")]
    nine, made, two = graph.add(given)
    assert (nine, two) == ("9", "2")
    assert graph.node(made).text == "some text"
    assert graph.add("some text") == [made]
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d", "x", "some text"]
    assert graph.add([]) == []


def test_the_same_text_twice_is_one_document(graph: NodeGraph) -> None:
    first, second = graph.add(["same", "same"])
    assert first == second
    assert texts(graph.nodes("ROOT")).count("same") == 1


def test_two_different_documents_with_one_id_are_refused(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match="two different documents in one call have the id 'x'"):
        graph.add(["fine", Document("one", id="x"), Document("two", id="x")])
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]


@pytest.mark.parametrize("wrong", [42, None, b"bytes", {"text": "x"}, object()])
def test_add_takes_all_or_nothing(graph: NodeGraph, tmp_path: Path, wrong: object) -> None:
    (tmp_path / "file.txt").write_text("from a file", encoding="utf-8")
    with pytest.raises(TypeError, match="can't make a document from"):
        graph.add(["fine", tmp_path, wrong])
    with pytest.raises(TypeError, match="can't make a document from"):
        graph.add(wrong)
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]
    assert graph.refresh().added == []  # the folder was not taken either


def test_an_id_that_a_node_has_is_refused(graph: NodeGraph) -> None:
    (node, *_) = graph.nodes("word")
    with pytest.raises(ValueError, match="is taken by a node of group 'word'"):
        graph.add(Document("again", id=node.id))
    assert graph.node(node.id).text == "a"


def test_an_update_reaches_the_nodes(graph: NodeGraph) -> None:
    graph.nodes("word")
    assert graph.update([Document("x y", id="1"), Document("d", id="2")]) == ["1", "2"]
    assert texts(graph.nodes("word")) == ["x", "y", "d"]


def test_update_and_remove_know_only_what_is_there(graph: NodeGraph) -> None:
    node = graph.nodes("word")[0]
    for wrong in ("3", node.id):
        with pytest.raises(LookupError, match=f"no document '{wrong}'; the graph has '"):
            graph.update([Document("x", id="1"), Document("x", id=wrong)])
        with pytest.raises(LookupError, match=f"no document '{wrong}'; the graph has '"):
            graph.remove(["1", wrong])
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]


def test_remove_takes_one_or_many(graph: NodeGraph) -> None:
    graph.nodes("word")
    graph.remove("1")
    assert texts(graph.nodes("word")) == ["d"]
    with pytest.raises(LookupError, match="no document '1'"):
        graph.remove("1")
    graph.remove(i for i in ["2", "2"])
    assert (graph.nodes("word"), graph.nodes("ROOT")) == ([], [])
    assert graph.groups["word"].size == 0


def test_a_removed_document_may_come_back_and_is_then_the_last(graph: NodeGraph) -> None:
    ids = {node.id for node in graph.nodes("word")}
    graph.remove("1")
    graph.add(Document("a b\nc", id="1"))
    assert texts(graph.nodes("word")) == ["d", "a", "b", "c"]
    assert {node.id for node in graph.nodes("word")} == ids


def test_an_empty_corpus_has_no_nodes() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("word", str.split)
    assert (graph.nodes("word"), graph.nodes("FineChunk"), graph.nodes("ROOT")) == ([], [], [])
    assert graph.find("word")([]) == []
    assert graph.build("word") == []
    assert graph.groups["word"].built
    with pytest.raises(LookupError, match="no document 'x'; the graph has none"):
        graph.remove("x")


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_blank_document_has_no_nodes(text: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document(text, id="blank"))
    graph.create_node_group("line", split_lines)
    assert (graph.nodes("line"), graph.nodes("FineChunk")) == ([], [])
    assert graph.node("blank").text == text


# Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"{name}1 {name}2", encoding="utf-8")
    return folder


def test_refresh_tells_what_changed_and_takes_it_in(folder: Path) -> None:
    calls: Counter[str] = Counter()

    def split(text: str) -> list[str]:
        calls[text] += 1
        return text.split()

    graph = NodeGraph(str(folder), progress=False)
    graph.add(Document("own", id="own"))
    graph.create_node_group("word", split, version="1")
    assert texts(graph.nodes("word")) == ["a1", "a2", "b1", "b2", "c1", "c2", "own"]
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_text("new", encoding="utf-8")
    (folder / "d.txt").write_text("d1", encoding="utf-8")
    calls.clear()
    report = graph.refresh()
    assert report.added == ["docs/d.txt"]
    assert report.updated == ["docs/b.txt"]
    assert report.removed == ["docs/a.txt"]
    assert report.unchanged == 1
    assert texts(graph.nodes("word")) == ["new", "c1", "c2", "own", "d1"]
    assert calls == {"new": 1, "d1": 1}
    again = graph.refresh()
    assert (again.added, again.updated, again.removed, again.unchanged) == ([], [], [], 3)


def test_a_removed_file_comes_back_with_refresh(folder: Path) -> None:
    graph = NodeGraph(folder, progress=False)
    graph.remove("docs/a.txt")
    assert graph.refresh().added == ["docs/a.txt"]


def test_an_unreadable_file_changes_nothing(folder: Path) -> None:
    graph = NodeGraph(folder, progress=False)
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match="is not UTF-8"):
        graph.refresh()
    assert len(graph.nodes("ROOT")) == 3
    with pytest.raises(ReadError, match="is not UTF-8"):
        NodeGraph(folder)


def test_an_unreadable_file_is_skipped_and_keeps_what_it_gave_until_it_is_gone(
    folder: Path,
) -> None:
    graph = NodeGraph(folder, on_error="skip", progress=False)
    (folder / "b.txt").write_bytes(b"\xff\xfe\x00")
    assert graph.refresh().removed == []
    (failure,) = graph.failures
    assert (failure.document, failure.group) == ("docs/b.txt", "ROOT")
    assert graph.node("docs/b.txt").text == "b1 b2"
    (folder / "b.txt").write_text("mended", encoding="utf-8")
    assert graph.refresh().updated == ["docs/b.txt"]
    assert graph.failures == []
    (folder / "b.txt").write_bytes(b"\xff\xfe\x00")
    graph.refresh()
    (folder / "b.txt").unlink()
    assert graph.refresh().removed == ["docs/b.txt"]
    assert graph.failures == []


# Looking at it


def test_groups_tell_parent_size_and_whether_built(graph: NodeGraph) -> None:
    graph.nodes("line")
    graph.add(Document("e\nf", id="3"))
    facts = {n: (g.name, g.parent, g.size, g.built) for n, g in graph.groups.items()}
    assert facts == {
        "ROOT": ("ROOT", None, 3, True),
        "CoarseChunk": ("CoarseChunk", "ROOT", 0, False),
        "MediumChunk": ("MediumChunk", "ROOT", 0, False),
        "FineChunk": ("FineChunk", "ROOT", 0, False),
        "line": ("line", "ROOT", 3, False),
        "word": ("word", "line", 0, False),
    }
    assert next(iter(facts)) == "ROOT"


def test_repr_names_the_groups_and_counts_the_documents(graph: NodeGraph) -> None:
    assert repr(graph) == (
        "NodeGraph(2 documents, groups: CoarseChunk, MediumChunk, FineChunk, line, word)"
    )


def test_with_closes_what_was_shared() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("index")
        return "index"

    with NodeGraph() as graph:
        assert graph.shared("key", make) == graph.shared("key", make) == "index"
        assert made == ["index"]
    assert graph.shared("key", make) == "index"
    assert made == ["index", "index"]


def test_a_node_is_got_by_its_id(graph: NodeGraph) -> None:
    node = graph.nodes("word")[0]
    assert graph.node(node.id) == node
    with pytest.raises(LookupError, match="no node 'nothing' in the graph"):
        graph.node("nothing")


def test_progress_is_drawn_on_stderr_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    def build(progress: bool | None) -> tuple[str, str]:
        graph = NodeGraph(progress=progress)
        graph.add(["a b", "c"])
        graph.create_node_group("word", str.split)
        graph.nodes("word")
        out, err = capsys.readouterr()
        assert (out, graph.nodes("word")[0].text) == ("", "a")
        return err, capsys.readouterr().err

    shown, again = build(True)
    assert "building word" in shown
    assert "2/2" in shown
    assert again == ""  # nothing to build
    assert build(False) == ("", "")
    assert build(None) == ("", "")  # stderr is no terminal here


# Metadata


def test_metadata_is_the_documents_the_ancestors_and_the_nodes_own() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("a b", {"topic": "t", "level": "document"}, id="1"))
    graph.create_node_group(
        "line", lambda text: [Node(text, {"level": "line", "line": 1})], version="1"
    )
    graph.create_node_group("word", lambda text: [Node("a", {"level": "word"}), "b"], "line")
    a, b = graph.nodes("word")
    assert a.metadata == {"topic": "t", "level": "word", "line": 1}
    assert b.metadata == {"topic": "t", "level": "line", "line": 1}
    assert (a.own_metadata, b.own_metadata) == ({"level": "word"}, {})
    assert graph.node("1").metadata == {"topic": "t", "level": "document"}


def test_new_metadata_reaches_the_nodes_without_running_text_rules() -> None:
    graph = NodeGraph(progress=False)
    calls: Counter[str] = Counter()

    def split(text: str) -> list[str]:
        calls[text] += 1
        return text.split()

    def topic(node: Node) -> str:
        calls["topic of " + node.text] += 1
        return f"{node.text}: {node.metadata['topic']}"

    graph.create_node_group("word", split, version="1")
    graph.create_node_group("topic", topic, parent="word", trans_node=True, version="1")
    graph.add([Document("a b", {"topic": "old"}, id="1"), Document("c", {"topic": "o"}, id="2")])
    ids = [node.id for node in graph.nodes("word")]
    assert texts(graph.nodes("topic")) == ["a: old", "b: old", "c: o"]
    calls.clear()
    revision = graph.revision("word")
    graph.add(Document("a b", {"topic": "new"}, id="1"))
    assert [node.metadata["topic"] for node in graph.nodes("word")] == ["new", "new", "o"]
    assert [node.id for node in graph.nodes("word")] == ids
    assert [node.id for node in graph.changes("word", revision).added] == ids[:2]
    assert texts(graph.nodes("topic")) == ["a: new", "b: new", "c: o"]
    assert calls == {"topic of a": 1, "topic of b": 1}


# Pickling


def test_a_graph_travels_with_its_nodes(graph: NodeGraph) -> None:
    before = [(n.id, n.text, n.start, n.end, n.metadata) for n in graph.nodes("word")]
    other = pickle.loads(pickle.dumps(graph))
    assert [(n.id, n.text, n.start, n.end, n.metadata) for n in other.nodes("word")] == before
    word = other.nodes("word")[1]
    assert word.graph is other
    assert (word.parent.text, word.root.id) == ("a b", "1")
    assert texts(word.parent.children["word"]) == ["a", "b"]
    assert texts(other.find("line")(word)) == ["a b"]


def test_a_graph_that_travelled_knows_what_was_built_and_goes_its_own_way(
    graph: NodeGraph, every_store: str
) -> None:
    graph.nodes("word")
    other = pickle.loads(pickle.dumps(graph))
    assert texts(other.node("1").children["line"]) == ["a b", "c"]
    other.add(Document("e f", id="3"))
    other.remove("2")
    assert texts(other.nodes("word")) == ["a", "b", "c", "e", "f"]
    same_file = every_store == "file"
    expected = ["a", "b", "c", "e", "f"] if same_file else ["a", "b", "c", "d"]
    assert texts(graph.nodes("word")) == expected


def test_a_graph_of_files_that_travelled_can_be_refreshed(folder: Path) -> None:
    other = pickle.loads(pickle.dumps(NodeGraph(folder)))
    (folder / "a.txt").write_text("new", encoding="utf-8")
    assert other.refresh().updated == ["docs/a.txt"]


def test_an_error_travels() -> None:
    error = pickle.loads(pickle.dumps(TransformError("1", "word", "ValueError: x")))
    assert (error.document, error.group) == ("1", "word")
    assert "the transform of group 'word' failed on document '1': ValueError: x" in str(error)
