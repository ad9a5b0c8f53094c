"""Measure build, query and update times for growing corpora, compared with other libraries.

The texts are short random passages (with a fixed seed): Chinese passages of about 65 characters,
which consist of clauses from CMRC 2018, and English passages of one to three sentences from
HotpotQA. The queries are the questions of both data sets. There are two tables:

- Default settings: each system uses an analysis that its users would choose. For Chinese, the other
  systems use jieba's search mode. For English, bm25s uses its own tokenizer, stop words and
  Snowball, LlamaIndex's retriever uses its own analysis, and the others use lowercase words. Build
  and query times include the analysis. Systems without updates rebuild their index when a document
  is added. Ratios are the time of the other system divided by the time of nodekin.
- Equal terms, queries only: all systems use the terms from nodekin's analysis. The other systems
  receive the terms of the query and return numbers, whereas nodekin analyzes the query and returns
  nodes. The figure is the median CPU time of all threads, and the systems take turns for each
  question. It is reported for new questions, for repeated questions, and for new questions after a
  line was added.

The default search is also compared with a plain retriever. Each uses a separate graph, with links
between the passages of HotpotQA and MuSiQue. The figures are the ratios of the CPU times of a
question and of the build.

No question is asked twice, except in the column for repeated questions, so that caches are not
measured.
"""

from __future__ import annotations

import itertools
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import (
    arguments,
    cmrc_texts,
    hotpotqa,
    jieba_words,
    milliseconds_each,
    multi_hop,
    seconds,
    show,
)

Search = Callable[[str, list[str]], Any]
"""A function that searches for a query whose terms are already known."""

SLOW_PEERS_UP_TO = 100_000

AFTER = 40  # number of questions after a line was added


class Peer(NamedTuple):
    """The times of one system. Build and add times are in seconds, query times in milliseconds."""

    name: str
    build: float
    query: float
    add: float


class Corpus(NamedTuple):
    """A corpus of texts and queries in one language, with a tokenizer for the other systems."""

    language: str
    texts: list[str]
    queries: list[str]
    words: Callable[[str], list[str]]


def english_words(text: str) -> list[str]:
    """Split a text into lowercase words."""
    return re.findall(r"\w+", text.lower())


def passages(paragraphs: Sequence[str], size: int, chinese: bool = True) -> list[str]:
    """Return random passages of 2 to 6 clauses (Chinese) or 1 to 3 sentences (English)."""
    ends = "(?<=[，。！？；])" if chinese else r"(?<=[.!?;])\s+"
    parts = [c for p in paragraphs for c in re.split(ends, p) if len(c) > 3]
    rng = random.Random(2018)
    least, most, joint = (2, 6, "") if chinese else (1, 3, " ")
    return [joint.join(rng.choices(parts, k=rng.randint(least, most))) for _ in range(size)]


def corpora(data: Path, size: int, languages: Sequence[str]) -> Iterator[Corpus]:
    """Yield the corpus for each language."""
    if "Chinese" in languages:
        paragraphs, questions = cmrc_texts(data)
        texts = passages(paragraphs, size, True)
        jieba_words("暖机")
        yield Corpus("Chinese", texts, list(dict.fromkeys(questions))[:200], jieba_words)
    if "English" in languages:
        english = hotpotqa(data)
        texts = passages([d.text for d in english.documents], size, False)
        queries = [q.text for dataset in multi_hop(data) for q in dataset.questions]
        yield Corpus("English", texts, queries, english_words)


def nodekin(corpus: Corpus, top_k: int) -> Peer:
    """Measure nodekin with one group of nodes. Each document contains a thousand lines."""
    from nodekin.retrievers import Retriever

    _, texts, queries, _ = corpus
    built, graph = seconds(lambda: passage_graph(texts))
    retriever = Retriever(graph, "passage", "bm25", top_k=top_k)
    first, _ = seconds(lambda: retriever.retrieve(queries[0]))
    built += first
    each = milliseconds_each(retriever.retrieve, queries)
    numbers = itertools.count()

    def add(query: str) -> None:
        name = f"newcomer{next(numbers)}"
        graph.add(f"{name}: {query}")
        assert name in retriever.retrieve(f"{name} {query}", top_k=1)[0].node.text

    return Peer("**nodekin**", built, each, milliseconds_each(add, queries[:20], 1) / 1000)


def bm25s_numpy(corpus: Corpus, top_k: int) -> Peer:
    """Measure bm25s with its numpy backend."""
    return _bm25s(corpus, top_k, "numpy")


