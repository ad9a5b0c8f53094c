"""The vector index: changes, compared with brute force, files and threads."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.concurrency import DeferredWork
from nodekin.nodegraph.errors import EmbeddingError
from nodekin.nodegraph.graph_reader import GraphReader
from nodekin.nodegraph.models.embedder import Embedder
from nodekin.retrievers import Retriever
from nodekin.retrievers.filters import Filter, parse_filters
from nodekin.retrievers.indexes import (
    array_files,
    filter_index,
    nearest_vectors,
    synced_index,
    vector_index,
)
from nodekin.retrievers.indexes.array_files import load_arrays, save_arrays
from nodekin.retrievers.indexes.vector_index import VectorIndex

LETTERS = "abcdefgh"
TEXTS = st.text(LETTERS, max_size=4)
IDS = st.sampled_from("123456")
COLORS = st.sampled_from(["red", "blue", None])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), IDS, st.lists(TEXTS, max_size=6), COLORS),
        st.tuples(st.just("add"), IDS, st.lists(TEXTS, max_size=6), COLORS),
        st.tuples(st.just("remove"), IDS),
        st.tuples(
            st.just("query"),
            st.lists(TEXTS, min_size=1, max_size=3),
            st.one_of(st.none(), st.integers(1, 8)),
            COLORS,
        ),
    ),
    max_size=15,
)


def count_letters(texts: list[str]) -> np.ndarray:
    """Return vectors of eight numbers and a number that is never 0."""
    counts = [[*(text.count(letter) for letter in LETTERS), 0.25] for text in texts]
    return np.array(counts, np.float32)


LETTER_MODEL = Embedder(count_letters, "letters")


def new_graph(documents: dict[str, Document], model: Embedder = LETTER_MODEL) -> NodeGraph:
    graph = NodeGraph(progress=False, embed=model)
    graph.create_node_group("line", str.splitlines)
    graph.add(list(documents.values()))
    return graph


def synced(index: VectorIndex, graph: NodeGraph) -> VectorIndex:
    index.ready()
    index.link()
    with graph.reader.reading("line"):
        index.sync()
    return index


def ask(index: VectorIndex, query: str, limit: int | None = 5, filters=None) -> list[tuple]:
    vector = index._graph.embeddings.query_vectors([query], "default")[0]
    with index._graph.reader.reading("line"):
        index.sync()
        hits = index.search(vector, limit, parse_filters(filters))
    return list(zip(hits.ids, hits.scores, strict=True))


def brute(graph: NodeGraph, query: str, limit: int | None, color: str | None) -> list[tuple]:
    nodes = [n for n in graph.nodes("line") if color is None or n.metadata.get("color") == color]
    (vector,) = count_letters([query]).astype(float)
    rows = []
    for place, node in enumerate(nodes):
        (other,) = count_letters([node.text]).astype(float)
        cosine = float(vector @ other / np.linalg.norm(vector) / np.linalg.norm(other))
        rows.append((round(cosine, 5), place, node.id))
    rows.sort(key=lambda row: (-row[0], row[1]))
    return [(node_id, score) for score, _, node_id in rows][:limit]


def run(steps: list[tuple]) -> None:
    graph = new_graph({"0": Document("ab\nab\nabc\nh", {"color": "red"}, id="0")})
    index = VectorIndex(graph, "line", "default")
    for what, *step in [*steps, ("query", ["a", "abcd"], 4, None)]:
        if what == "add":
            number, lines, color = step
            graph.add(Document("\n".join(lines), color and {"color": color}, id=number))
        elif what == "remove" and step[0] in [n.id for n in graph.nodes("ROOT")]:
            graph.remove(step[0])
        elif what == "query":
            queries, limit, color = step
            filters = color and {"color": color}
            synced(index, graph)
            for query in queries:
                got = ask(index, query, limit, filters)
                expected = brute(graph, query, limit, color)
                assert [i for i, _ in got] == [i for i, _ in expected]
                assert [s for _, s in got] == pytest.approx([s for _, s in expected], abs=1e-5)
            vectors = graph.embeddings.query_vectors(queries, "default")
            with graph.reader.reading("line"):
                snapshot = index.snapshot(list(vectors), parse_filters(filters))
            many = snapshot.search(range(len(queries)), limit)
            for query, hits in zip(queries, many, strict=True):
                assert list(zip(hits.ids, hits.scores, strict=True)) == ask(
                    index, query, limit, filters
                )


@pytest.mark.parametrize("kind", ["exact", "codes", "hnsw"])
@settings(max_examples=amount(16, 50))
@given(steps=STEPS)
def test_vector_index_after_changes_equals_brute_force(steps: list[tuple], kind: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nearest_vectors, "_BATCH", 4)
        patched.setattr(filter_index, "_GAPS", 2)
        if kind == "codes":
            patched.setattr(nearest_vectors, "CODED", 6)
            patched.setattr(vector_index, "_CODES_PAY", 1)
        if kind == "hnsw":
            patched.setattr(nearest_vectors, "EXACT", 6)
            patched.setattr(nearest_vectors, "_FOLLOW_COST", 0)
        run(steps)


def test_search_without_matches_is_empty() -> None:
    graph = new_graph({})
    index = synced(VectorIndex(graph, "line", "default"), graph)
    assert ask(index, "a") == []
    graph.add(Document("ab\ncd", {"color": "red"}, id="1"))
    synced(index, graph)
    assert ask(index, "a", 5, {"color": "blue"}) == []
    with graph.reader.reading("line"):
        zeros = index.search(np.zeros(9, np.float32), 5, Filter())
    assert zeros.ids == []  # a vector of zeros has no direction
    assert len(ask(index, "a", 5, {"color": "red"})) == 2
    graph.remove("1")
    assert ask(index, "a") == []


def test_query_vector_of_wrong_length_raises() -> None:
    graph = new_graph({"1": Document("ab", id="1")})
    index = synced(VectorIndex(graph, "line", "default"), graph)
    with graph.reader.reading("line"):
        for vector in (np.ones(5, np.float32), np.ones((1, 8), np.float32)):
            with pytest.raises(EmbeddingError, match=r"group 'line' have 9: the .* 'letters'"):
                index.search(vector, 3, Filter())


def test_texts_are_embedded_once_before_locking() -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> np.ndarray:
        graph.create_node_group("line", str.splitlines)  # an error while the graph is held
        embedded.extend(texts)
        return count_letters(texts)

    graph = new_graph({"1": Document("ab\nab\ncd", id="1")}, Embedder(embed, "noting"))
    index = synced(VectorIndex(graph, "line", "default"), graph)
    assert sorted(embedded) == ["ab", "cd"]
    graph.add(Document("cd\nef", id="2"))
    synced(index, graph)
    graph.remove("1")
    synced(index, graph)
    assert sorted(embedded) == ["ab", "cd", "ef"]
    assert index.size == 2


def test_index_needs_little_more_memory_than_its_vectors() -> None:
    size = 4_096

    def embed(texts: list[str]) -> np.ndarray:
        vectors = np.ones((len(texts), 1_024), np.float32)
        vectors[:, 0] = [int(text) for text in texts]
        return vectors

    text = "\n".join([str(number) for number in range(size)])
    graph = new_graph({"1": Document(text, id="1")}, Embedder(embed, "wide"))
    graph.build("line", embed=True)
    tracemalloc.start()
    try:
        assert Retriever(graph, "line", "cosine", top_k=1)("0")[0].text == "0"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * size * 4_096  # bytes of the vectors


def test_failing_model_keeps_index_usable() -> None:
    broken = [False]

    def embed(texts: list[str]) -> np.ndarray:
        if broken[0]:
            raise OSError("no network")
        return count_letters(texts)

    graph = new_graph({"1": Document("ab\ncd", id="1")}, Embedder(embed, "at times"))
    index = synced(VectorIndex(graph, "line", "default"), graph)
    before = ask(index, "ab")
    broken[0] = True
    graph.add(Document("ef", id="2"))
    with pytest.raises((EmbeddingError, OSError)):
        index.ready()
    with graph.reader.reading("line"), pytest.raises(DeferredWork):
        index.sync()
    assert index.size == 2
    broken[0] = False
    synced(index, graph)
    assert ask(index, "ab")[:1] == before[:1]
    assert index.size == 3


# The file


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for indexes of graphs, which are written immediately."""
    monkeypatch.setattr(GraphReader, "index_file", lambda self, name: tmp_path / f"{name}.index")
    monkeypatch.setattr(synced_index, "_UNSAVED", 0)
    monkeypatch.setattr(synced_index, "_WORTH_SAVING", 0)
    return tmp_path


