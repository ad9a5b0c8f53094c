"""Updates and files of an index, compared with a new index."""

import hashlib
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.analysis.text_analyzer import TextAnalyzer
from nodekin.retrievers.indexes import synced_index, text_index
from nodekin.retrievers.indexes.array_files import load_arrays, save_arrays
from nodekin.retrievers.indexes.exact_index import Exact
from nodekin.retrievers.similarities.bm25 import Bm25
from nodekin.retrievers.similarities.registry import Cosine, CustomSimilarity

BM25 = Bm25()
OTHER = Bm25(k1=0.5)
QUERIES = ["长江是河", "茶", "tea", "green 茶 a", "\ud800x 江", "a b c"]


def new_graph(folder: Path | None, documents: Any = (), group: str = "line") -> NodeGraph:
    """Return a graph in memory, with a folder for indexes if given."""
    graph = NodeGraph(progress=False)
    if folder is not None:
        graph.reader.index_file = lambda name: (  # type: ignore[method-assign]
            folder / hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        )
    graph.create_node_group(group, str.splitlines)
    graph.add(list(documents))
    return graph


def reopen(graph: NodeGraph, similarity: Bm25 = BM25, group: str = "line") -> None:
    """Close the index of a graph and remove the index from memory, as in a new process."""
    similarity.open(graph, group).close()
    graph.close()


def answers(graph: NodeGraph, similarity: Bm25 = BM25, group: str = "line", **kw: Any) -> list:
    retriever = Retriever(graph, group, similarity, top_k=9, **kw)
    return [
        [(result.node.id, result.score) for result in retriever.retrieve(query)]
        for query in QUERIES
    ]


@pytest.fixture(autouse=True)
def kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save every change when the index is closed."""
    monkeypatch.setattr(synced_index, "_WORTH_SAVING", 0)


class Counted(TextAnalyzer):
    """An analyzer that counts its texts in a class attribute."""

    texts = 0

    def indexed(self, text: str, runs: list[str] | None = None) -> tuple[list[str], int]:
        Counted.texts += 1
        return super().indexed(text, runs)


@pytest.fixture
def counted() -> Bm25:
    Counted.texts = 0
    return Bm25(analyzer=Counted())


SOME = [
    Document("长江是中国最长的河\n茶是一种饮料", {"day": datetime(2024, 5, 1)}, id="一"),
    Document("green tea\na\nblack tea, 红茶", {"tags": ["drink", ("b", 1)]}, id="\ud800"),
    Document("江\n\ud800x y\n", id="3"),
]

LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["长江", "茶是饮料", "green tea", "a", "江", "红茶 tea", "\ud800x", "...", ""]
        ),
        st.text("长江茶是ab tea\ud800", max_size=8),
    ),
    max_size=5,
)
IDS = st.sampled_from("1234") | st.just("\udfff")
DATA = st.sampled_from([None, {"day": datetime(2024, 5, 1)}, {"tags": ["a", "b"]}, {"n": 1}])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), IDS, LINES, DATA),
        st.tuples(st.just("add"), IDS, LINES, DATA),
        st.tuples(st.just("remove"), IDS),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("query")),
    ),
    max_size=12,
)


def run(steps: list[tuple]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        documents: dict[str, Document] = {}
        graph = new_graph(folder)
        for what, *step in [*steps, ("reopen",), ("query",), ("reopen",), ("query",)]:
            if what == "add":
                i, lines, data = step
                documents[i] = Document("\n".join(lines), data, id=i)
                graph.add(documents[i])
            elif what == "remove" and documents.pop(step[0], None):
                graph.remove(step[0])
            elif what == "reopen":
                reopen(graph)
            elif what == "query":
                fresh = new_graph(None, documents.values())
                for kw in ({}, {"filters": {"tags": "a"}}, {"similarity": OTHER}):
                    assert answers(graph, **kw) == answers(fresh, **kw)
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
@settings(max_examples=amount(20, 60))
@given(STEPS)
def test_index_after_any_changes_equals_new_index(steps) -> None:
    run(steps)


def test_loaded_index_does_not_analyze_texts_again(tmp_path: Path, counted: Bm25) -> None:
    graph = new_graph(tmp_path, SOME)
    before = answers(graph, counted)
    made = Counted.texts
    reopen(graph, counted)
    assert answers(graph, counted) == before == answers(new_graph(None, SOME))
    assert Counted.texts == made
    graph.add(Document("茶", id="new"))
    assert answers(graph, counted) == answers(new_graph(None, [*SOME, Document("茶", id="new")]))
    assert Counted.texts == made + 1


def the_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("part", [0, 3, 9, 15, 19])
@pytest.mark.parametrize("cut", [False, True])
def test_damaged_index_file_is_rebuilt(tmp_path: Path, part: int, cut: bool) -> None:
    graph = new_graph(tmp_path, SOME)
    before = answers(graph)
    reopen(graph)
    path = the_file(tmp_path)
    data = bytearray(path.read_bytes())
    at = len(data) * part // 20
    if cut:
        del data[at:]
    else:
        data[at : at + 3] = bytes(255 - byte for byte in data[at : at + 3])
    path.write_bytes(data)
    assert answers(graph) == before
    reopen(graph)
    assert answers(graph) == before


def test_damage_is_found_when_part_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A search checks the parts of the file that it reads. The others stay unread."""
    words = [f"word{number}" for number in range(20_000)]
    documents = [Document(f"tea {word}", id=f"id of {word}") for word in words]
    graph = new_graph(tmp_path, documents)
    retriever = Retriever(graph, "ROOT", BM25, top_k=1)
    first, last = "word3", "word19990"
    right = [retriever(query)[0].node.id for query in (first, last)]
    reopen(graph, group="ROOT")
    path = the_file(tmp_path)
    content = path.read_bytes()
    damaged = f"id of {last}".encode()
    path.write_bytes(content.replace(damaged, b"xx" + damaged[2:], 1))
    graph.close()
    assert retriever(first)[0].node.id == right[0]
    assert not caplog.records
    assert retriever(last)[0].node.id == right[1]
    assert "does not fit and is rebuilt: the array 'ids' has invalid values" in caplog.text
    caplog.clear()
    assert [retriever(query)[0].node.id for query in (first, last)] == right
    assert not caplog.records


