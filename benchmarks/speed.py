"""Build, query and update times at growing sizes, beside the peers, in one run.

The texts are short passages, put together at random (fixed seed): Chinese ones of about 65
characters from the clauses of CMRC 2018, English ones of one to three sentences from HotpotQA; the
queries are the questions of both. Twice:

- As it comes: every system with an analysis that its users would choose. Chinese: jieba's
  search-mode words for the peers. English: bm25s with its own tokenizer, stop words and Snowball,
  LlamaIndex's retriever with its own, the others with the words in lower case. Build and query
  include the analysis. Peers without updates build anew when a document comes. Ratios are the
  peer's time over nodekin's.
- On the same terms, a query only: see ``speed_same_terms.py``.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import hotpotqa
from harness import arguments, cmrc, jieba_words, milliseconds_each, seconds, show
from speed_same_terms import FACES, same_terms

SLOW_PEERS_UP_TO = 100_000


class Peer(NamedTuple):
    """One system's times: build and add in seconds, query in milliseconds."""

    name: str
    build: float
    query: float
    add: float


class Corpus(NamedTuple):
    """Texts and queries of a language, and how peers cut them into words."""

    language: str
    texts: list[str]
    queries: list[str]
    words: Callable[[str], list[str]]


def english_words(text: str) -> list[str]:
    """Cut a text into words in lower case."""
    return re.findall(r"\w+", text.lower())


def passages(paragraphs: Sequence[str], size: int, chinese: bool = True) -> list[str]:
    """Put passages together at random, of two to six clauses (Chinese) or one to three sentences
    (English).
    """
    ends = "(?<=[，。！？；])" if chinese else r"(?<=[.!?;])\s+"
    parts = [c for p in paragraphs for c in re.split(ends, p) if len(c) > 3]
    rng = random.Random(2018)
    least, most, joint = (2, 6, "") if chinese else (1, 3, " ")
    return [joint.join(rng.choices(parts, k=rng.randint(least, most))) for _ in range(size)]


def corpora(data: Path, size: int, languages: Sequence[str]) -> Iterator[Corpus]:
    """Yield the corpus of each language."""
    if "Chinese" in languages:
        paragraphs, questions = cmrc(data)
        texts = passages(paragraphs, size, True)
        jieba_words("暖机")
        yield Corpus("Chinese", texts, [q.text for q in questions[:100]], jieba_words)
    if "English" in languages:
        english = hotpotqa(data)
        texts = passages([d.text for d in english.documents], size, False)
        queries = [q.text for q in english.questions[:100]]
        yield Corpus("English", texts, queries, english_words)


def nodekin(corpus: Corpus, top_k: int) -> Peer:
    """One group of nodes under documents of a thousand."""
    from nodekin.nodegraph import Document, NodeGraph
    from nodekin.retrievers import Retriever

    _, texts, queries, _ = corpus
    graph = NodeGraph(progress=False)
    graph.create_node_group("passage", str.splitlines)
    retriever = Retriever(graph, "passage", "bm25", top_k=top_k)

    def build() -> None:
        step = range(0, len(texts), 1000)
        graph.add([Document("\n".join(texts[i : i + 1000]), id=str(i)) for i in step])
        retriever.retrieve(queries[0])

    built, _ = seconds(build)
    each = milliseconds_each(retriever.retrieve, queries)
    numbers = itertools.count()

    def add(query: str) -> None:
        name = f"newcomer{next(numbers)}"
        graph.add(f"{name}: {query}")
        assert name in retriever.retrieve(f"{name} {query}", top_k=1)[0].node.text

    return Peer("**nodekin**", built, each, milliseconds_each(add, queries[:20], 1) / 1000)


def bm25s_numpy(corpus: Corpus, top_k: int) -> Peer:
    """The library, on numpy."""
    return _bm25s(corpus, top_k, "numpy")


def bm25s_numba(corpus: Corpus, top_k: int) -> Peer:
    """The library, on numba."""
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
    """The library, one thread, on words that are cut before; English by its own analysis."""
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
    """The reference, with numpy's partition in place of its full sort."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    built, index = seconds(lambda: BM25Okapi([corpus.words(text) for text in corpus.texts]))

    def search(query: str) -> Any:
        return np.argpartition(index.get_scores(corpus.words(query)), -top_k)[-top_k:]

    return Peer("rank-bm25", built, milliseconds_each(search, corpus.queries[:10], 1), built)


def langchain(corpus: Corpus, top_k: int) -> Peer:
    """LangChain's BM25Retriever."""
    from langchain_community.retrievers import BM25Retriever

    built, made = seconds(
        lambda: BM25Retriever.from_texts(corpus.texts, preprocess_func=corpus.words, k=top_k)
    )
    each = milliseconds_each(made.invoke, corpus.queries[:10], 1)
    return Peer("LangChain BM25Retriever", built, each, built)


def llama_index(corpus: Corpus, top_k: int) -> Peer:
    """LlamaIndex's BM25Retriever."""
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
    """Yield what is to be measured at a size."""
    yield nodekin
    yield bm25s_numpy
    yield bm25s_numba
    yield tantivy
    if size <= SLOW_PEERS_UP_TO:
        yield rank_bm25
        yield langchain
        yield llama_index


def as_it_comes(corpus: Corpus, top_k: int) -> Iterator[list[str]]:
    """Yield the row of each system."""
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


def main() -> None:
    """Measure each size and language in one go."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--languages", nargs="+", default=["Chinese", "English"])
    parser.add_argument("--only", choices=["as-it-comes", "same-terms"], help="not both")
    parser.add_argument("--top-k", type=int, default=10)
    options = parser.parse_args()
    for size in options.sizes:
        for corpus in corpora(options.data, size, options.languages):
            title = f"{corpus.language}, {size:,} passages"
            if options.only != "same-terms":
                header = ["system", "build s", "ratio", "query ms", "ratio", "add one ms", "ratio"]
                show(f"{title}, as it comes", header, as_it_comes(corpus, options.top_k))
            if options.only != "as-it-comes":
                header, rows, faces = same_terms(corpus.texts, corpus.queries, options.top_k)
                show(f"{title}, same terms", header, rows)
                show(f"{title}, by the frameworks", FACES, faces)


if __name__ == "__main__":
    main()
