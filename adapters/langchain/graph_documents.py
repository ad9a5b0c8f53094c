"""Create a retriever of documents in one line. Add, update and remove its documents."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.indexing import DeleteResponse, DocumentIndex, UpsertResponse

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.composite.link_graph import LinkOptions
from ...retrievers.protocols import Similarity
from ...retrievers.similarities.registry import MakeIndex
from ..frameworks import document_search, in_thread
from .documents import (
    Details,
    check_count,
    check_kwargs,
    delete_documents,
    existing_nodes,
    put_documents,
    text_documents,
    to_document,
)
from .ingestion import as_transform

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

CHILDREN = "child"
"""The group that a ``child_splitter`` makes."""

PARENTS = "parent"
"""The group that a ``parent_splitter`` makes."""


class RetrieverFields(TypedDict, total=False):
    """Fields of a ``NodeGraphRetriever``, to type ``**fields``. See there."""

    k: int | None
    child_k: int | None
    filter: Mapping[str, Any] | None
    score_threshold: float | None
    details: Details
    tags: list[str] | None
    metadata: dict[str, Any] | None
    name: str | None


class SearchOptions(TypedDict, total=False):
    """What is searched in a graph, to type ``**options``.

    Attributes:
        child_splitter: A text splitter of LangChain, or any transform of a node group, that makes
            the nodes to search instead of sentences (the group ``"child"``).
        parent_splitter: One that makes the chunks to return instead of the documents (the group
            ``"parent"``).
        group: The group to search, instead of splitters: ``"ROOT"`` for the documents themselves,
            ``"FineChunk"``, or one of your own.
        target: The group to answer with. None for the documents.
        similarity: As for ``Retriever``, like ``similarity_cut_off``, ``index``, ``embed_keys`` and
            ``lift``.
        follow_links: As for ``DefaultRetriever``.
    """

    child_splitter: object
    parent_splitter: object
    group: str | None
    target: str | None
    similarity: str | Similarity | None
    similarity_cut_off: float | Mapping[str, float] | None
    index: str | MakeIndex
    embed_keys: Sequence[str] | None
    lift: Literal["max", "sum", "mean"]
    follow_links: bool | LinkOptions | None


class FirstLineOptions(RetrieverFields, SearchOptions, total=False):
    """The options of the first lines: fields of the retriever (``k`` is 4), and the search."""


class GraphDocuments(DocumentIndex):
    """Create a retriever of documents and write to its graph. Base of ``NodeGraphRetriever``.

    ``langchain_core.indexing.index(loader, record_manager, retriever, cleanup="incremental")`` adds
    new documents to it, and removes those that the loader no longer gives, with the nodes below
    them. Only what changed is derived and embedded again. LangChain calls its ``DocumentIndex``
    beta, so its interface may change. Its async methods run the others in a thread.

    Example:
        >>> from langchain_core.indexing import InMemoryRecordManager, index
        >>> from nodekin.adapters.langchain import NodeGraphRetriever
        >>> retriever = NodeGraphRetriever.from_documents([])
        >>> records = InMemoryRecordManager(namespace="tea")
        >>> records.create_schema()
        >>> settings = {"cleanup": "full", "key_encoder": "sha256"}
        >>> result = index([Document("Tea."), Document("Milk.")], records, retriever, **settings)
        >>> index([Document("Tea.")], records, retriever, **settings)["num_deleted"]
        1
    """

    graph: NodeGraph | None = None
    """The graph that documents are added to. None for a retriever that was given none."""

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: object = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        **options: Unpack[FirstLineOptions],
    ) -> Self:
        """Make a retriever of documents, by the default search of a graph. See ``from_graph``.

        Args:
            documents: They are copied, and come back with their ids and metadata.
            embedding: The embedding model, to search by meaning, too. None to search by words.
            ids: Instead of the documents' own. A document without any gets a hash of its text
                and metadata, so that the same document added twice is one.
            store: The path of a file to keep the graph in. Memory by default. With a file that
                exists the documents are added to those in it.
            **options: See ``from_graph``.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If there are not as many ids as documents, or two documents have one id.
        """
        retriever = cls.from_graph(NodeGraph(embed=embedding, store=store), **options)
        retriever.add_documents(documents, ids=ids)
        return retriever

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: object = None,
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        **options: Unpack[FirstLineOptions],
    ) -> Self:
        """Make a retriever of texts, with their metadata and ids where there are any.

        Raises:
            TypeError: If ``embedding`` is no model, for example the metadatas.
            ValueError: If there are not as many metadatas or ids as texts.
        """
        if isinstance(embedding, list | tuple):
            raise TypeError(
                f"embedding is a model, not {embedding!r:.80}; give the metadatas by their name: "
                "metadatas=[...]"
            )
        documents = text_documents(texts, metadatas)
        return cls.from_documents(documents, embedding, ids=ids, store=store, **options)

    @classmethod
    def from_graph(cls, graph: NodeGraph, **options: Unpack[FirstLineOptions]) -> Self:
        """Make a retriever of the documents that a graph has, and of those that it will get.

        Without further arguments it is a ``DefaultRetriever``: words of documents and of their
        sentences are fused. With an embedding model the vectors of sentences, too, as far as they
        can be trusted. Links are followed where texts name titles of others. One ``similarity`` is
        searched alone, and has its own scores: words of documents, or vectors of sentences. With
        splitters, a group, ``similarity_cut_off`` or ``lift`` it is one ``Retriever``. What is
        made is in ``graph`` and ``retriever``.

        Args:
            graph: The node graph, with an embedding model to search by meaning.
            **options: See ``FirstLineOptions``.

        Raises:
            TypeError: If an option is unknown, or ``graph`` is no graph.
            UnknownGroupError: If the graph has no such group.
            ValueError: If a splitter is given, and a group for which it would make another one, or
                the graph has another group ``"child"`` or ``"parent"``.

        Example:
            >>> from nodekin.adapters.langchain import NodeGraphRetriever
            >>> graph = NodeGraph()
            >>> ids = graph.add(["Green tea is steamed. Black tea is fermented.", "Rivers run."])
            >>> retriever = NodeGraphRetriever.from_graph(graph, k=1)
            >>> [document.page_content for document in retriever.invoke("fermented")]
            ['Green tea is steamed. Black tea is fermented.']
        """
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        check_kwargs(cls.__name__, options, FirstLineOptions.__annotations__)
        search = {name: options[name] for name in SearchOptions.__annotations__ if name in options}  # type: ignore[literal-required]
        child_splitter = search.pop("child_splitter", None)
        parent_splitter = search.pop("parent_splitter", None)
        group, target = search.pop("group", None), search.pop("target", None)
        if child_splitter is not None and group is not None:
            raise ValueError(
                f"child_splitter makes the group to search, and group={group!r} names another; "
                "give one of them"
            )
        if parent_splitter is not None and target is not None:
            raise ValueError(
                f"parent_splitter makes the group to answer with, and target={target!r} names "
                "another; give one of them"
            )
        parent = ROOT
        if parent_splitter is not None:
            graph.create_node_group(PARENTS, _transform(parent_splitter))
            parent = target = PARENTS
        if child_splitter is not None:
            graph.create_node_group(CHILDREN, _transform(child_splitter), parent=parent)
            group = CHILDREN
        check_count("k", k := options.get("k", 4))
        if k is not None:
            search["top_k"] = k
        retriever = document_search(graph, group=group, target=target, **search)
        fields = {
            name: value
            for name, value in options.items()
            if name in RetrieverFields.__annotations__
        }
        arguments: dict[str, Any] = {"retriever": retriever, "graph": graph, "k": k, **fields}
        return cls(**arguments)

    def add_documents(
        self, documents: Iterable[Document], *, ids: Sequence[str | None] | None = None
    ) -> list[str]:
        """Add documents, or update those whose id exists, all or none. Return their ids.

        What was made of an earlier version of a document is removed, and the next search sees the
        change.

        Raises:
            ValueError: If there are not as many ids as documents, two documents have one id, or
                the retriever has no graph.
        """
        return put_documents(self._writable(), documents, ids)

    aadd_documents = in_thread(add_documents)

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Add or update documents as ``add_documents`` does, for ``index()``."""
        check_kwargs("upsert", kwargs)
        return {"succeeded": self.add_documents(items), "failed": []}

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Remove documents and the nodes below them. Ids that do not exist are skipped.

        Raises:
            ValueError: If no ids are given, one is that of a node below a document, or the
                retriever has no graph.
        """
        check_kwargs("delete", kwargs)
        deleted = delete_documents(self._writable(), ids)
        return {"num_deleted": len(deleted), "num_failed": 0, "succeeded": deleted, "failed": []}

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Return the documents that exist as they were put in, in the order of the ids."""
        check_kwargs("get", kwargs)
        return [to_document(node) for node in existing_nodes(self._writable(), ids)]

    def _writable(self) -> NodeGraph:
        if self.graph is None:
            raise ValueError(
                "the retriever has no graph of documents; give it one (graph=...), or call the "
                "methods of the graph"
            )
        return self.graph


def _transform(splitter: object) -> object:
    """Return what a group is made by: a LangChain splitter with its own starts, else as it is."""
    if callable(splitter) or inspect.isclass(splitter):
        return splitter
    if hasattr(splitter, "split_text") or hasattr(splitter, "transform_documents"):
        return as_transform(splitter)
    return splitter
