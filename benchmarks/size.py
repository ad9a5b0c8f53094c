"""Size on disk, and what is embedded, of a three-level hierarchy, beside LlamaIndex's recipe.

Chunks of 1024, 256 and 128 tokens with overlaps of 100, 25 and 12, each level cut from the one
above, both systems counting tokens by ``count_tokens``. nodekin: a store, a text index and (apart)
vectors of the finest group. LlamaIndex: HierarchicalNodeParser, all nodes in a SimpleDocumentStore,
the leaves in a VectorStoreIndex, persisted; its BM25Retriever on the leaves is counted as the text
index. Numbers are multiples of the text's bytes (UTF-8); of what is embedded, of its characters.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import fake_model
from harness import arguments, bytes_on_disk, cmrc, cmrc_dev, show

LEVELS = {"coarse": (1024, 100), "medium": (256, 25), "fine": (128, 12)}
Documents = Mapping[str, str]


class Counting:
    """The fake model, counting what it is given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> Any:
        """Embed texts."""
        self.texts += texts
        return fake_model.embed(texts)


class Figures(NamedTuple):
    """Bytes of a system, and the texts it embedded."""

    nodes: list[int]
    store: int
    text_index: int
    vectors: int
    embedded: list[str]


def articles(data: Path) -> Documents:
    """Return the paragraphs of CMRC 2018, ten to a document."""
    paragraphs = cmrc(data)[0] + cmrc_dev(data)[0]
    step = range(0, len(paragraphs), 10)
    return {f"article {at}": "\n\n".join(paragraphs[at : at + 10]) for at in step}


def passages(data: Path) -> Documents:
    """Return the passages of HotpotQA and MuSiQue, where they are, each a document."""
    found: dict[str, str] = {}
    hotpot = data / "hotpotqa" / "hotpotqa_train_corpus.json"
    musique = data / "musique" / "musique_train_corpus.json"
    if hotpot.exists():
        for title, sentences in json.loads(hotpot.read_text(encoding="utf-8")).items():
            found[f"hotpotqa {title}"] = "".join(sentences)
    if musique.exists():
        for at, passage in enumerate(json.loads(musique.read_text(encoding="utf-8"))):
            found[f"musique {at}"] = passage["text"]
    return found


def nodekin(documents: Documents, folder: Path) -> Figures:
    """Three groups in one file; the finest is searched by words, then by vectors too."""
    from nodekin.nodegraph import Document, Embedder, NodeGraph, SentenceSplitter
    from nodekin.retrievers import Retriever

    model = Counting()
    file = folder / "graph.db"
    indexes = folder / "graph.db-indexes"

    def work(vectors: bool) -> NodeGraph:
        graph = NodeGraph(store=file, embed=Embedder(model, "counting"), progress=False)
        parent = "ROOT"
        for name, (size, overlap) in LEVELS.items():
            splitter = SentenceSplitter(chunk_size=size, chunk_overlap=overlap)
            graph.create_node_group(name, splitter, parent=parent)
            parent = name
        graph.add([Document(text, id=i) for i, text in documents.items()])
        Retriever(graph, "fine", "cosine" if vectors else "bm25").retrieve("世界 world")
        graph.close()
        return graph

    graph = work(vectors=False)
    store, text_index = bytes_on_disk(file), bytes_on_disk(indexes)
    work(vectors=True)
    vectors = bytes_on_disk(file, indexes) - store - text_index
    counts = [len(graph.nodes(name)) for name in LEVELS]
    graph.close()
    return Figures(counts, store, text_index, vectors, model.texts)


def llama_index(documents: Documents, folder: Path) -> Figures:
    """The recipe of its guides for AutoMergingRetriever."""
    from llama_index.core import Document, StorageContext, VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.node_parser import (
        HierarchicalNodeParser,
        SentenceSplitter,
        get_leaf_nodes,
    )
    from llama_index.retrievers.bm25 import BM25Retriever

    from nodekin.nodegraph import count_tokens

    embedded: list[str] = []

    class CountingEmbedding(MockEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            embedded.append(text)
            vector: list[float] = fake_model.embed([text])[0].tolist()
            return vector

    def work() -> list[int]:
        parser = HierarchicalNodeParser.from_defaults(
            node_parser_ids=list(LEVELS),
            node_parser_map={
                name: SentenceSplitter(
                    chunk_size=size,
                    chunk_overlap=overlap,
                    tokenizer=lambda text: range(count_tokens(text)),
                )
                for name, (size, overlap) in LEVELS.items()
            },
        )
        nodes = parser.get_nodes_from_documents(
            [Document(text=text, id_=i) for i, text in documents.items()]
        )
        leaves = get_leaf_nodes(nodes)
        storage = StorageContext.from_defaults()
        storage.docstore.add_documents(nodes)
        model = CountingEmbedding(embed_dim=fake_model.DIMENSION)
        VectorStoreIndex(leaves, storage_context=storage, embed_model=model)
        storage.persist(str(folder))
        BM25Retriever.from_defaults(nodes=leaves).persist(str(folder / "bm25"))
        above = sum(node.parent_node is None for node in nodes)
        return [above, len(nodes) - len(leaves) - above, len(leaves)]

    counts = work()
    words = bytes_on_disk(folder / "bm25")
    vectors = bytes_on_disk(*folder.glob("*vector_store.json"), folder / "index_store.json")
    return Figures(counts, bytes_on_disk(folder) - words - vectors, words, vectors, embedded)


def cells(name: str, figures: Figures, documents: Documents) -> list[str]:
    """Return a row: everything as a multiple of the text."""
    size = sum(len(text.encode()) for text in documents.values())
    characters = sum(map(len, documents.values()))
    once = sum(map(len, set(figures.embedded)))
    bytes_ = (figures.store, figures.text_index, figures.store + figures.text_index)
    return [
        name,
        " / ".join(map(str, figures.nodes)),
        *(f"{number / size:.1f}" for number in (*bytes_, figures.vectors)),
        f"{sum(map(len, figures.embedded)) / characters:.2f}",
        f"{1 - once / max(1, sum(map(len, figures.embedded))):.1%}",
    ]


SYSTEMS: Mapping[str, Callable[[Documents, Path], Figures]] = {
    "**nodekin**": nodekin,
    "LlamaIndex": llama_index,
}


def main() -> None:
    """Measure long Chinese articles, short English passages, and both together."""
    options = arguments(__doc__).parse_args()
    chinese, english = articles(options.data), passages(options.data)
    corpora = {"CMRC 2018 articles": chinese, "HotpotQA and MuSiQue passages": english}
    corpora["both"] = {**chinese, **english}
    for title, documents in corpora.items():
        rows = []
        for name, measure in SYSTEMS.items():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rows.append(cells(name, measure(documents, Path(folder)), documents))
                except ImportError as error:
                    rows.append([name, f"not installed: {error.name}", *[""] * 6])
        size = sum(len(text.encode()) for text in documents.values()) / 1e6
        header = ["system", "nodes", "store", "text index", "both", "vectors apart"]
        header += ["embedded", "of that twice"]
        if documents:
            show(f"{title}: {len(documents):,} documents, {size:.1f} MB", header, rows)
        else:
            show(f"{title}: skipped, not in {options.data}", ["system"], [])


if __name__ == "__main__":
    main()
