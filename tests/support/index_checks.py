"""Searches with an index or a retriever, compared with searches of a new graph."""

import asyncio
import logging
import math
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.filters import Filters, parse_filters
from nodekin.retrievers.protocols import RetrieverProtocol
from nodekin.retrievers.similarities.registry import DEFAULT

TEXTS = (
    "green tea\nblack tea with milk\nriver water",
    "the river bank\nthe river bed\ntea",
    "money in the bank\n长江是中国最长的河流",
    "green tea\n茶是一种饮品\nriver",
)

QUERIES = ("tea", "green tea", "river bank", "长江 river", "milk and money", "xyz")

_COLORS = ("red", "blue", None)

_STEPS = 25  # random changes of a corpus, each followed by a comparison

_COPIES = 30  # of the texts, where an index has to be worth storing

_TOGGLES = 20  # changes during which other threads search

_FILTERS: tuple[Filters | None, ...] = (
    None,
    {"color": "red"},
    {"color": ["red", "blue"]},
    {"or": [{"color": {"like": "R%"}}, {"document.id": "d1"}]},
    {"not": {"color": {"exists": True}}},
    {"color": {"ne": "red"}, "document.id": {"gte": "d1"}},
)

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})

Row = tuple[str, float]  # id and score


def check_index(
    similarity: Any = "bm25",
    *,
    index: Any = DEFAULT,
    embed: Any = None,
    texts: Sequence[str] = TEXTS,
    queries: Sequence[str] = QUERIES,
    graph_options: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Check rankings, filters, changes, search texts, ``refresh``, reopening and threads.

    Args:
        similarity: As for ``Retriever``.
        index: As for ``Retriever``.
        embed: The embedding model. Defaults to a model that counts letters.
        texts: At least three texts of some lines, a few of which are equal.
        queries: Queries that match some of the lines.
        graph_options: Returns more arguments of ``NodeGraph``, for each graph that is checked.
    """
    model = embed or Embedder(_count_letters, "letters")
    check = _IndexCheck(similarity, index, model, tuple(texts), tuple(queries), graph_options)
    check.check_ranking()
    check.check_history()
    check.check_search_text()
    check.check_refresh()
    check.check_reopening()
    check.check_threads()


def check_retriever(
    make: Callable[[NodeGraph], RetrieverProtocol],
    *,
    embed: Any = None,
    texts: Sequence[str] = TEXTS,
    queries: Sequence[str] = QUERIES,
    graph_options: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Check results, ``top_k``, filters, ``aretrieve``, and results after changes."""
    corpus = _Corpus(texts, embed or Embedder(_count_letters, "letters"))
    graph = corpus.graph(graph_options())
    retriever = make(graph)
    corpus.put("d0", texts[-1], "red", graph)
    corpus.remove("d1", graph)
    for query in queries:
        results = retriever.retrieve(query)
        assert all(isinstance(r, ScoredNode) for r in results), query
        _check_rows(_rows(results), f"{query!r}: ")
        for k in (1, 2):
            count = len(retriever.retrieve(query, top_k=k))
            assert count <= k, f"{query!r}: top_k={k} returns {count} results"
        for result in retriever.retrieve(query, filters={"color": "red"}):
            assert result.node.metadata.get("color") == "red", query
        with ThreadPoolExecutor(1) as thread:  # also where an event loop runs in this one
            awaited = thread.submit(asyncio.run, retriever.aretrieve(query)).result()
        _check_same(_rows(awaited), _rows(results), f"{query!r}: aretrieve, beside retrieve")
        new = make(corpus.graph()).retrieve(query)
        _check_same(_rows(results), _rows(new), f"{query!r}: after changes, beside a new graph")


def _twice(node: Node) -> str:
    """Return a search text that changes the scores of most similarities."""
    return f"{node.text} {node.text}"


class _Corpus:
    """Documents by id, and graphs of them."""

    def __init__(self, texts: Iterable[str], embed: Any) -> None:
        self.documents: dict[str, Document] = {}
        self.embed = embed
        for number, text in enumerate(texts):
            self.put(f"d{number}", text, _COLORS[number % 3])

    def put(self, id: str, text: str, color: str | None, graph: NodeGraph | None = None) -> None:
        document = self.documents[id] = Document(text, {"color": color} if color else None, id=id)
        if graph is not None:
            graph.add(document)

    def remove(self, id: str, graph: NodeGraph) -> None:
        del self.documents[id]
        graph.remove(id)

    def graph(self, options: Mapping[str, Any] = _NO_OPTIONS, search_text: Any = None) -> NodeGraph:
        graph = NodeGraph(embed=self.embed, progress=False, **options)
        graph.create_node_group("line", str.splitlines, search_text=search_text)
        graph.add([*self.documents.values()])
        return graph


@dataclass(frozen=True)
class _IndexCheck:
    """The checks of one similarity and index."""

    similarity: Any
    index: Any
    embed: Any
    texts: tuple[str, ...]
    queries: tuple[str, ...]
    graph_options: Callable[[], Mapping[str, Any]]

    def checked_graph(self, corpus: _Corpus) -> NodeGraph:
        return corpus.graph(self.graph_options())

    def retriever(self, graph: NodeGraph, **options: Any) -> Retriever:
        options = {"top_k": 10_000, **options}
        return Retriever(graph, "line", self.similarity, index=self.index, **options)

    def rankings(self, graph: NodeGraph, **options: Any) -> list[list[Row]]:
        retriever = self.retriever(graph, **options)
        return [_retrieve(retriever, query) for query in self.queries]

    def check_ranking(self) -> None:
        graph = self.checked_graph(_Corpus(self.texts, self.embed))
        nodes = {node.id: node for node in graph.nodes("line")}
        position = {node_id: at for at, node_id in enumerate(nodes)}
        rankings = self.rankings(graph)
        assert max(map(len, rankings)) > 1, "the queries match nothing"
        many = self.retriever(graph).batch(self.queries)
        for query, ranking, results in zip(self.queries, rankings, many, strict=True):
            _check_rows(ranking, f"{query!r}: ", position)
            _check_same(_rows(results), ranking, f"{query!r}: many queries at once, beside one")
            for filters in _FILTERS:
                filter = parse_filters(filters)
                expected = [row for row in ranking if filter.matches(nodes[row[0]])]
                for k in (1, 2, 3, len(nodes)):
                    options = f"top_k={k}, filters={filters!r}"
                    results = self.retriever(graph).retrieve(query, top_k=k, filters=filters)
                    _check_same(_rows(results), expected[:k], f"{query!r}: {options}")

    def check_history(self) -> None:
        corpus, rng = _Corpus(self.texts, self.embed), random.Random(7)
        graph = self.checked_graph(corpus)
        self.compare(graph, corpus.graph(), "the first documents were added")
        for _ in range(_STEPS):
            number = rng.randrange(len(self.texts) + 2)
            node_id, text, color = f"d{number}", rng.choice(self.texts), rng.choice(_COLORS)
            if node_id in corpus.documents and rng.random() < 0.4:
                corpus.remove(node_id, graph)
                what = "a document was removed"
            else:
                lines = rng.sample(text.splitlines(), rng.randint(1, len(text.splitlines())))
                corpus.put(node_id, "\n".join(lines), color, graph)
                what = "a document was added or changed"
            if rng.random() < 0.7:  # else the index gets several changes together
                self.compare(graph, corpus.graph(), what)
        for node_id in [*corpus.documents]:
            corpus.remove(node_id, graph)
        self.compare(graph, corpus.graph(), "all documents were removed")
        corpus.put("last", self.texts[0], None, graph)
        self.compare(graph, corpus.graph(), "all were removed and one was added")

    def check_search_text(self) -> None:
        corpus = _Corpus(self.texts, self.embed)
        graph = self.checked_graph(corpus)
        self.rankings(graph)
        for search_text in (_twice, "color", None):
            graph.create_node_group("line", str.splitlines, search_text=search_text, replace=True)
            new = corpus.graph(search_text=search_text)
            self.compare(graph, new, f"search_text={search_text!r} was declared")

    def check_refresh(self) -> None:
        with TemporaryDirectory() as folder:
            files = [Path(folder, f"{number}.txt") for number in range(len(self.texts))]
            for file, text in zip(files, self.texts, strict=True):
                file.write_text(text, encoding="utf-8")

            def read(options: Mapping[str, Any] = _NO_OPTIONS) -> NodeGraph:
                graph = NodeGraph(folder, embed=self.embed, progress=False, **options)
                graph.create_node_group("line", str.splitlines)
                return graph

            with read(self.graph_options()) as graph:
                self.rankings(graph)
                files[0].unlink()
                files[1].write_text(self.texts[-1] + "\n" + self.texts[0], encoding="utf-8")
                Path(folder, "new.txt").write_text(self.texts[0], encoding="utf-8")
                graph.refresh()
                with read() as new:
                    self.compare(graph, new, "refresh", texts=True)

    def check_reopening(self) -> None:
        corpus = _Corpus(self.texts * _COPIES, self.embed)
        with TemporaryDirectory() as folder:
            options = self.graph_options() or {"store": Path(folder, "graph.db")}
            with corpus.graph(options) as graph:
                before = self.rankings(graph)
            for damaged in (False, True, False):
                what = "the index's files were damaged" if damaged else "the graph was reopened"
                with NodeGraph(embed=self.embed, progress=False, **options) as graph:
                    graph.create_node_group("line", str.splitlines)
                    if damaged:
                        _damage(graph.reader.index_file("any"))
                        with _without_warnings():
                            self.rankings(graph)
                    self.compare_queries(self.rankings(graph), before, f"after {what}")
                    corpus.put("d0", self.texts[-1], None, graph)
                    self.compare(graph, corpus.graph(), f"{what} and a document was changed")
                    before = self.rankings(graph)

    def check_threads(self) -> None:
        corpus = _Corpus(self.texts, self.embed)
        graph = self.checked_graph(corpus)
        states = [self.rankings(graph)]
        corpus.put("more", self.texts[0], None)
        states.append(self.rankings(corpus.graph()))
        finished = threading.Event()
        started = threading.Barrier(4)

        def write() -> None:
            started.wait()
            try:
                for _ in range(_TOGGLES):
                    corpus.put("more", self.texts[0], None, graph)
                    self.rankings(graph)
                    graph.remove("more")
            finally:
                finished.set()

        def read() -> None:
            started.wait()
            retriever = self.retriever(graph)
            while not finished.is_set():
                for at, query in enumerate(self.queries):
                    got = _retrieve(retriever, query)
                    right = any(_same(got, state[at]) for state in states)
                    assert right, f"{query!r}: a search during changes returns {_format(got)}"

        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(write), *[pool.submit(read) for _ in range(3)]]:
                future.result()

    def compare(self, graph: NodeGraph, new: NodeGraph, what: str, texts: bool = False) -> None:
        ways: list[dict[str, Any]] = [
            {},
            {"filters": {"color": "red"}},
            {"top_k": 2, "target": "ROOT"},
            {"target": "ROOT", "lift": "sum"},
        ]
        for options in ways:
            got, expected = self.rankings(graph, **options), self.rankings(new, **options)
            if texts:  # ids of files may differ
                got, expected = _as_texts(got, graph), _as_texts(expected, new)
            where = f"after {what}, beside a new graph {options or ''}"
            self.compare_queries(got, expected, where)

    def compare_queries(
        self, got: Sequence[list[Row]], expected: Sequence[list[Row]], what: str
    ) -> None:
        for query, rows, expected_rows in zip(self.queries, got, expected, strict=True):
            _check_same(rows, expected_rows, f"{query!r}: {what}")


