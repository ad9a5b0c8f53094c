"""The graph's documents, groups, errors and pickling."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.node_texts import texts

from nodekin.nodegraph import (
    Document,
    NodeGraph,
    ReadError,
    SentenceSplitter,
)

pytestmark = pytest.mark.usefixtures("every_store")


def test_invalid_constructor_arguments_raise() -> None:
    with pytest.raises(ValueError, match='on_error must be "raise" or "skip", got \'ignore\''):
        NodeGraph(on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 'ignore'"):
        NodeGraph().build("FineChunk", on_error="ignore")  # type: ignore[arg-type]
    for source in (42, b"docs", [Document("text")], [42], {"a": "b"}):
        with pytest.raises(TypeError, match="source must be a path or a list of paths, got "):
            NodeGraph(source)  # type: ignore[arg-type]
    with pytest.raises(ReadError, match=r"file or folder not found: '.*nowhere at all'"):
        NodeGraph("nowhere at all")


def test_predefined_chunks_have_documented_sizes() -> None:
    graph = NodeGraph(progress=False)
    graph.add("tea " * 3000)
    for name, size, overlap in [("Coarse", 1024, 100), ("Medium", 256, 25), ("Fine", 128, 12)]:
        splitter = SentenceSplitter(size, overlap)
        graph.create_node_group(name, splitter)
        assert texts(graph.nodes(f"{name}Chunk")) == texts(graph.nodes(name))


def test_add_returns_ids_in_order(graph: NodeGraph) -> None:
    given = [Document("x", id="9"), "some text", Document("d", id="2")]
    nine, made, two = graph.add(given)
    assert (nine, two) == ("9", "2")
    assert graph.node(made).text == "some text"
    assert graph.add("some text") == [made]
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d", "x", "some text"]
    assert graph.add([]) == []


def test_add_with_two_equal_ids_raises(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match="got two different documents with id 'x'"):
        graph.add(["fine", Document("one", id="x"), Document("two", id="x")])
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]


@pytest.mark.parametrize("wrong", [42, None, b"bytes", {"text": "x"}, object()])
def test_add_is_all_or_nothing(graph: NodeGraph, tmp_path: Path, wrong: object) -> None:
    (tmp_path / "file.txt").write_text("from a file", encoding="utf-8")
    with pytest.raises(TypeError, match="a document must be a text"):
        graph.add(["fine", tmp_path, wrong])
    with pytest.raises(TypeError, match="a document must be a text"):
        graph.add(wrong)
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]
    assert graph.refresh().added == []


def test_add_with_a_node_id_raises(graph: NodeGraph) -> None:
    (node, *_) = graph.nodes("word")
    with pytest.raises(ValueError, match="is already used by a node of group 'word'"):
        graph.add(Document("again", id=node.id))
    assert graph.node(node.id).text == "a"


def test_update_replaces_known_documents_only(graph: NodeGraph) -> None:
    with pytest.raises(LookupError, match="unknown document id '3', nearest ids: '"):
        graph.update([Document("x", id="1"), Document("x", id="3")])
    with pytest.raises(TypeError, match="update takes no paths"):
        graph.update([Document("x", id="1"), Path("a.md")])
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]
    assert graph.update([Document("new", id="1")]) == ["1"]
    assert texts(graph.nodes("ROOT")) == ["new", "d"]


def test_remove_of_unknown_ids_raises(graph: NodeGraph) -> None:
    node = graph.nodes("word")[0]
    with pytest.raises(LookupError, match="unknown document id '3', nearest ids: '"):
        graph.remove(["1", "3"])
    with pytest.raises(LookupError, match=f"'{node.id}', it is the id .* 'word'; .* '1'$"):
        graph.remove(["1", node.id])
    assert texts(graph.nodes("ROOT")) == ["a b\nc", "d"]


def test_remove_takes_one_or_several_ids(graph: NodeGraph) -> None:
    graph.nodes("word")
    graph.remove("1")
    assert texts(graph.nodes("word")) == ["d"]
    with pytest.raises(LookupError, match="unknown document id '1'"):
        graph.remove("1")
    graph.remove(i for i in ["2", "2"])
    assert (graph.nodes("word"), graph.nodes("ROOT")) == ([], [])
    assert graph.groups["word"].size == 0


def test_empty_graph_has_no_nodes() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("word", str.split)
    assert (graph.nodes("word"), graph.nodes("FineChunk"), graph.nodes("ROOT")) == ([], [], [])
    assert graph.find("word")([]) == []
    assert graph.build("word") == []
    assert graph.groups["word"].built
    with pytest.raises(LookupError, match="unknown document id 'x', nearest ids: none"):
        graph.remove("x")


def test_groups_summarize_parent_size_and_status(graph: NodeGraph) -> None:
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


def test_repr_counts_documents_and_names_groups(graph: NodeGraph) -> None:
    assert repr(graph) == ("NodeGraph(2 documents, groups: line, word)")


def test_node_returns_the_node_of_an_id(graph: NodeGraph) -> None:
    node = graph.nodes("word")[0]
    assert graph.node(node.id) == node
    with pytest.raises(LookupError, match="no node 'nothing' in the graph"):
        graph.node("nothing")


def test_search_follows_changed_documents() -> None:
    graph = NodeGraph(progress=False)
    assert graph.search("green tea") == []
    graph.add([Document("Green tea is steamed.", {"file_name": "tea.md"}, id="tea"), "Milk."])
    (result,) = graph.search("Which tea is steamed?")
    assert str(result) == "tea.md  0.626  Green tea is steamed."
    graph.add("White tea is dried.")
    assert [r.text for r in graph.search("white tea", top_k=1)] == ["White tea is dried."]
    kept = {"file_name": "tea.md"}
    assert [r.node.document_id for r in graph.search("white tea", filters=kept)] == ["tea"]
    graph.remove("tea")
    assert graph.search("steamed") == []


def test_search_with_a_wrong_argument_raises(graph: NodeGraph) -> None:
    with pytest.raises(TypeError, match="'k' is called 'top_k' here"):
        graph.search("a", k=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="a query must be a str, got int 3"):
        graph.search(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="top_k must be 1 or more, got 0"):
        graph.search("a", 0)


def test_search_works_in_threads_and_after_pickling() -> None:
    graph = NodeGraph(progress=False)
    graph.add([f"Tea number {n} is made in garden {n}." for n in range(50)])
    questions = [f"garden {n}" for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda question: graph.search(question, 1)[0].text, questions))
    assert found == [f"Tea number {n} is made in garden {n}." for n in range(50)]
    other = pickle.loads(pickle.dumps(graph))
    (result,) = other.search("garden 7", top_k=1)
    assert (result.text, result.node.graph is other) == (found[7], True)


def test_pickled_graph_keeps_its_nodes(graph: NodeGraph) -> None:
    before = [(n.id, n.text, n.start, n.end, n.metadata) for n in graph.nodes("word")]
    other = pickle.loads(pickle.dumps(graph))
    assert [(n.id, n.text, n.start, n.end, n.metadata) for n in other.nodes("word")] == before
    word = other.nodes("word")[1]
    assert word.graph is other
    assert (word.parent.text, word.root.id) == ("a b", "1")
    assert texts(word.parent.children["word"]) == ["a", "b"]
    assert texts(other.find("line")(word)) == ["a b"]