@pytest.mark.parametrize(
    "change", [{"revision": 10**12}, {"kind": "other"}, {"analysis": [0, "", ""]}]
)
def test_index_file_with_other_header_is_rebuilt(tmp_path: Path, change: dict, counted) -> None:
    graph = new_graph(tmp_path, SOME)
    before = answers(graph, counted)
    made = Counted.texts
    reopen(graph, counted)
    header, arrays = load_arrays(the_file(tmp_path)) or ({}, {})
    save_arrays(the_file(tmp_path), {**header, **change}, arrays)
    assert answers(graph, counted) == before
    assert Counted.texts == 2 * made


def test_unwritable_folder_keeps_queries_working(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way of a folder")
    graph = new_graph(tmp_path / "file", SOME)
    for _ in range(2):
        assert answers(graph) == answers(new_graph(None, SOME))
        reopen(graph)
    assert "was not written" in caplog.text


def test_analysis_version_matches_terms() -> None:
    """On failure, increase ``text_index._ANALYSIS`` and update the terms."""
    text = (
        "The Rivers' banks, C++ and C# naïve ＦＵＬＬ 长江流域。こんにちは 한국어 Привет नमस्ते x_1 "
        "getUserName น้ำชา ကောင်း كتابان ספרים βιβλία հայերեն"
    )
    german, vietnamese = "Die Flüsse sind in der Karte", "Con sông và biển của người"
    terms = [*TextAnalyzer()(text), *TextAnalyzer().query(text + "是什么？")]
    musique = "MuSiQue 上，MuSiQue 的召回率；MuSiQue"
    lengths = [TextAnalyzer().indexed(text)[1]]
    for other in (german, vietnamese, musique):
        of_text, length = TextAnalyzer().indexed(other)
        terms += of_text
        lengths.append(length)
    assert lengths == [43, 5, 6, 17]
    terms = "\n".join(terms)
    digest = hashlib.sha256(terms.encode()).hexdigest()[:16]
    assert (text_index._ANALYSIS, digest) == (9, "27c86ff2dd1d1b82")


# The base class


@pytest.mark.parametrize(
    "similarity", [Bm25(), Cosine(), Exact(), CustomSimilarity(lambda query, node: 1.0, "one")]
)
def test_sync_without_lock_raises(similarity: Any) -> None:
    graph = NodeGraph(embed=lambda texts: [[len(text), 1.0] for text in texts], progress=False)
    graph.add("Green tea.")
    index = similarity.open(graph, "ROOT")
    for _ in range(2):  # the second time, the index is current
        with pytest.raises(RuntimeError, match="without the graph's lock; search"):
            index.sync()
        index.ready()
        with index.current():
            index.sync()