def _retrieve(retriever: Retriever, query: str) -> list[Row]:
    try:
        return _rows(retriever.retrieve(query))
    except LookupError as error:
        raise AssertionError(
            f"{query!r}: the index returns a node that is gone: {error}"
        ) from error


def _rows(results: Iterable[ScoredNode]) -> list[Row]:
    return [(result.node.id, result.score) for result in results]


def _as_texts(rankings: Iterable[list[Row]], graph: NodeGraph) -> list[list[Row]]:
    return [[(graph.node(node_id).text, score) for node_id, score in rows] for rows in rankings]


def _check_rows(rows: Sequence[Row], where: str, position: Mapping[str, int] | None = None) -> None:
    """Check that rows are best first, none twice, and ties in document order."""
    ids = [node_id for node_id, _ in rows]
    assert len(set(ids)) == len(ids), f"{where}a node comes twice in {_format(rows)}"
    for node_id, score in rows:
        usable = isinstance(score, float) and math.isfinite(score)
        assert usable, f"{where}the score of {node_id!r} is {score!r}"
    for (first, high), (second, low) in pairwise(rows):
        assert high >= low, f"{where}results are not best first: {_format(rows)}"
        if position is not None and high == low:
            in_order = position[first] < position[second]
            assert in_order, f"{where}a tie is not in document order: {_format(rows)}"


