"""Compare vector search in nodekin with using FAISS directly on the same vectors.

The texts and queries are the same as in ``speed.py``, in documents of ten lines. The vectors come
from a fake model. In all systems, the vectors of the queries are computed before the measurement,
and no query is asked twice. FAISS receives queries as arrays and filters as bitmaps, and returns
row numbers. nodekin also detects changes, reads nodes and checks metadata. Recall is the share of
the exact ten nearest neighbors that are found. For the search of parents, the frameworks' own
retrievers are used with the same FAISS index. Ratios are relative to FAISS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from harness import (
    DIMENSION,
    arguments,
    cmrc_texts,
    fake_embed,
    fake_embedder,
    milliseconds_each,
    seconds,
    show,
)
from speed import passages

LINES = 10
TOP_K = 10
QUESTIONS = 800  # number of questions, so that no system receives a question twice
BATCH = 100
SHARES = (1, 10, 50)  # percentage of the documents that match a filter
Vectors = npt.NDArray[np.float32]


class Corpus(NamedTuple):
    """A corpus of texts and queries with their vectors."""

    texts: list[str]
    vectors: Vectors
    queries: list[str]
    asked: Vectors


class Bare:
    """A search that uses FAISS directly."""

    def __init__(self, corpus: Corpus) -> None:
        import faiss

        self.index: Any = faiss.IndexFlatIP(DIMENSION)
        self.build, _ = seconds(lambda: self.index.add(corpus.vectors))

    def searching(self, percent: int | None) -> Callable[[Vectors], list[list[int]]]:
        """Return a function that maps query vectors of shape (n, 384) to row numbers.

        If ``percent`` is given, a filter that matches this percentage of the rows is applied.
        """
        import faiss

        settings: dict[str, Any] = {}
        if percent is not None:
            documents = np.arange(self.index.ntotal) // LINES
            kept = np.packbits(documents % 100 < percent, bitorder="little")
            selector = faiss.IDSelectorBitmap(kept)
            settings["params"] = faiss.SearchParameters(sel=selector)
        return lambda queries: self.index.search(queries, TOP_K, **settings)[1].tolist()


def nodekin_graph(corpus: Corpus) -> Any:
    """Return a graph of documents with ten lines each, for which embeddings are computed."""
    from nodekin.nodegraph import Document, NodeGraph

    known = dict(zip(corpus.queries, corpus.asked, strict=True))

    def queries(texts: Sequence[str]) -> Vectors:
        return np.stack([known[t] if t in known else fake_embed([t])[0] for t in texts])

    model = fake_embedder(batch_size=1024, embed_queries=queries)
    graph = NodeGraph(embed=model, progress=False)
    graph.create_node_group("passage", str.splitlines)
    step = range(0, len(corpus.texts), LINES)
    graph.add(
        [
            Document("\n".join(corpus.texts[at : at + LINES]), {"part": number % 100}, id=str(at))
            for number, at in enumerate(step)
        ]
    )
    return graph


def searching(graph: Any, percent: int | None, target: str | None = None) -> Any:
    """Return a vector retriever of nodekin, with a filter if ``percent`` is given."""
    from nodekin.retrievers import Retriever

    filters = None if percent is None else {"part": {"lt": percent}}
    return Retriever(graph, "passage", "cosine", top_k=TOP_K, filters=filters, target=target)


def filters_table(corpus: Corpus, graph: Any, bare: Bare) -> Iterator[list[str]]:
    """Measure single queries, batches of queries and filters, and yield the rows."""
    rows = range(len(corpus.queries))
    batches = [slice(at, at + BATCH) for at in range(0, len(rows), BATCH)]
    texts = {text: at for at, text in enumerate(corpus.texts)}
    for percent in (None, *SHARES):
        retriever, search = searching(graph, percent), bare.searching(percent)
        half = len(batches) // 2
        one = milliseconds_each(retriever.retrieve, corpus.queries[: half * BATCH])
        theirs = milliseconds_each(lambda at, s=search: s(corpus.asked[at : at + 1]), rows)
        cells = [f"{theirs:.2f}", f"{one:.2f}", f"{one / theirs:.2f}"]
        ask: Any = lambda part, r=retriever: r.batch(corpus.queries[part])  # noqa: E731
        many = milliseconds_each(ask, batches[half:]) / BATCH
        bare_ask: Any = lambda part, s=search: s(corpus.asked[part])  # noqa: E731
        theirs = milliseconds_each(bare_ask, batches) / BATCH
        cells += [f"{theirs:.3f}", f"{many:.3f}", f"{many / theirs:.2f}"]
        found = [[texts[r.node.text] for r in rs] for rs in retriever.batch(corpus.queries[:BATCH])]
        cells.append(f"{_recall(search(corpus.asked[:BATCH]), found):.3f}")
        name = "all" if percent is None else f"{percent} %"
        yield [name, *cells]


def _recall(best: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> float:
    wanted = sum(map(len, best))
    return sum(len(set(b) & set(f)) for b, f in zip(best, found, strict=True)) / wanted


def langchain(corpus: Corpus, bare: Bare) -> Callable[[str], Any]:
    """Return a search function for ParentDocumentRetriever with LangChain's FAISS store."""
    from langchain_classic.retrievers import ParentDocumentRetriever
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.stores import InMemoryStore
    from langchain_text_splitters import CharacterTextSplitter

    known = _known(corpus)

    class Known(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError

        def embed_query(self, text: str) -> list[float]:
            return known[text]

    children = {
        str(at): Document(text, metadata={"doc_id": str(at // LINES)})
        for at, text in enumerate(corpus.texts)
    }
    numbers = {at: str(at) for at in range(len(corpus.texts))}
    store = FAISS(Known(), bare.index, InMemoryDocstore(children), numbers)
    parents: InMemoryStore = InMemoryStore()
    parents.mset([(i, Document(text)) for i, text in _parents(corpus).items()])
    retriever = ParentDocumentRetriever(
        vectorstore=store,
        docstore=parents,
        child_splitter=CharacterTextSplitter(),
        search_kwargs={"k": TOP_K},
    )
    return retriever.invoke


def llama_index(corpus: Corpus, bare: Bare) -> Callable[[str], Any]:
    """Return a search function for RecursiveRetriever with FAISS."""
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.retrievers import RecursiveRetriever
    from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode

    known = _known(corpus)
    children = [
        IndexNode(text=text, index_id=str(at // LINES), id_=f"child {at}")
        for at, text in enumerate(corpus.texts)
    ]

    class Faiss(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            query = np.array([known[query_bundle.query_str]], np.float32)
            scores, rows = bare.index.search(query, TOP_K)
            found = zip(scores[0].tolist(), rows[0].tolist(), strict=True)
            return [NodeWithScore(node=children[row], score=score) for score, row in found]

    retriever = RecursiveRetriever(
        "children",
        retriever_dict={"children": Faiss()},
        node_dict={i: TextNode(text=text, id_=i) for i, text in _parents(corpus).items()},
    )
    return retriever.retrieve


def _known(corpus: Corpus) -> dict[str, list[float]]:
    return dict(zip(corpus.queries, corpus.asked.tolist(), strict=True))


def _parents(corpus: Corpus) -> dict[str, str]:
    step = range(0, len(corpus.texts), LINES)
    return {str(at // LINES): "\n".join(corpus.texts[at : at + LINES]) for at in step}


def parents_table(corpus: Corpus, graph: Any, bare: Bare) -> Iterator[list[str]]:
    """Compare retrievers that search children and return their parents, and yield the rows."""
    ask, search = corpus.queries, bare.searching(None)
    least = milliseconds_each(lambda at: search(corpus.asked[at : at + 1]), range(len(ask)))
    yield ["bare FAISS, children only", f"{least:.2f}", "1.00", f"{TOP_K} children"]
    retriever = searching(graph, None, target="ROOT")
    systems = {
        "**nodekin**, target=": lambda: retriever.retrieve,
        "LangChain ParentDocumentRetriever": lambda: langchain(corpus, bare),
        "LlamaIndex RecursiveRetriever": lambda: llama_index(corpus, bare),
    }
    for name, make in systems.items():
        try:
            retrieve = make()
        except ImportError as error:
            yield [name, f"not installed: {error.name}", "", ""]
            continue
        each = milliseconds_each(retrieve, ask)
        count = sum(len(retrieve(query)) for query in ask[:BATCH]) / BATCH
        yield [name, f"{each:.2f}", f"{each / least:.2f}", f"{count:.1f} parents"]


def measure(corpus: Corpus) -> None:
    """Measure one corpus size and print the tables."""
    bare, graph = Bare(corpus), nodekin_graph(corpus)
    built, _ = seconds(lambda: searching(graph, None).retrieve("warm up"))
    title = f"{len(corpus.texts):,} vectors of {DIMENSION} numbers"
    header = ["nodes a filter keeps", "FAISS, one ms", "nodekin", "ratio", "FAISS, 100 at once"]
    header += ["nodekin", "ratio", "recall@10"]
    show(title, header, filters_table(corpus, graph, bare))
    print(f"\nBuilt in {built:.1f} s with nodes and vectors; FAISS alone {bare.build:.1f} s.")
    header = ["children searched, parents returned", "ms", "ratio", "answers with"]
    show(f"{title}: parents", header, parents_table(corpus, graph, bare))


def main() -> None:
    """Run the benchmark for each corpus size."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    options = parser.parse_args()
    paragraphs, questions = cmrc_texts(options.data)
    queries = list(dict.fromkeys(questions))[:QUESTIONS]
    for size in options.sizes:
        texts = list(dict.fromkeys(passages(paragraphs, size + size // 10)))[:size]
        measure(Corpus(texts, fake_embed(texts), queries, fake_embed(queries)))


if __name__ == "__main__":
    main()
