"""The systems that ``persistence.py`` measures: built, kept, opened, asked and changed.

Each is given lines of text under documents, keeps them with a text index and, if it is told to,
with vectors, in a folder. Whatever answers is loaded by the first question that needs it, so that
no system pays for what it is not asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import fake_model
from harness import jieba_words

TOP_K = 10
Documents = Mapping[str, Sequence[str]]


class System(Protocol):
    """What is measured of a system."""

    def load(self) -> None:
        """Import all there is to import."""

    def build(self, documents: Documents, query: str) -> None:
        """Build from nothing, ask once by each kind, and keep everything."""

    def open(self) -> None:
        """Open what was kept."""

    def bm25(self, query: str) -> list[str]:
        """Return the best texts by words."""

    def cosine(self, query: str) -> list[str]:
        """Return the best texts by vectors."""

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add or update a document, and keep that."""


class Nodekin:
    """A graph with one group, its lines; in memory where there is no folder."""

    def __init__(self, folder: Path | None, vectors: bool) -> None:
        self.store = None if folder is None else folder / "graph.db"
        self.index: str | None = None
        self.vectors = vectors

    def load(self) -> None:
        """Import all there is to import."""
        import nodekin.nodegraph.sqlite
        import nodekin.retrievers  # noqa: F401

        if self.vectors:
            import faiss  # noqa: F401

    def build(self, documents: Documents, query: str) -> None:
        """Build from nothing, ask once by each kind, and keep everything."""
        from nodekin.nodegraph import Document

        self.open()
        self.graph.add([Document("\n".join(lines), id=i) for i, lines in documents.items()])
        self.bm25(query)
        if self.vectors:
            self.cosine(query)
        if self.store is not None:
            self.graph.close()

    def open(self) -> None:
        """Open what was kept."""
        from nodekin.nodegraph import NodeGraph
        from nodekin.retrievers import Retriever

        model = fake_model.embedder() if self.vectors else None
        self.graph = NodeGraph(store=self.store, index=self.index, embed=model, progress=False)
        self.graph.create_node_group("passage", str.splitlines)
        self._words = Retriever(self.graph, "passage", "bm25_chinese", top_k=TOP_K)
        if self.vectors:
            self._near = Retriever(self.graph, "passage", "cosine", top_k=TOP_K)

    def bm25(self, query: str) -> list[str]:
        """Return the best texts by words."""
        return [result.node.text for result in self._words.retrieve(query)]

    def cosine(self, query: str) -> list[str]:
        """Return the best texts by vectors."""
        return [result.node.text for result in self._near.retrieve(query)]

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add or update a document; it is on the disk when this returns."""
        from nodekin.nodegraph import Document

        self.graph.add(Document("\n".join(lines), id=document))

    def remove(self, document: str) -> None:
        """Remove a document."""
        self.graph.remove(document)


class LlamaIndex:
    """Its document store, BM25Retriever and VectorStoreIndex, persisted as its guides do.

    BM25Retriever splits at spaces: its nodes have the words that jieba makes.
    """

    def __init__(self, folder: Path, vectors: bool) -> None:
        self.folder = folder
        self.vectors = vectors

    def load(self) -> None:
        """Import all there is to import."""
        import llama_index.core
        import llama_index.retrievers.bm25  # noqa: F401

        jieba_words("暖机")

    def build(self, documents: Documents, query: str) -> None:
        """Build from nothing and persist."""
        from llama_index.core import StorageContext, VectorStoreIndex

        nodes = [node for i, lines in documents.items() for node in self._nodes(i, lines)]
        self._storage = StorageContext.from_defaults()
        if self.vectors:
            self._index = VectorStoreIndex(
                nodes, storage_context=self._storage, embed_model=fake_model.for_llama_index()
            )
        else:
            self._storage.docstore.add_documents(nodes)
        self._keep()
        self.bm25(query)
        if self.vectors:
            self.cosine(query)

    def _keep(self) -> None:
        from llama_index.retrievers.bm25 import BM25Retriever

        self._words = BM25Retriever.from_defaults(
            docstore=self._storage.docstore, similarity_top_k=TOP_K, skip_stemming=True
        )
        self._words.persist(str(self.folder / "bm25"))
        self._storage.persist(str(self.folder))

    @staticmethod
    def _nodes(document: str, lines: Sequence[str]) -> list[Any]:
        from llama_index.core.schema import TextNode

        cut = (" ".join(jieba_words(line)) for line in lines)
        return [TextNode(text=text, id_=f"{document} {at}") for at, text in enumerate(cut)]

    def open(self) -> None:
        """Do nothing yet."""

    @cached_property
    def _storage(self) -> Any:
        from llama_index.core import StorageContext

        return StorageContext.from_defaults(persist_dir=str(self.folder))

    @cached_property
    def _index(self) -> Any:
        from llama_index.core import load_index_from_storage

        return load_index_from_storage(self._storage, embed_model=fake_model.for_llama_index())

    @cached_property
    def _words(self) -> Any:
        from llama_index.retrievers.bm25 import BM25Retriever

        return BM25Retriever.from_persist_dir(str(self.folder / "bm25"))

    def bm25(self, query: str) -> list[str]:
        """Return the best texts by words."""
        return [n.node.get_content() for n in self._words.retrieve(" ".join(jieba_words(query)))]

    def cosine(self, query: str) -> list[str]:
        """Return the best texts by vectors."""
        near = self._index.as_retriever(similarity_top_k=TOP_K)
        return [n.node.get_content() for n in near.retrieve(" ".join(jieba_words(query)))]

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add a document; BM25 is built anew, everything persisted anew."""
        if self.vectors:
            self._index.insert_nodes(self._nodes(document, lines))
        else:
            self._storage.docstore.add_documents(self._nodes(document, lines))
        self._keep()


