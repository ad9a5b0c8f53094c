"""Use a graph as LlamaIndex users use an index: from documents, as retriever, as engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.ingestion import run_transformations
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters

from ...nodegraph import ROOT, NodeGraph, NodeStore
from ...retrievers import (
    Filters,
    RetrieverLike,
    RetrieverProtocol,
    as_retriever,
    get_similarity,
)
from ...retrievers.protocols import Similarity
from ..document_search import document_search
from .docstore import NodeGraphDocstore
from .import_nodes import import_nodes
from .node_lookup import find_node
from .parser_transform import as_transform
from .prompt_templates import default_llm
from .query_engine import NodeGraphQueryEngine
from .retriever import NodeGraphRetriever
from .vector_store_backend import as_index

logger = logging.getLogger(__name__)

CHUNKS = "chunk"
"""The group that the transformations make."""

DEFAULT_TOP_K = 2
"""How many results there are by default; LlamaIndex's own number."""


class NodeGraphIndex:
    """Use a graph as LlamaIndex's indexes are used: documents in, retrievers and engines out.

    ``from_documents`` makes a graph with two groups: ``"chunk"``, by the transformations, and
    ``"sentence"`` below it. Sentences are searched, their chunks are the results, each once, and
    ``evidence`` says which sentence matched. By words (``similarity="bm25"``) the chunks are
    searched, too, and both are fused. For other groups, similarities, fusions, rerankers
    and strategies pass a graph and a retriever: the methods are the same.

    It is no ``BaseIndex``: there is no storage context. The graph is stored as a whole, in one
    file: ``from_documents([], store="tea.nodekin")`` opens it again. Nothing is embedded before
    the first search, and nothing twice.

    Args:
        graph: The node graph.
        retriever: How it is searched: any nodekin retriever, or what ``as_retriever`` takes.
        callback_manager: As everywhere in LlamaIndex.

    Attributes:
        graph: The node graph, to add groups to and to search in other ways.

    Raises:
        TypeError: If an argument has the wrong type.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> documents = [Document(text="Green tea is steamed. Black tea is fermented.")]
        >>> index = NodeGraphIndex.from_documents(documents, similarity="bm25")
        >>> (result,) = index.as_retriever(similarity_top_k=1).retrieve("Which is fermented?")
        >>> result.text, result.evidence[0]["text"]
        ('Green tea is steamed. Black tea is fermented.', 'Black tea is fermented.')
        >>> engine = index.as_query_engine(llm=MockLLM(), response_mode="compact")
        >>> len(engine.query("Which is fermented?").source_nodes)
        1
    """

    def __init__(
        self,
        graph: NodeGraph,
        retriever: RetrieverLike,
        *,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(
                f"graph is a NodeGraph, not {graph!r:.80}; NodeGraphIndex.from_documents makes one "
                "of documents, NodeGraphIndex.from_nodes of nodes"
            )
        self.graph = graph
        self._retriever = as_retriever(retriever, "retriever")
        self._callback_manager = callback_manager

    def __repr__(self) -> str:
        return f"NodeGraphIndex({self.graph!r}, {self._retriever!r})"

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        embed_model: object = None,
        similarity: str | Similarity = "cosine",
        transformations: Sequence[TransformComponent] | None = None,
        vector_store: BasePydanticVectorStore | None = None,
        store: str | Path | NodeStore | None = None,
        callback_manager: CallbackManager | None = None,
        show_progress: bool = False,
    ) -> NodeGraphIndex:
        """Make an index of documents; add more, or the changed ones, if the store has some.

        Args:
            documents: LlamaIndex's documents; their metadata is searched as declared by them.
            embed_model: The embedding model, LlamaIndex's or any that ``NodeGraph`` takes; None
                for ``Settings.embed_model``, which is not read if words are compared.
            similarity: How sentences are compared: ``"cosine"``, or ``"bm25"``, for which no model
                is needed; or any other similarity.
            transformations: Make chunks of a document, one after the other: a node parser, then
                extractors. None for ``Settings.transformations``, that is ``Settings.node_parser``.
                They run when the chunks are needed, once for each document.
            vector_store: Holds and searches the vectors, in place of the built-in index.
            store: Where the graph is stored: a path; memory by default.
            callback_manager: As everywhere in LlamaIndex.
            show_progress: Whether progress bars are drawn.

        Raises:
            ImportError: If a model is needed, none was given or set, and LlamaIndex's default one
                is not installed.
            TypeError: If an argument has the wrong type.
        """
        parser = _chain(Settings.transformations if transformations is None else transformations)
        graph = _graph(embed_model, similarity, store, show_progress)
        graph.create_node_group(CHUNKS, as_transform(parser))
        graph.add(list(documents))
        return cls._of(graph, CHUNKS, similarity, vector_store, callback_manager)

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        *,
        embed_model: object = None,
        similarity: str | Similarity = "cosine",
        vector_store: BasePydanticVectorStore | None = None,
        store: str | Path | NodeStore | None = None,
        callback_manager: CallbackManager | None = None,
        show_progress: bool = False,
    ) -> NodeGraphIndex:
        """Make an index of nodes, as a parser or an ``IngestionPipeline`` returns them.

        They are imported (``import_nodes``) with their ids, metadata and relationships; the
        sentences of the smallest are searched, the nodes themselves are the results.

        Args:
            nodes: The nodes; of a hierarchy all, in any order.
            embed_model: As in ``from_documents``.
            similarity: As in ``from_documents``.
            vector_store: As in ``from_documents``.
            store: As in ``from_documents``.
            callback_manager: As in ``from_documents``.
            show_progress: As in ``from_documents``.

        Raises:
            ValueError: If some nodes have a source document and some have none.
            ImportError: As ``from_documents`` does.
        """
        graph = _graph(embed_model, similarity, store, show_progress)
        imported = import_nodes(graph, nodes)
        if not nodes:
            groups = [name for name in graph.groups if graph.is_imported(name)]
        else:
            groups = [*imported.groups]
            alone = {*imported.documents} & {n.node_id for n in nodes if not _is_document(n)}
            if groups and alone:
                raise ValueError(
                    f"{len(alone)} nodes have no source document, others have one; index them "
                    f"separately, or give all of them a source document: {sorted(alone)[:3]}"
                )
        leaf = groups[-1] if groups else ROOT
        return cls._of(graph, leaf, similarity, vector_store, callback_manager)

    @classmethod
    def _of(
        cls,
        graph: NodeGraph,
        base: str,
        similarity: str | Similarity,
        vector_store: BasePydanticVectorStore | None,
        callback_manager: CallbackManager | None,
    ) -> NodeGraphIndex:
        options: Any = {} if vector_store is None else {"index": as_index(vector_store)}
        search = document_search(
            graph, base=base, similarity=similarity, top_k=DEFAULT_TOP_K, **options
        )
        return cls(graph, search, callback_manager=callback_manager)

    # Searching

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """How the graph is searched: what ``as_retriever(index)`` returns in nodekin."""
        return self._retriever

    def as_retriever(
        self,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
        num_workers: int | None = None,
    ) -> NodeGraphRetriever:
        """Return a LlamaIndex retriever; the arguments are those of ``NodeGraphRetriever``."""
        return NodeGraphRetriever(
            self._retriever,
            similarity_top_k=similarity_top_k,
            filters=filters,
            callback_manager=callback_manager or self._callback_manager,
            verbose=verbose,
            num_workers=num_workers,
        )

    def as_query_engine(self, llm: object = None, **options: Any) -> NodeGraphQueryEngine:
        """Return a query engine; the arguments are those of ``NodeGraphQueryEngine``.

        Args:
            llm: The model; None for ``Settings.llm``, read at each query.
            **options: ``response_mode``, ``text_qa_template``, ``streaming``,
                ``similarity_top_k``, ``filters``, ``node_postprocessors``, ``strategy``,
                ``verbose``, and so on.
        """
        options.setdefault("callback_manager", self._callback_manager)
        return NodeGraphQueryEngine(self, llm, **options)

    def as_chat_engine(
        self,
        chat_mode: ChatMode | str = ChatMode.BEST,
        llm: BaseLLM | None = None,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        **options: Any,
    ) -> BaseChatEngine:
        """Return one of LlamaIndex's chat engines over this index.

        Args:
            chat_mode: ``"condense_plus_context"`` (also ``"best"``), ``"context"`` or
                ``"condense_question"``.
            llm: The model; None for ``Settings.llm``.
            similarity_top_k: How many nodes are retrieved.
            filters: Conditions on metadata.
            **options: Those of the engine: ``memory``, ``system_prompt``,
                ``node_postprocessors``, and so on.

        Raises:
            ValueError: If there is no such mode.
            ImportError: If there is no model.
        """
        model: Any = default_llm() if llm is None else llm
        searched: Any = {"similarity_top_k": similarity_top_k, "filters": filters}
        if chat_mode == ChatMode.CONDENSE_QUESTION:
            engine = self.as_query_engine(model, **searched)
            return CondenseQuestionChatEngine.from_defaults(engine, llm=model, **options)
        context: dict[str, type[CondensePlusContextChatEngine | ContextChatEngine]] = {
            ChatMode.BEST: CondensePlusContextChatEngine,
            ChatMode.CONDENSE_PLUS_CONTEXT: CondensePlusContextChatEngine,
            ChatMode.CONTEXT: ContextChatEngine,
        }
        if chat_mode not in context:
            modes = sorted([*(ChatMode(mode).value for mode in context), "condense_question"])
            raise ValueError(
                f"chat_mode is one of {modes}, not {chat_mode!r}; for an agent give it a "
                "QueryEngineTool of as_query_engine()"
            )
        retriever = self.as_retriever(**searched)
        return context[chat_mode].from_defaults(retriever=retriever, llm=model, **options)

    # Documents

    @property
    def docstore(self) -> NodeGraphDocstore:
        """The graph, read as a docstore."""
        return NodeGraphDocstore(self.graph)

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """The documents by id, each with its metadata and the ids of its nodes."""
        return self.docstore.get_all_ref_doc_info() or {}

    def insert(self, document: Document) -> None:
        """Add a document, or replace the one with its id.

        Raises:
            TypeError: If the index was made of nodes: a document would have none.
        """
        self.refresh_ref_docs([document])

    update_ref_doc = insert

    def refresh_ref_docs(self, documents: Sequence[Document]) -> list[bool]:
        """Add documents that are new, replace those that have changed; all or none.

        Only the nodes of these are derived and embedded again.

        Returns:
            For each document whether it was new or changed.

        Raises:
            TypeError: If the index was made of nodes: a document would have none.
        """
        imported = [name for name in self.graph.groups if self.graph.is_imported(name)]
        if imported:
            raise TypeError(
                f"the groups {imported} are imported nodes, of which new documents have none; "
                "parse them and call import_nodes(index.graph, nodes)"
            )
        before = self.graph.revision(ROOT)
        ids = self.graph.add([*documents])
        changed = {node.id for node in self.graph.changes(ROOT, before).added}
        return [id in changed for id in ids]

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = True) -> None:
        """Remove a document with all of its nodes; an unknown id is a warning in the log.

        Args:
            ref_doc_id: The document's id.
            delete_from_docstore: Has no effect: documents and nodes are stored in one place.
        """
        if find_node(self.graph, ref_doc_id) is None:
            logger.warning("there is no document %r; nothing was removed", ref_doc_id)
            return
        self.graph.remove(ref_doc_id)

    async def ainsert(self, document: Document) -> None:
        """Do what ``insert`` does, in a thread."""
        await asyncio.to_thread(self.insert, document)

    aupdate_ref_doc = ainsert

    async def arefresh_ref_docs(self, documents: Sequence[Document]) -> list[bool]:
        """Do what ``refresh_ref_docs`` does, in a thread."""
        return await asyncio.to_thread(self.refresh_ref_docs, documents)

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = True) -> None:
        """Do what ``delete_ref_doc`` does, in a thread."""
        await asyncio.to_thread(self.delete_ref_doc, ref_doc_id, delete_from_docstore)