def bm25s_numba(corpus: Corpus, top_k: int) -> Peer:
    """Measure bm25s with its numba backend."""
    return _bm25s(corpus, top_k, "numba")


def _bm25s(corpus: Corpus, top_k: int, backend: str) -> Peer:
    import bm25s as library
    import Stemmer

    if backend == "numba":
        import numba  # noqa: F401
    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> Any:
        if corpus.language == "Chinese":
            return [corpus.words(text) for text in texts]
        return library.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    def build() -> Any:
        index = library.BM25(backend=backend)
        index.index(tokens(corpus.texts), show_progress=False)
        return index

    built, index = seconds(build)

    def search(query: str) -> Any:
        return index.retrieve(tokens([query]), k=top_k, show_progress=False)

    return Peer(f"bm25s ({backend})", built, milliseconds_each(search, corpus.queries), built)


def tantivy(corpus: Corpus, top_k: int) -> Peer:
    """Measure tantivy with one thread. Chinese texts are tokenized before they are indexed."""
    import tantivy as library

    chinese = corpus.language == "Chinese"
    builder = library.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace" if chinese else "en_stem")
    schema = builder.build()

    def text_of(text: str) -> str:
        return " ".join(corpus.words(text)) if chinese else text

    def build() -> Any:
        index = library.Index(schema)
        writer = index.writer(num_threads=1)
        for text in corpus.texts:
            writer.add_document(library.Document(text=text_of(text)))
        writer.commit()
        index.reload()
        return index

    built, index = seconds(build)

    def search(query: str) -> Any:
        words = " ".join(english_words(text_of(query)))
        return index.searcher().search(index.parse_query(words, ["text"]), top_k).hits

    def add(query: str) -> None:
        writer = index.writer(num_threads=1)
        writer.add_document(library.Document(text=text_of(query)))
        writer.commit()
        index.reload()

    each = milliseconds_each(search, corpus.queries)
    return Peer("tantivy", built, each, milliseconds_each(add, corpus.queries[:5], 1) / 1000)


def rank_bm25(corpus: Corpus, top_k: int) -> Peer:
    """Measure rank-bm25, the reference implementation, with a partial instead of a full sort."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    built, index = seconds(lambda: BM25Okapi([corpus.words(text) for text in corpus.texts]))

    def search(query: str) -> Any:
        return np.argpartition(index.get_scores(corpus.words(query)), -top_k)[-top_k:]

    return Peer("rank-bm25", built, milliseconds_each(search, corpus.queries[:10], 1), built)


def langchain(corpus: Corpus, top_k: int) -> Peer:
    """Measure LangChain's BM25Retriever."""
    from langchain_community.retrievers import BM25Retriever

    built, made = seconds(
        lambda: BM25Retriever.from_texts(corpus.texts, preprocess_func=corpus.words, k=top_k)
    )
    each = milliseconds_each(made.invoke, corpus.queries[:10], 1)
    return Peer("LangChain BM25Retriever", built, each, built)