class LangChain:
    """Its BM25Retriever, which can't be kept and is built from the texts; its FAISS store."""

    def __init__(self, folder: Path, vectors: bool) -> None:
        self.folder = folder
        self.vectors = vectors

    def load(self) -> None:
        """Import all there is to import."""
        import rank_bm25  # noqa: F401
        from langchain_community.retrievers import BM25Retriever  # noqa: F401

        if self.vectors:
            import faiss  # noqa: F401
            from langchain_community.vectorstores import FAISS  # noqa: F401
        jieba_words("暖机")

    def build(self, documents: Documents, query: str) -> None:
        """Build from nothing; save the texts and the vectors."""
        self._texts = {f"{i} {n}": t for i, lines in documents.items() for n, t in enumerate(lines)}
        if self.vectors:
            from langchain_community.vectorstores import FAISS

            ids, texts = list(self._texts), list(self._texts.values())
            self._faiss = FAISS.from_texts(texts, fake_model.for_langchain(), ids=ids)
        self._keep()
        self.bm25(query)
        if self.vectors:
            self.cosine(query)

    def _keep(self) -> None:
        self.__dict__.pop("_words", None)
        text = json.dumps(self._texts, ensure_ascii=False)
        (self.folder / "texts.json").write_text(text, encoding="utf-8")
        if self.vectors:
            self._faiss.save_local(str(self.folder / "faiss"))

    def open(self) -> None:
        """Do nothing yet."""

    @cached_property
    def _texts(self) -> dict[str, str]:
        text = (self.folder / "texts.json").read_text(encoding="utf-8")
        texts: dict[str, str] = json.loads(text)
        return texts

    @cached_property
    def _words(self) -> Any:
        from langchain_community.retrievers import BM25Retriever

        texts = list(self._texts.values())
        return BM25Retriever.from_texts(texts, preprocess_func=jieba_words, k=TOP_K)

    @cached_property
    def _faiss(self) -> Any:
        from langchain_community.vectorstores import FAISS

        return FAISS.load_local(
            str(self.folder / "faiss"),
            fake_model.for_langchain(),
            allow_dangerous_deserialization=True,
        )

    def bm25(self, query: str) -> list[str]:
        """Return the best texts by words."""
        return [document.page_content for document in self._words.invoke(query)]

    def cosine(self, query: str) -> list[str]:
        """Return the best texts by vectors."""
        return [d.page_content for d in self._faiss.similarity_search(query, k=TOP_K)]

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add a document; BM25 is built anew, everything saved anew."""
        new = {f"{document} {n}": line for n, line in enumerate(lines)}
        if self.vectors:
            self._faiss.add_texts(list(new.values()), ids=list(new))
        self._texts.update(new)
        self._keep()


SYSTEMS: Mapping[str, type[Any]] = {
    "nodekin": Nodekin,
    "LlamaIndex": LlamaIndex,
    "LangChain": LangChain,
}