def _check_same(rows: Sequence[Row], expected: Sequence[Row], where: str) -> None:
    assert _same(rows, expected), f"{where}: {_format(rows)} instead of {_format(expected)}"


def _same(rows: Sequence[Row], expected: Sequence[Row]) -> bool:
    return len(rows) == len(expected) and all(
        row[0] == other[0] and math.isclose(row[1], other[1], rel_tol=1e-6, abs_tol=1e-9)
        for row, other in zip(rows, expected, strict=True)
    )


def _format(rows: Sequence[Row]) -> str:
    text = ", ".join(f"{node_id} {score:.4f}" for node_id, score in rows[:6])
    return f"[{text}{', ...' if len(rows) > 6 else ''}] ({len(rows)} results)"


def _damage(file: Path | None) -> None:
    """Overwrite the middle of all files in the folder of a graph's indexes."""
    for path in file.parent.iterdir() if file is not None and file.parent.is_dir() else ():
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + b"damaged" + data[middle + 7 :])


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Let built-in indexes rebuild a damaged file without a warning."""
    logger = logging.getLogger("nodekin.retrievers.indexes")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _count_letters(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Embed a text as counts of letters, and a number that is never 0."""
    letters = "aeiounrtbmk河茶"
    counts = [[*(text.count(letter) for letter in letters), 0.25] for text in texts]
    return np.array(counts, np.float32)
