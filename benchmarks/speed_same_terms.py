"""How long a query takes where every system has the same terms: for ``speed.py``.

The terms are those of nodekin's analysis, of texts and of queries. The peers get the query's terms
ready and return numbers; nodekin's calls analyse the query, which is a new one each time, and
return nodes, and so a second
column adds the time of the same analysis to the peers' times, and to those of nodekin's index
alone. One query at a time, by turns: each round asks every system every query, of which the least
CPU time of all threads counts, so that other programs on the machine matter less.
"""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Search = Callable[[int], Any]
"""Searches for the query of a number."""

ROUNDS = 7

INVOKE, RETRIEVE = ", LangChain's invoke", ", LlamaIndex's retrieve"

EMPTY = "the framework alone"

STORED_UP_TO = 100_000  # passages that are searched in a file, too


class System(NamedTuple):
    """One system: its name, its search, and whether that analyses the query."""

    name: str
    search: Search
    analyses: bool = False


class Systems:
    """Build every system on the same terms.

    Args:
        texts: The texts.
        queries: The queries.
        top_k: How many results.
    """

    def __init__(self, texts: Sequence[str], queries: Sequence[str], top_k: int) -> None:
        from nodekin.retrievers import Retriever

        self.texts, self.queries, self.top_k = texts, queries, top_k
        self.graph = self._graph(None)
        self.retriever = Retriever(self.graph, "passage", "bm25", top_k=top_k)
        self.retriever.retrieve(queries[0])
        similarity: Any = self.retriever.similarity
        self.similarity = similarity
        self.index = similarity.open(self.graph, "passage")
        analyze = getattr(similarity.analyzer, "indexed", similarity.analyzer)
        self.terms = [list(analyze(text)) for text in texts]
        self.prepared = [similarity.prepare(query, [self.index]) for query in queries]
        self.query_terms = [list(prepared.weights) for prepared in self.prepared]
        self.text = ""  # of the query that is searched for
        self._count = itertools.count()

    def ask(self, number: int) -> None:
        """Set the text of a query, never twice the same: an index remembers the last queries."""
        blanks = f"{next(self._count):b}".replace("0", " ").replace("1", "\n")
        self.text = self.queries[number] + blanks

    def _graph(self, store: Path | None) -> Any:
        from nodekin.nodegraph import Document, NodeGraph

        graph = NodeGraph(store=store, progress=False)
        graph.create_node_group("passage", str.splitlines)
        step = range(0, len(self.texts), 1000)
        graph.add([Document("\n".join(self.texts[i : i + 1000]), id=str(i)) for i in step])
        return graph

    def analysis(self, number: int) -> Any:
        """Analyse a query as nodekin does."""
        analyzer, index = self.similarity.analyzer, self.index
        return analyzer.weigh(self.text, index.frequency, index.size)

    def all(self, folder: Path) -> Iterator[System]:
        """Yield each system; those that are not installed are named.

        The first is nodekin with NumPy; with numba it is called nodekin[fast].
        """
        from nodekin.retrievers import Retriever
        from nodekin.retrievers.filters import Filter
        from nodekin.retrievers.indexes import text_index
        from nodekin.retrievers.indexes.accelerator import accelerator, load

        compiled = load()
        text_index.WORTH_LOADING = 1 << 62  # what is loaded is set here

        def nodekin(retrieve: Callable[[str], Any], loops: Any) -> Search:
            def search(number: int) -> Any:
                accelerator.loaded = loops
                return retrieve(self.text)

            return search

        def alone(loops: Any) -> Search:
            def search(number: int) -> Any:
                accelerator.loaded = loops
                return self.index.search(self.prepared[number], self.top_k, Filter())

            return search

        native = self.retriever.retrieve
        calls = [("", native), *self._adapters()]
        if len(self.texts) <= STORED_UP_TO:
            graph = self._graph(folder / "graph.db")
            stored = Retriever(graph, "passage", "bm25", top_k=self.top_k)
            stored.retrieve(self.queries[0])
            calls.insert(1, (" in a file", stored.retrieve))
        yield System("nodekin", nodekin(native, None), True)
        if compiled is not None:
            yield System("nodekin[fast]", nodekin(native, compiled), True)

            def again(number: int) -> Any:
                accelerator.loaded = compiled
                return native(self.queries[number])

            yield System("nodekin[fast], a query that it had", again, True)
        for name, retrieve in calls[1:]:
            yield System(f"nodekin{name}", nodekin(retrieve, None), True)
            if compiled is not None:
                yield System(f"nodekin[fast]{name}", nodekin(retrieve, compiled), True)
        yield System("nodekin's index alone", alone(None))
        if compiled is not None:
            yield System("nodekin[fast]'s index alone", alone(compiled))
        for name, make in (
            ("bm25s (numpy)", lambda: self._bm25s("numpy")),
            ("bm25s (numba)", lambda: self._bm25s("numba")),
            ("tantivy", self._tantivy),
        ):
            try:
                yield System(name, make())
            except ImportError as error:
                print(f"{name}: not installed ({error.name})")
        yield from self.empty_adapters()

    def _adapters(self) -> Iterator[tuple[str, Callable[[str], Any]]]:
        """Yield the calls of the frameworks that are installed."""
        try:
            from nodekin.adapters.langchain import NodeGraphRetriever as ForLangChain

            yield INVOKE, ForLangChain(retriever=self.retriever).invoke
        except ImportError as error:
            print(f"LangChain's invoke: not installed ({error.name})")
        try:
            from nodekin.adapters.llama_index import NodeGraphRetriever as ForLlamaIndex

            yield RETRIEVE, ForLlamaIndex(self.retriever).retrieve
        except ImportError as error:
            print(f"LlamaIndex's retrieve: not installed ({error.name})")

    def empty_adapters(self) -> Iterator[System]:
        """Yield the frameworks' own base classes around a retriever that has its results ready."""
        query = self.queries[0]
        try:
            from langchain_core.retrievers import BaseRetriever

            from nodekin.adapters.langchain import NodeGraphRetriever as ForLangChain

            class ReadyDocuments(BaseRetriever):
                documents: list[Any]

                def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
                    return self.documents

            made = ForLangChain(retriever=self.retriever).invoke(query)
            ready = ReadyDocuments(documents=made)
            yield System(EMPTY + INVOKE, lambda number: ready.invoke(self.text))
        except ImportError:
            pass
        try:
            from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexBase

            from nodekin.adapters.llama_index import NodeGraphRetriever as ForLlamaIndex

            nodes = ForLlamaIndex(self.retriever).retrieve(query)

            class ReadyNodes(LlamaIndexBase):
                def _retrieve(self, query_bundle: Any) -> list[Any]:
                    return [*nodes]

            of_llama_index = ReadyNodes()
            yield System(EMPTY + RETRIEVE, lambda number: of_llama_index.retrieve(self.text))
        except ImportError:
            pass

    def _bm25s(self, backend: str) -> Search:
        import bm25s

        if backend == "numba":
            import numba  # noqa: F401

        index = bm25s.BM25(method="lucene", backend=backend)
        index.index(self.terms, show_progress=False)

        def search(number: int) -> Any:
            terms = [self.query_terms[number]]
            return index.retrieve(terms, k=self.top_k, show_progress=False)

        return search

    def _tantivy(self) -> Search:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
        schema = builder.build()
        index = tantivy.Index(schema)
        writer = index.writer(num_threads=1)
        for terms in self.terms:
            writer.add_document(tantivy.Document(text=" ".join(terms)))
        writer.commit()
        index.reload()
        searcher = index.searcher()

        def search(number: int) -> Any:
            terms = [
                (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term))
                for term in self.query_terms[number]
            ]
            return searcher.search(tantivy.Query.boolean_query(terms), self.top_k).hits

        return search


