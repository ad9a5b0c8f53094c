"""How long a query takes where every system has the same terms: nodekin beside bm25s and tantivy.

The terms are those of nodekin's analysis, of texts and of queries. nodekin's times have the
analysis of the query in them, and everything else that a call does; the peers get the query's
terms ready. All in one process, in memory (and once in a file), one query at a time, by turns:
each round asks every system every query, of which the least CPU time of all threads counts, so
that other programs on the machine matter less.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import arguments, cmrc, show

Search = Callable[[int], Any]
"""Searches for the query of a number."""

ROUNDS = 5


def passages(paragraphs: Sequence[str], size: int, chinese: bool) -> list[str]:
    """Put passages together at random, of two to six clauses (Chinese) or one to three sentences
    (English).
    """
    ends = "(?<=[，。！？；])" if chinese else r"(?<=[.!?;])\s+"
    parts = [c for p in paragraphs for c in re.split(ends, p) if len(c) > 3]
    rng = random.Random(2018)
    least, most, joint = (2, 6, "") if chinese else (1, 3, " ")
    return [joint.join(rng.choices(parts, k=rng.randint(least, most))) for _ in range(size)]


def corpora(data: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a language, its paragraphs and its questions."""
    paragraphs, questions = cmrc(data)
    yield "Chinese", paragraphs, [question.text for question in questions]
    from datasets import hotpotqa

    english = hotpotqa(data)
    yield "English", [d.text for d in english.documents], [q.text for q in english.questions]


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
        self.index = similarity.open(self.graph, "passage")
        analyze = getattr(similarity.analyzer, "indexed", similarity.analyzer)
        self.terms = [list(analyze(text)) for text in texts]
        self.prepared = [similarity.prepare(query, [self.index]) for query in queries]
        self.query_terms = [list(prepared.weights) for prepared in self.prepared]

    def _graph(self, store: Path | None) -> Any:
        from nodekin.nodegraph import Document, NodeGraph

        graph = NodeGraph(store=store, progress=False)
        graph.create_node_group("passage", str.splitlines)
        step = range(0, len(self.texts), 1000)
        graph.add([Document("\n".join(self.texts[i : i + 1000]), id=str(i)) for i in step])
        return graph

    def all(self, folder: Path) -> Iterator[tuple[str, Search]]:
        """Yield each system's name and search; those that are not installed are named."""
        from nodekin.retrievers import Retriever
        from nodekin.retrievers.filters import Filter
        from nodekin.retrievers.indexes import text_index
        from nodekin.retrievers.indexes.accelerator import accelerator, load

        compiled = load()
        text_index.LARGE = 1 << 62  # what is loaded is set here

        def nodekin(retriever: Any, loops: Any) -> Search:
            def search(number: int) -> Any:
                accelerator.loaded = loops
                return retriever.retrieve(self.queries[number])

            return search

        def alone(loops: Any) -> Search:
            def search(number: int) -> Any:
                accelerator.loaded = loops
                return self.index.search(self.prepared[number], self.top_k, Filter())

            return search

        stored = Retriever(self._graph(folder / "graph.db"), "passage", "bm25", top_k=self.top_k)
        stored.retrieve(self.queries[0])
        yield "**nodekin**", nodekin(self.retriever, None)
        yield "**nodekin** in a file", nodekin(stored, None)
        yield "nodekin's index alone", alone(None)
        if compiled is not None:
            yield "**nodekin[fast]**", nodekin(self.retriever, compiled)
            yield "**nodekin[fast]** in a file", nodekin(stored, compiled)
            yield "nodekin[fast]'s index alone", alone(compiled)
        for name, make in (
            ("bm25s (numpy)", lambda: self._bm25s("numpy")),
            ("bm25s (numba)", lambda: self._bm25s("numba")),
            ("tantivy", self._tantivy),
        ):
            try:
                yield name, make()
            except ImportError as error:
                print(f"{name}: not installed ({error.name})")

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


def least_times(searches: Sequence[Search], count: int) -> list[list[float]]:
    """Return the milliseconds of each search for each query, the least of the rounds."""
    best = [[float("inf")] * count for _ in searches]
    for search in searches:
        search(0)
    for _ in range(ROUNDS):
        for search, times in zip(searches, best, strict=True):
            for number in range(count):
                began = time.process_time()
                search(number)
                times[number] = min(times[number], 1000 * (time.process_time() - began))
    return best


def main() -> None:
    """Measure each language and size."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--top-k", type=int, default=10)
    options = parser.parse_args()
    for language, paragraphs, questions in corpora(options.data):
        for size in options.sizes:
            texts = passages(paragraphs, size, language == "Chinese")
            queries = questions[:100]
            with tempfile.TemporaryDirectory() as folder:
                systems = Systems(texts, queries, options.top_k)
                rows = list(systems.all(Path(folder)))
                times = least_times([search for _, search in rows], len(queries))
            own = times[0]
            table = [
                [
                    name,
                    f"{statistics.median(each):.3f}",
                    f"{statistics.median(each) / statistics.median(own):.2f}",
                    f"{statistics.fmean(each):.3f}",
                    f"{statistics.fmean(each) / statistics.fmean(own):.2f}",
                ]
                for (name, _), each in zip(rows, times, strict=True)
            ]
            header = ["system", "CPU ms, median", "ratio", "CPU ms, mean", "ratio"]
            show(f"{language}, {size:,} passages, same terms", header, table)


if __name__ == "__main__":
    main()