def llama_index(corpus: Corpus, top_k: int) -> Peer:
    """Measure LlamaIndex's BM25Retriever."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    chinese = corpus.language == "Chinese"

    def text_of(text: str) -> str:
        return " ".join(corpus.words(text)) if chinese else text

    def build() -> Any:
        nodes = [TextNode(text=text_of(text)) for text in corpus.texts]
        return BM25Retriever.from_defaults(
            nodes=nodes, similarity_top_k=top_k, skip_stemming=chinese
        )

    built, made = seconds(build)
    each = milliseconds_each(lambda query: made.retrieve(text_of(query)), corpus.queries, 1)
    return Peer("LlamaIndex BM25Retriever", built, each, built)


def peers(size: int) -> Iterator[Callable[[Corpus, int], Peer]]:
    """Yield functions that measure the systems that are suitable for a corpus size."""
    yield nodekin
    yield bm25s_numpy
    yield bm25s_numba
    yield tantivy
    if size <= SLOW_PEERS_UP_TO:
        yield rank_bm25
        yield langchain
        yield llama_index


def as_it_comes(corpus: Corpus, top_k: int) -> Iterator[list[str]]:
    """Measure each system with default settings, and yield a row for each."""
    own: Peer | None = None
    for measure in peers(len(corpus.texts)):
        try:
            peer = measure(corpus, top_k)
        except ImportError as error:
            yield [measure.__name__, f"not installed: {error.name}", "", "", "", "", ""]
            continue
        own = own or peer
        yield [
            peer.name,
            f"{peer.build:.2f}",
            f"{peer.build / own.build:.1f}",
            f"{peer.query:.3f}",
            f"{peer.query / own.query:.1f}",
            f"{1000 * peer.add:,.1f}",
            f"{peer.add / own.add:,.0f}",
        ]


def passage_graph(texts: Sequence[str], store: Path | None = None) -> Any:
    """Return a graph that contains the texts, with a thousand texts per document."""
    from nodekin.nodegraph import Document, NodeGraph

    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("passage", str.splitlines)
    step = range(0, len(texts), 1000)
    graph.add([Document("\n".join(texts[i : i + 1000]), id=str(i)) for i in step])
    return graph


def nodekin_searches(
    corpus: Corpus, top_k: int, folder: Path, adds: dict[str, Callable[[str], Any]]
) -> Iterator[tuple[str, Search]]:
    """Yield the ways to search with nodekin, each with a separate graph.

    Because of the separate graphs, every question is new. Functions that add a line to a graph are
    added to ``adds``.
    """
    from nodekin.retrievers import Retriever

    def retriever(store: Path | None = None) -> Any:
        graph = passage_graph(corpus.texts, store)
        return Retriever(graph, "passage", "bm25", top_k=top_k)

    native, stored = retriever(), retriever(folder / "graph.db")
    adds["**nodekin**"], adds["**nodekin**, in a file"] = (
        retriever.graphs[0].add for retriever in (native, stored)
    )
    yield "**nodekin**", lambda query, terms: native.retrieve(query)
    yield "**nodekin**, in a file", lambda query, terms: stored.retrieve(query)
    try:
        from nodekin.adapters.langchain import NodeGraphRetriever as ForLangChain

        of_langchain = ForLangChain(retriever=retriever())
        yield "nodekin by LangChain's `invoke`", lambda query, terms: of_langchain.invoke(query)
    except ImportError as error:
        print(f"LangChain's invoke: not installed ({error.name})")
    try:
        from nodekin.adapters.llama_index import NodeGraphRetriever as ForLlamaIndex

        of_llama = ForLlamaIndex(retriever())
        yield "nodekin by LlamaIndex's `retrieve`", lambda query, terms: of_llama.retrieve(query)
    except ImportError as error:
        print(f"LlamaIndex's retrieve: not installed ({error.name})")


def ready_bm25s(terms: list[list[str]], top_k: int, backend: str) -> Search:
    """Index terms with bm25s, and return a search function."""
    import bm25s

    if backend == "numba":
        import numba  # noqa: F401
    index = bm25s.BM25(method="lucene", backend=backend)
    index.index(terms, show_progress=False)
    return lambda query, asked: index.retrieve([asked], k=top_k, show_progress=False)


def ready_tantivy(terms: list[list[str]], top_k: int) -> Search:
    """Index terms with tantivy, and return a search function."""
    import tantivy as library

    builder = library.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    index = library.Index(schema)
    writer = index.writer(num_threads=1)
    for text in terms:
        writer.add_document(library.Document(text=" ".join(text)))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(query: str, asked: list[str]) -> Any:
        queries = [
            (library.Occur.Should, library.Query.term_query(schema, "text", term)) for term in asked
        ]
        return searcher.search(library.Query.boolean_query(queries), top_k).hits

    return search


def same_terms(corpus: Corpus, top_k: int) -> Iterator[list[str]]:
    """Measure each system with equal terms, and yield a row for each."""
    from nodekin.retrievers import TextAnalyzer

    analyzer = TextAnalyzer()
    terms = [list(analyzer(text)) for text in corpus.texts]
    with tempfile.TemporaryDirectory() as folder:
        adds: dict[str, Callable[[str], Any]] = {}
        searches = dict(nodekin_searches(corpus, top_k, Path(folder), adds))
        for name, make in (
            ("bm25s (numpy), terms ready", lambda: ready_bm25s(terms, top_k, "numpy")),
            ("bm25s (numba), terms ready", lambda: ready_bm25s(terms, top_k, "numba")),
            ("tantivy, terms ready", lambda: ready_tantivy(terms, top_k)),
        ):
            try:
                searches[name] = make()
            except ImportError as error:
                print(f"{name}: not installed ({error.name})")
        medians: list[dict[str, float]] = []
        new, later = corpus.queries[:-AFTER], corpus.queries[-AFTER:]
        for queries in (new, [*new[9:], *new[:9]], later):
            times: dict[str, list[float]] = {name: [] for name in searches}
            for query in queries:
                asked = list(dict.fromkeys(analyzer(query)))
                for name, search in searches.items():
                    if queries is later and name in adds:
                        adds[name](f"newcomer: {query}")
                    elif queries is later:
                        continue
                    start = time.process_time()
                    search(query, asked)
                    times[name].append(1000 * (time.process_time() - start))
            medians.append(
                {
                    name: statistics.median(each[len(each) // 5 :])
                    for name, each in times.items()
                    if each
                }
            )
    for name, each in medians[0].items():
        others = [f"{median[name]:.3f}" if name in median else "" for median in medians[1:]]
        yield [name, f"{each:.3f}", f"{medians[0]['**nodekin**'] / each:.2f}", *others]


def beside_plain(texts: Callable[[], Any], queries: Sequence[str], links: bool) -> list[str]:
    """Return the times of the default search divided by the times of a plain retriever.

    The ratios are for new questions, repeated questions, questions after a line was added, and the
    build.
    """
    from nodekin.retrievers import DefaultRetriever, Retriever

    systems: list[Any] = []
    graphs: list[Any] = []
    built: list[float] = []
    for make in (
        lambda graph: Retriever(graph, "passage", "bm25"),
        lambda graph: DefaultRetriever(graph, follow_links=links),
    ):
        start = time.process_time()
        graphs.append(texts())
        systems.append(make(graphs[-1]))
        systems[-1].retrieve("a question of another kind")
        built.append(time.process_time() - start)
    ratios = []
    new, later = queries[:-AFTER], queries[-AFTER:]
    for asked in (new, new, later):
        times: tuple[list[float], list[float]] = ([], [])
        for pair in zip(asked, [*asked[9:], *asked[:9]], strict=True):  # in a different order
            for graph, system, query, of_system in zip(graphs, systems, pair, times, strict=True):
                if asked is later:
                    graph.add(f"newcomer: {query}")
                start = time.process_time()
                system.retrieve(query)
                of_system.append(time.process_time() - start)
        ratios.append(statistics.median(times[1][9:]) / statistics.median(times[0][9:]))
    return [f"{ratio:.1f}" for ratio in (*ratios, built[1] / built[0])]


def titled_graph(data: Path) -> Any:
    """Return a graph of passages with titles that are mentioned in other passages."""
    from nodekin.nodegraph import Document, NodeGraph, PassageSplitter

    graph = NodeGraph(progress=False)
    graph.create_node_group("passage", PassageSplitter)
    for dataset in multi_hop(data):
        graph.add(
            [
                Document(document.text, document.metadata, id=f"{dataset.name} {document.id}")
                for document in dataset.documents
            ]
        )
    return graph


def the_default(data: Path, sizes: Sequence[int], languages: Sequence[str]) -> None:
    """Print a table that compares the default search with a plain retriever."""
    columns = {}
    for size in sizes:
        for corpus in corpora(data, size, languages):
            texts = corpus.texts
            columns[f"{'zh' if corpus.language == 'Chinese' else 'en'} {size:,}"] = beside_plain(
                lambda texts=texts: passage_graph(texts), corpus.queries, False
            )
    questions = [question.text for dataset in multi_hop(data) for question in dataset.questions]
    titled = beside_plain(lambda: titled_graph(data), questions, True)
    columns["links, 2,884"] = titled
    names = ["a new question", "repeated question", "after an add", "build"]
    rows = zip(names, *columns.values(), strict=True)
    show("The default search", ["times a plain retriever's", *columns], rows)


def main() -> None:
    """Run the benchmark for each size and language, and print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--languages", nargs="+", default=["Chinese", "English"])
    parser.add_argument("--only", choices=["as-it-comes", "same-terms", "default"], help="one part")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--scale", action="store_true", help="large graphs in a file (scale.py)")
    parser.add_argument("--lines", type=int, default=1_000_000, help="of --scale")
    parser.add_argument("--passages", type=int, default=300_000, help="of --scale")
    options = parser.parse_args()
    if options.scale:
        from scale import show_scale  # This module imports the texts of the current module.

        show_scale(options.data, options.languages, options.lines, options.passages)
        return
    if options.only in (None, "default"):
        the_default(options.data, options.sizes, options.languages)
    for size in options.sizes if options.only != "default" else ():
        for corpus in corpora(options.data, size, options.languages):
            title = f"{corpus.language}, {size:,} passages"
            if options.only != "same-terms":
                header = ["system", "build s", "ratio", "query ms", "ratio", "add one ms", "ratio"]
                show(f"{title}, as it comes", header, as_it_comes(corpus, options.top_k))
            if options.only != "as-it-comes":
                header = ["system", "CPU ms a query", "nodekin's / it", "again", "after an add"]
                show(f"{title}, the same terms", header, same_terms(corpus, options.top_k))


if __name__ == "__main__":
    main()