DOCUMENTS = {
    str(n): Document(t, {"n": n}, id=str(n)) for n, t in enumerate(["ab\nab", "cd", "ef\nh"])
}


def counting_changes(graph: NodeGraph, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the revisions of change requests."""
    asked: list[int] = []
    changes = graph.reader.changes
    monkeypatch.setattr(
        graph.reader,
        "changes",
        lambda g, since, **how: asked.append(since) or changes(g, since, **how),
    )
    return asked


def test_damaged_index_of_older_format_heals(
    kept: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> np.ndarray:
        embedded.extend(texts)
        return count_letters(texts)

    graph = new_graph(DOCUMENTS, Embedder(embed, "noting"))
    with monkeypatch.context() as older:
        older.setattr(array_files, "_FORMAT", 6)
        index = synced(VectorIndex(graph, "line", "default"), graph)
        before = ask(index, "abd", None)
        with graph.reader.reading("line"):
            index.add(list(graph.nodes("line")))  # format 6 had rows twice
            index.save()
    embedded.clear()
    for _ in range(2):  # the file is rebuilt once
        assert ask(synced(VectorIndex(graph, "line", "default"), graph), "abd", None) == before
    assert [text for text in embedded if text != "abd"] == []
    assert [record.message for record in caplog.records if "rebuilt" in record.message] == [
        f"the index in {next(kept.iterdir())} is rebuilt: its format 6 is outdated"
    ]


@pytest.mark.parametrize("exact", [200_000, 2])
def test_stored_index_is_loaded_and_updated(
    kept: Path, monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    monkeypatch.setattr(nearest_vectors, "EXACT", exact)
    graph = new_graph(DOCUMENTS)
    index = synced(VectorIndex(graph, "line", "default"), graph)
    before = ask(index, "abd", None)
    assert len(list(kept.iterdir())) == 1
    asked = counting_changes(graph, monkeypatch)
    again = synced(VectorIndex(graph, "line", "default"), graph)
    assert set(asked) <= {graph.reader.revision("line")}  # only new changes were requested
    assert ask(again, "abd", None) == before
    assert ask(again, "abd", 1, {"n": 1}) == ask(index, "abd", 1, {"n": 1})

    graph.add(Document("ab\nbd", {"n": 9}, id="new"))
    graph.remove("0")
    later = synced(VectorIndex(graph, "line", "default"), graph)
    assert 0 not in asked
    for limit in (1, 3, None):
        assert ask(later, "abd", limit) == [
            (i, pytest.approx(s, abs=1e-5)) for i, s in brute(graph, "abd", limit, None)
        ]
    later.close()
    assert ask(synced(VectorIndex(graph, "line", "default"), graph), "abd") == ask(later, "abd")


def test_many_vectors_without_faiss_log_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nearest_vectors, "EXACT", 2)
    monkeypatch.setattr(vector_index, "has_faiss", lambda: False)
    retriever = Retriever(new_graph(DOCUMENTS), "line", "cosine")
    found = [[result.node.text for result in retriever("ab")] for _ in range(3)]
    assert found == [["ab", "ab", "h", "cd", "ef"]] * 3
    assert caplog.messages == [
        "5 vectors of 'line' are compared one by one; FAISS is faster: pip install 'nodekin[faiss]'"
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"revision": 10**6},
        {"model": "another"},
        {"kind": "text"},
    ],
    ids=str,
)
def test_vector_file_with_other_header_is_rebuilt(kept: Path, change: dict) -> None:
    graph = new_graph(DOCUMENTS)
    before = ask(synced(VectorIndex(graph, "line", "default"), graph), "abd", None)
    (path,) = kept.iterdir()
    header, arrays = load_arrays(path) or ({}, {})
    save_arrays(path, {**header, **change}, arrays)
    assert ask(synced(VectorIndex(graph, "line", "default"), graph), "abd", None) == before


def test_changed_dimension_of_model_rebuilds_index(kept: Path) -> None:
    graph = new_graph(DOCUMENTS)
    synced(VectorIndex(graph, "line", "default"), graph).close()
    other = new_graph(DOCUMENTS, Embedder(lambda ts: count_letters(ts)[:, 4:], "letters"))
    other.nodes("line")
    other.add(Document("ab", id="more"))
    index = synced(VectorIndex(other, "line", "default"), other)
    assert len(ask(index, "abd", None)) == other.groups["line"].size
