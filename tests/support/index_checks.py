"""Compare the searches of an index or a retriever with the searches of a new graph."""

import asyncio
import logging
import math
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.nodegraph.concurrency import with_deferred_work
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.filters import Filters, parse_filters
from nodekin.retrievers.indexes.vector_index import VectorIndex
from nodekin.retrievers.protocols import RetrieverProtocol
from nodekin.retrievers.similarities.registry import DEFAULT, Cosine

TEXTS = (
    "green tea\nblack tea with milk\nriver water",
    "the river bank\nthe river bed\ntea",
    "money in the bank\n长江是中国最长的河流",
    "green tea\n茶是一种饮品\nriver",
)

QUERIES = ("tea", "green tea", "river bank", "长江 river", "milk and money", "xyz")

COLORS = ("red", "blue", None)

FILTERS: tuple[Filters | None, ...] = (
    None,
    {"color": "red"},
    {"color": ["red", "blue"]},
    {"or": [{"color": {"like": "R%"}}, {"document.id": "d1"}]},
    {"not": {"color": {"exists": True}}},
    {"color": {"ne": "red"}, "document.id": {"gte": "d1"}},
)

WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"filters": {"color": "red"}},
    {"top_k": 2, "target": "ROOT"},
    {"target": "ROOT", "lift": "sum"},
)

# number of copies of each text, so that the index is large enough to be saved in a file
COPIES = 30

Rows = list[tuple[str, float]]  # pairs of ids and scores


def check_index(
    similarity: Any = "bm25",
    *,
    index: Any = DEFAULT,
    graph_options: Callable[[], Mapping[str, Any]] = dict,
    steps: int = 8,
) -> None:
    """Check the rankings, filters, updates, search texts, files and thread safety of an index.

    Args:
        similarity: The similarity, as for ``Retriever``.
        index: The index, as for ``Retriever``.
        graph_options: A function that returns additional arguments of ``NodeGraph`` for each graph
            that is checked.
        steps: The number of random changes to the corpus after which searches are compared.
    """

    def search(graph: NodeGraph, **options: Any) -> list[Rows]:
        options = {"top_k": 10_000, **options}
        retriever = Retriever(graph, "line", similarity, index=index, **options)
        return [rows(retriever.retrieve(query)) for query in QUERIES]

    def compare(graph: NodeGraph, new: NodeGraph, what: str) -> None:
        for options in WAYS:
            check_same(search(graph, **options), search(new, **options), f"{what}, {options}")

    check_ranking(new_graph(documents_of(), graph_options()), similarity, index)

    # Random changes
    rng = random.Random(7)
    documents = documents_of()
    graph = new_graph(documents, graph_options())
    compare(graph, new_graph(documents), "after the first add")
    for _ in range(steps):
        node_id = f"d{rng.randrange(len(TEXTS) + 2)}"
        if node_id in documents and rng.random() < 0.4:
            del documents[node_id]
            graph.remove(node_id)
        else:
            lines = rng.choice(TEXTS).splitlines()
            text = "\n".join(rng.sample(lines, rng.randint(1, len(lines))))
            documents[node_id] = document(node_id, text, rng.choice(COLORS))
            graph.add(documents[node_id])
        if rng.random() < 0.7:  # otherwise, the index receives several changes at the same time
            compare(graph, new_graph(documents), f"after a change of {node_id}")
    for node_id in documents:
        graph.remove(node_id)
    compare(graph, new_graph({}), "after all documents were removed")
    graph.add(last := document("last", TEXTS[0]))
    compare(graph, new_graph({"last": last}), "after one document was added again")

    # Search texts
    documents = documents_of()
    graph = new_graph(documents, graph_options())
    for search_text in (None, lambda node: f"{node.text} {node.text}", "color", None):
        graph.create_node_group("line", str.splitlines, search_text=search_text, replace=True)
        compare(graph, new_graph(documents, search_text=search_text), f"with {search_text!r}")

    # Reopening the graph, also with damaged index files
    with TemporaryDirectory() as folder:
        options = graph_options() or {"store": Path(folder, "graph.db")}
        documents = documents_of(TEXTS * COPIES)
        with new_graph(documents, options) as graph:
            before = search(graph)
        for damaged in (False, True, False):
            with new_graph({}, options) as graph:
                if damaged:
                    damage(graph.reader.index_file("any"))
                    logging.disable(logging.WARNING)
                check_same(search(graph), before, f"after reopening, {damaged=}")
                logging.disable(logging.NOTSET)
                documents["d0"] = document("d0", TEXTS[-1])
                graph.add(documents["d0"])
                compare(graph, new_graph(documents), f"after reopening and a change, {damaged=}")
                before = search(graph)

    check_threads(new_graph(documents_of(), graph_options()), search)