class TransformationChain(TransformComponent):
    """Apply transformations one after the other, as LlamaIndex does, as one."""

    transformations: list[Any]

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Return the nodes that the last transformation makes."""
        return run_transformations([*nodes], self.transformations, **kwargs)


def _chain(transformations: Sequence[TransformComponent]) -> TransformComponent:
    if not transformations or isinstance(transformations, TransformComponent):
        raise TypeError(
            "transformations is a list of node parsers and extractors, such as "
            f"[SentenceSplitter()], not {transformations!r:.80}"
        )
    if len(transformations) == 1 and isinstance(transformations[0], NodeParser):
        return transformations[0]
    return TransformationChain(transformations=[*transformations])


def _graph(
    embed_model: object,
    similarity: str | Similarity,
    store: str | Path | NodeStore | None,
    show_progress: bool,
) -> NodeGraph:
    if embed_model is None and get_similarity(similarity).mode == "embedding":
        embed_model = default_embed_model()
    return NodeGraph(embed=embed_model, store=store, progress=show_progress)


def default_embed_model() -> BaseEmbedding:
    """Return ``Settings.embed_model``.

    Raises:
        ImportError: If no model was set, and LlamaIndex's default one is not installed.
    """
    try:
        return Settings.embed_model
    except ImportError as error:
        raise ImportError(
            "there is no embedding model: give one, embed_model=..., set Settings.embed_model, or "
            "search by words, similarity='bm25'; LlamaIndex's default is OpenAI's, whose package "
            "llama-index-embeddings-openai is not installed"
        ) from error


def _is_document(node: BaseNode) -> bool:
    return isinstance(node, Document)
