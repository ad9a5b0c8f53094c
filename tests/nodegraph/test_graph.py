"""The graph's face: documents, declarations, errors, summaries, pickling."""

import pickle
from pathlib import Path

import pytest
from node_texts import split_lines, texts

from nodekin.nodegraph import (
    Document,
    NodeGraph,
    ReadError,
    SentenceSplitter,
    TransformError,
)

pytestmark = pytest.mark.usefixtures("every_store")


# Declaring


def test_the_constructor_checks() -> None:
    with pytest.raises(ValueError, match='on_error must be "raise" or "skip", got \'ignore\''):
        NodeGraph(on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 'ignore'"):
        NodeGraph().build("FineChunk", on_error="ignore")  # type: ignore[arg-type]
    for source in (42, b"docs", [Document("text")], [42], {"a": "b"}):
        with pytest.raises(TypeError, match="source takes paths, not "):
            NodeGraph(source)  # type: ignore[arg-type]
    with pytest.raises(ReadError, match=r"no file or folder '.*nowhere at all'"):
        NodeGraph("nowhere at all")


def test_the_predefined_chunks_have_1024_256_and_128_tokens_and_a_tenth_in_common() -> None:
    graph = NodeGraph(progress=False)
    graph.add("tea " * 3000)
    for name, size, overlap in [("Coarse", 1024, 100), ("Medium", 256, 25), ("Fine", 128, 12)]:
        splitter = SentenceSplitter(size, overlap)
        graph.create_node_group(name, splitter)
        assert texts(graph.nodes(f"{name}Chunk")) == texts(graph.nodes(name))


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
    assert repr(graph) == ("NodeGraph(2 documents, groups: line, word)")


def test_with_closes_what_was_shared() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("index")
        return "index"

    with NodeGraph() as graph:
        assert graph.reader.shared("key", make) == graph.reader.shared("key", make) == "index"
        assert made == ["index"]
    assert graph.reader.shared("key", make) == "index"
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


def test_an_error_travels() -> None:
    error = pickle.loads(pickle.dumps(TransformError("1", "word", "ValueError: x")))
    assert (error.document, error.group) == ("1", "word")
    assert "the transform of group 'word' failed on document '1': ValueError: x" in str(error)