def check_retriever(
    make: Callable[[NodeGraph], RetrieverProtocol],
    *,
    graph_options: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Check the results, ``top_k``, filters, ``aretrieve`` and updates of a retriever."""
    documents = documents_of()
    graph = new_graph(documents, graph_options())
    retriever = make(graph)
    documents["d0"] = document("d0", TEXTS[-1], "red")
    graph.add(documents["d0"])
    graph.remove("d1")
    del documents["d1"]
    new = make(new_graph(documents))
    for query in QUERIES:
        results = retriever.retrieve(query)
        assert all(isinstance(r, ScoredNode) for r in results), query
        check_rows(rows(results), query)
        for k in (1, 2):
            assert len(retriever.retrieve(query, top_k=k)) <= k, query
        for result in retriever.retrieve(query, filters={"color": "red"}):
            assert result.node.metadata.get("color") == "red", query
        with ThreadPoolExecutor(1) as thread:  # this thread may already run an event loop
            awaited = thread.submit(asyncio.run, retriever.aretrieve(query)).result()
        check_same([rows(awaited)], [rows(results)], f"aretrieve({query!r})")
        check_same([rows(results)], [rows(new.retrieve(query))], f"{query!r} after changes")


def document(node_id: str, text: str, color: str | None = None) -> Document:
    return Document(text, {"color": color} if color else None, id=node_id)


def documents_of(texts: Sequence[str] = TEXTS) -> dict[str, Document]:
    """Return a dictionary of documents with the given texts, keyed by id."""
    ids = [f"d{number}" for number in range(len(texts))]
    return {
        i: document(i, text, COLORS[n % 3])
        for n, (i, text) in enumerate(zip(ids, texts, strict=True))
    }


def new_graph(
    documents: Mapping[str, Document],
    options: Mapping[str, Any] | None = None,
    search_text: Any = None,
) -> NodeGraph:
    model = Embedder(count_letters, "letters")
    graph = NodeGraph(embed=model, progress=False, **(options or {}))
    graph.create_node_group("line", str.splitlines, search_text=search_text)
    graph.add([*documents.values()])
    return graph


def count_letters(texts: Sequence[str]) -> list[list[float]]:
    """Return the number of occurrences of each letter, and a number that is never 0."""
    return [[*(text.count(letter) for letter in "aeiounrtbmk河茶"), 0.25] for text in texts]


def check_ranking(graph: NodeGraph, similarity: Any, index: Any) -> None:
    """Check the order of results, ties, ``top_k``, filters and ``batch``."""
    retriever = Retriever(graph, "line", similarity, index=index, top_k=10_000)
    nodes = {node.id: node for node in graph.nodes("line")}
    position = {node_id: at for at, node_id in enumerate(nodes)}
    rankings = [rows(retriever.retrieve(query)) for query in QUERIES]
    assert max(map(len, rankings)) > 1, "the queries match nothing"
    check_same([rows(results) for results in retriever.batch(QUERIES)], rankings, "batch")
    for query, ranking in zip(QUERIES, rankings, strict=True):
        check_rows(ranking, query, position)
        for filters in FILTERS:
            filter = parse_filters(filters)
            expected = [row for row in ranking if filter.matches(nodes[row[0]])]
            for k in (1, 2, 3, len(nodes)):
                found = rows(retriever.retrieve(query, top_k=k, filters=filters))
                check_same([found], [expected[:k]], f"{query!r}, top_k={k}, filters={filters!r}")


def check_threads(graph: NodeGraph, search: Callable[[NodeGraph], list[Rows]]) -> None:
    """Check that each search during updates returns results of a single state."""
    more = document("more", TEXTS[0])
    states = [search(graph), search(new_graph({**documents_of(), "more": more}))]
    finished = threading.Event()

    def write() -> None:
        try:
            for _ in range(12):
                graph.add(more)
                search(graph)
                graph.remove("more")
        finally:
            finished.set()

    def read() -> None:
        while not finished.is_set():
            for at, found in enumerate(search(graph)):
                assert any(same(found, state[at]) for state in states), (QUERIES[at], found)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work) for work in (write, read, read, read)]:
            future.result()


def rows(results: Sequence[ScoredNode]) -> Rows:
    return [(result.node.id, result.score) for result in results]


def check_rows(found: Rows, where: str, position: Mapping[str, int] | None = None) -> None:
    """Check that results are unique and sorted by score, and that ties are in document order."""
    assert len(dict(found)) == len(found), f"{where}: a node occurs twice in {found[:9]}"
    assert all(isinstance(s, float) and math.isfinite(s) for _, s in found), (where, found[:9])
    for (first, high), (second, low) in pairwise(found):
        assert high >= low, f"{where}: not best first: {found[:9]}"
        if position is not None and high == low:
            assert position[first] < position[second], f"{where}: ties out of order: {found[:9]}"


def check_same(found: Sequence[Rows], expected: Sequence[Rows], where: str) -> None:
    for at, (some, others) in enumerate(zip(found, expected, strict=True)):
        assert same(some, others), f"{where}, query {at}: {some[:9]} instead of {others[:9]}"


def same(found: Rows, expected: Rows) -> bool:
    return len(found) == len(expected) and all(
        row[0] == other[0] and math.isclose(row[1], other[1], rel_tol=1e-6, abs_tol=1e-9)
        for row, other in zip(found, expected, strict=True)
    )


def damage(file: Path | None) -> None:
    """Overwrite the middle of each index file of a graph."""
    for path in file.parent.iterdir() if file is not None and file.parent.is_dir() else ():
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + b"damaged" + data[middle + 7 :])


def check_vector_index(graph: NodeGraph, group: str, key: str = "default") -> None:
    """Check that the shared vector index of a group returns the same results as a new index."""
    shared = Cosine().open(graph, group, key)
    new = VectorIndex(graph, group, key)
    queries = graph.embeddings.query_vectors(QUERIES, key)
    everything = parse_filters(None)
    for index in (shared, new):
        index.ready()

    def found(index: Any) -> list[Rows]:
        with graph.reader.reading(*graph.reader.searched_groups(group)):
            index.sync()
            snapshot = index.snapshot(queries, everything)
        hits = snapshot.search(range(len(queries)), None)
        return [list(zip(each.ids, each.scores, strict=True)) for each in hits]

    of_shared = with_deferred_work(lambda: found(shared))
    of_new = with_deferred_work(lambda: found(new))
    nodes = {node.id for node in graph.nodes(group)}
    for at, query in enumerate(QUERIES):
        check_rows(of_shared[at], query)
        assert dict(of_shared[at]).keys() == nodes, f"wrong nodes for {query!r}"
        difference = {
            node_id: (score, dict(of_new[at])[node_id])
            for node_id, score in of_shared[at]
            if not math.isclose(score, dict(of_new[at])[node_id], rel_tol=1e-5, abs_tol=1e-6)
        }
        assert not difference, f"other scores for {query!r}: {difference}"