def least_times(
    searches: Sequence[Search], ask: Callable[[int], None], count: int
) -> list[list[float]]:
    """Return the milliseconds of each search for each query, the least of the rounds.

    Args:
        searches: The searches.
        ask: Is called with the number of the query before each search.
        count: How many queries there are.
    """
    best = [[float("inf")] * count for _ in searches]
    for _ in range(ROUNDS):
        for search, times in zip(searches, best, strict=True):
            for number in range(count):
                ask(number)
                began = time.process_time()
                search(number)
                times[number] = min(times[number], 1000 * (time.process_time() - began))
    return best


def face_rows(times: Mapping[str, float]) -> list[list[str]]:
    """Return what a framework's call takes beside nodekin's own, and beside it and the framework.

    Args:
        times: The milliseconds of each system, by its name.
    """
    rows = []
    for face in (INVOKE, RETRIEVE):
        for own in ("nodekin", "nodekin[fast]"):
            if own + face in times:
                whole, native, empty = times[own + face], times[own], times[EMPTY + face]
                ratios = (whole / native, whole / (native + empty))
                rows.append([own + face, f"{empty:.3f}", *(f"{ratio:.2f}" for ratio in ratios)])
    return rows


FACES = ["call", "framework alone, CPU ms", "/ nodekin", "/ (nodekin + framework alone)"]


def same_terms(
    texts: Sequence[str], queries: Sequence[str], top_k: int
) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """Measure all systems; return the header and the rows of a table, and those of ``FACES``.

    Times are medians over the queries, in milliseconds. The ratios say what nodekin and
    nodekin[fast] take beside each system where that analyses the query, too, and where it gets
    the terms ready (in brackets): below 1 nodekin is quicker.
    """
    with tempfile.TemporaryDirectory() as folder:
        systems = Systems(texts, queries, top_k)
        rows = list(systems.all(Path(folder)))
        *times, analysis = least_times(
            [*(system.search for system in rows), systems.analysis], systems.ask, len(queries)
        )
    own = statistics.median(times[0])
    fast = statistics.median(times[1]) if rows[1].name == "nodekin[fast]" else math.nan
    table = []
    for system, each in zip(rows, times, strict=True):
        if system.name.startswith(EMPTY):
            continue
        alone = statistics.median(each)
        extra = [0.0 if system.analyses else one for one in analysis]
        whole = statistics.median(map(sum, zip(each, extra, strict=True)))
        ratios = [
            f"{mine / whole:.2f}" + ("" if system.analyses else f" ({mine / alone:.2f})")
            for mine in (own, fast)
        ]
        means = statistics.fmean(each)
        table.append([system.name, f"{alone:.3f}", f"{whole:.3f}", f"{means:.3f}", *ratios])
    header = ["system", "CPU ms", "with the query's analysis", "mean, without"]
    medians = {
        system.name: statistics.median(each) for system, each in zip(rows, times, strict=True)
    }
    return [*header, "nodekin / it", "nodekin[fast] / it"], table, face_rows(medians)
