"""A LlamaIndex index that stores and searches its nodes in a node graph."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from llama_index.core import Document, Settings, StorageContext, chat_engine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.data_structs.registry import INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS
from llama_index.core.embeddings import MockEmbedding, resolve_embed_model
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.ingestion import run_transformations
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, TransformComponent
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.utils import iter_batch
from llama_index.core.vector_stores import MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryMode
from typing_extensions import Unpack

from ...nodegraph.errors import explain_names
from ...nodegraph.foreign_documents import as_document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.base_retriever import Phrases
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.composite.default_settings import sentence_group
from ...retrievers.filters import DOCUMENT_ID, Filters
from ...retrievers.protocols import RetrieverProtocol, Similarity
from ...retrievers.retriever import Retriever
from ...retrievers.similarities.registry import get_similarity
from ...retrievers.validation import whole
from ..argument_types import Embedding, LanguageModel
from ..frameworks import check_names, in_thread
from .docstore import GraphDocstore
from .engine_options import IndexEngineOptions
from .graph_embedding import embedding_of
from .graph_vector_store import NodeGraphVectorStore
from .metadata_filters import as_filters
from .prompt_templates import default_llm
from .query_engine import ENGINE_OPTIONS, NodeGraphQueryEngine
from .query_modes import QueryModeRetriever
from .retriever import NodeGraphRetriever
from .source_documents import NodeDocumentRetriever, PlaceRecords
from .vector_store_backend import as_index

logger = logging.getLogger(__name__)

NODES = "node"

SENTENCES = "sentence"

# For each group to search, the texts whose vectors the default search compares.
_COMPARED: Mapping[str, Literal["both", "passages"]] = {NODES: "passages", SENTENCES: "both"}

_TOP_K = 2  # LlamaIndex's default

_BATCH = 2048  # LlamaIndex's default

_CHAT_ENGINES: dict[ChatMode, Any] = {
    ChatMode.BEST: chat_engine.CondensePlusContextChatEngine,
    ChatMode.CONDENSE_PLUS_CONTEXT: chat_engine.CondensePlusContextChatEngine,
    ChatMode.CONTEXT: chat_engine.ContextChatEngine,
    ChatMode.CONDENSE_QUESTION: chat_engine.CondenseQuestionChatEngine,
    ChatMode.SIMPLE: chat_engine.SimpleChatEngine,
}


@dataclass
class GraphStruct(IndexDict):
    """The record that LlamaIndex's index store keeps about an index.

    Attributes:
        similarity: The similarity. If None, the default search is used.
        group: The name of the group that is searched.
    """

    similarity: str | None = None
    group: str = NODES

    @classmethod
    def get_type(cls) -> Any:
        """Return the name of this type of index."""
        return "nodekin_graph"

    def to_json(self, *args: Any, **options: Any) -> str:
        """Convert the record to JSON. This is faster than the inherited method."""
        return json.dumps(vars(self))


class NodeGraphIndex(BaseIndex[GraphStruct]):
    """A LlamaIndex index that stores its nodes as the documents of a node graph.

    It supports the same operations as ``VectorStoreIndex``: inserting, updating and deleting
    documents and nodes, persisting and loading. The index searches both words and vectors. Results
    are the original nodes, unchanged and of the same class, and their evidence contains the
    matching sentences. Nodes are embedded when they are added, and the sentences of documents at
    the first search. Without an embedding model, only words are searched, and a warning is logged.

    Args:
        nodes: The nodes, which may be of any LlamaIndex class.
        embed_model: An embedding model that ``NodeGraph`` accepts. Defaults to
            ``Settings.embed_model``.
        similarity: The name of a similarity, such as ``"cosine"`` or ``"bm25"``, or a similarity
            object. It also determines the scores. If None, the default search combines words and
            vectors.
        group: The group that is searched: ``"node"``, ``"sentence"``, or another group of
            ``index.graph``. The results are nodes in any case. Defaults to ``"node"``.
        store: The path of a file for the graph. If None, the graph is kept in memory.
        storage_context: The LlamaIndex storage context. If its docstore is empty, it is replaced
            with the docstore of the index. If its vector store is not a ``SimpleVectorStore``, the
            vectors are stored there.
        index_struct: A saved record that ``load_index_from_storage`` passes.
        objects: Index nodes that refer to objects such as other retrievers.
        callback_manager: The LlamaIndex callback manager.
        transformations: The LlamaIndex transformations that split documents into nodes.
        show_progress: Whether to display progress bars.
        insert_batch_size: The number of nodes that are written in one batch.
        use_async: Has no effect, and is only accepted for compatibility with ``VectorStoreIndex``.
            To insert nodes asynchronously, await ``ainsert_nodes``.
        store_nodes_override: Has no effect, because nodes are always stored. It is only accepted
            for compatibility with ``VectorStoreIndex``.

    Attributes:
        graph: The node graph. Each node of the index is a document of the graph.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a similarity that requires vectors is chosen without an embedding model, or
            if the storage context belongs to another index.

    Example:
        >>> from llama_index.core import Document
        >>> documents = [Document(text="Green tea is steamed. Black tea is fermented.")]
        >>> index = NodeGraphIndex.from_documents(documents, similarity="bm25")
        >>> (result,) = index.as_retriever(similarity_top_k=1).retrieve("Which is fermented?")
        >>> result.text, result.evidence[0]["similarity"]
        ('Green tea is steamed. Black tea is fermented.', 'bm25')
    """

    index_struct_cls = GraphStruct

    @explain_names
    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        embed_model: Embedding | str | None = None,
        similarity: str | Similarity | None = None,
        group: str | None = None,
        store: str | Path | None = None,
        storage_context: StorageContext | None = None,
        index_struct: GraphStruct | None = None,
        objects: Sequence[IndexNode] | None = None,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        show_progress: bool = False,
        insert_batch_size: int = _BATCH,
        use_async: bool = False,
        store_nodes_override: bool = False,
    ) -> None:
        context = storage_context or StorageContext.from_defaults()
        name = similarity if isinstance(similarity, str) else None
        self._struct = index_struct or GraphStruct(similarity=name, group=group or NODES)
        self._insert_batch_size = whole(insert_batch_size, "insert_batch_size", 1)
        similarity = self._struct.similarity if similarity is None else similarity
        docstore = context.docstore
        model: object = None
        if not isinstance(docstore, GraphDocstore):
            model = _embed_model(embed_model, similarity, callback_manager)
            self._own = GraphDocstore(NodeGraph(embed=model, store=store, progress=show_progress))
        elif index_struct is not None:
            self._own = docstore
        else:
            raise ValueError(
                "the storage context belongs to another index; create a StorageContext for this "
                "index, or load the index with load_index_from_storage"
            )
        self.graph = self._own.graph
        if isinstance(docstore, SimpleDocumentStore) and not docstore.docs:
            context.docstore = self._own
        self._open(context, similarity)
        is_theirs = isinstance(model, BaseEmbedding)
        self._embed_model = model if is_theirs else embedding_of(self.graph)
        super().__init__(
            nodes if nodes is None else [*nodes],
            objects=objects,
            index_struct=index_struct,
            storage_context=context,
            callback_manager=callback_manager,
            transformations=transformations,
            show_progress=show_progress,
        )
        if index_struct is not None and context.docstore is not self._own:
            self._load(context)

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._share_lock()

    def _share_lock(self) -> None:
        """Use the lock that all indexes of the same graph share."""
        self._lock: Any = self.graph.reader.shared("llama_index lock", threading.RLock)

    def _open(self, context: StorageContext, similarity: str | Similarity | None) -> None:
        """Set the attributes that are required for searching."""
        self._share_lock()
        is_simple = type(context.vector_store) is SimpleVectorStore
        self._index: Any = (
            {} if is_simple else {"index": as_index(context.vector_store, name=NODES)}
        )
        self._retriever = self._search(self._struct.group, similarity)
        self._own.keeps_vectors = self._compares_nodes
        for node_id in self.graph.reader.document_ids():
            self._struct.nodes_dict[node_id] = node_id

    @classmethod
    @explain_names
    def from_documents(  # type: ignore[override]
        cls,
        documents: Sequence[Document],
        storage_context: StorageContext | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        *,
        embed_model: Embedding | str | None = None,
        similarity: str | Similarity | None = None,
        group: str | None = None,
        store: str | Path | None = None,
        objects: Sequence[IndexNode] | None = None,
        insert_batch_size: int = _BATCH,
        use_async: bool = False,
        store_nodes_override: bool = False,
    ) -> NodeGraphIndex:
        """Create an index from documents, which ``transformations`` split into nodes.

        If ``store`` or the storage context already contains documents, only new and changed
        documents are added. Without a ``similarity``, the default ``group`` is ``"sentence"``,
        which means that the vectors of both nodes and their sentences are compared. The class
        describes the other arguments.

        Raises:
            TypeError: If an argument has the wrong type, or ``documents`` contains other objects.
            ValueError: If a similarity that requires vectors is chosen without an embedding model,
                or if the storage context belongs to another index.
        """
        if similarity is None and group is None:
            group = SENTENCES
        manager = callback_manager or Settings.callback_manager
        with manager.as_trace("index_construction"):
            index = cls(
                [],
                embed_model=embed_model,
                similarity=similarity,
                group=group,
                store=store,
                storage_context=storage_context,
                objects=objects,
                callback_manager=manager,
                transformations=transformations,
                show_progress=show_progress,
                insert_batch_size=insert_batch_size,
            )
            index._refresh(documents)
        return index

    @classmethod
    @explain_names
    def from_vector_store(
        cls,
        vector_store: BasePydanticVectorStore,
        embed_model: Embedding | str | None = None,
    ) -> NodeGraphIndex:
        """Return the index to which a ``NodeGraphVectorStore`` belongs.

        Args:
            vector_store: The vector store.
            embed_model: Has no effect, because the index already has an embedding model. It is only
                accepted for compatibility with ``VectorStoreIndex``.

        Raises:
            TypeError: If a different type of vector store is given, because such a store contains
                only vectors. The message explains what to write instead.
        """
        if isinstance(vector_store, NodeGraphVectorStore):
            return cast("NodeGraphIndex", vector_store.index)
        given = type(vector_store).__name__
        raise TypeError(
            f"from_vector_store requires a NodeGraphVectorStore, got {given}; nodekin searches "
            "the texts as well, so write NodeGraphIndex.from_documents(documents, storage_context="
            "StorageContext.from_defaults(vector_store=vector_store)): the vectors stay in your "
            "store"
        )

    # Search

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The underlying nodekin retriever of the index."""
        return self._retriever

    @property
    def vector_store(self) -> NodeGraphVectorStore:
        """The nodes of the index as a LlamaIndex vector store with several query modes."""
        return NodeGraphVectorStore(self)

    @explain_names
    def as_retriever(  # type: ignore[override]
        self,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        max_tokens: int | None = None,
        min_score: float | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        similarity: str | Similarity | None = None,
        group: str | None = None,
        node_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
        vector_store_query_mode: VectorStoreQueryMode | str | None = None,
        alpha: float | None = None,
        sparse_top_k: int | None = None,
        hybrid_top_k: int | None = None,
        vector_store_kwargs: Mapping[str, float] | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> NodeGraphRetriever:
        """Create a retriever for the index.

        Args:
            similarity_top_k: The maximum number of results. Defaults to 2.
            filters: Conditions on metadata, which are checked before ranking.
            max_tokens: The maximum total number of tokens of all results. If it is set, excerpts of
                the source documents are returned.
            min_score: The minimum score.
            phrases: How quoted phrases in the query are handled: ``"first"`` or ``"required"``.
            weights: The weights of words and vectors in the default search.
            similarity: A similarity that overrides the similarity of the index.
            group: A group that overrides the group of the index.
            node_ids: The ids of the nodes to which the search is limited.
            doc_ids: The ids of the source documents to which the search is limited.
            vector_store_query_mode: A query mode of ``NodeGraphVectorStore``, such as ``"mmr"``,
                that is used instead of a similarity.
            alpha: The weight of vectors in the mode ``"hybrid"``, from 0 to 1.
            sparse_top_k: The number of results of the word search that the mode ``"hybrid"``
                combines with the vector search.
            hybrid_top_k: The number of results of the mode ``"hybrid"``. Defaults to
                ``similarity_top_k``.
            vector_store_kwargs: A mapping that may contain LlamaIndex's option ``mmr_threshold``.
            callback_manager: The LlamaIndex callback manager.
            verbose: Whether to print verbose output.

        Raises:
            TypeError: If an argument is unknown.
            ValueError: If an option requires a query mode, or has an invalid value.
        """
        of_mode: dict[str, Any] = {
            "alpha": alpha,
            "sparse_top_k": sparse_top_k,
            "hybrid_top_k": hybrid_top_k,
            **(vector_store_kwargs or {}),
        }
        given = {name: value for name, value in of_mode.items() if value is not None}
        search = self._retriever
        if vector_store_query_mode is not None:
            check_names("vector_store_kwargs", vector_store_kwargs or {}, ["mmr_threshold"])
            search = self.search_of_mode(vector_store_query_mode, **given)
        elif given:
            raise ValueError(
                f"{sorted(given)} require a vector_store_query_mode, such as "
                'vector_store_query_mode="hybrid"'
            )
        elif similarity is not None or group is not None:
            search = self._search(group or NODES, similarity)
        retriever = NodeGraphRetriever(
            search,
            similarity_top_k=similarity_top_k,
            filters=as_filters(filters, self.nodes_of),
            max_tokens=max_tokens,
            min_score=min_score,
            phrases=phrases,
            weights=weights,
            callback_manager=callback_manager or self._callback_manager,
            object_map=self._object_map,
            verbose=verbose,
        )
        if node_ids is not None:
            retriever = retriever.narrowed({DOCUMENT_ID: {"in": [*node_ids]}})
        if doc_ids is not None:
            retriever = retriever.narrowed({DOCUMENT_ID: {"in": self.nodes_of(*doc_ids)}})
        return retriever

    def search_of_mode(
        self,
        mode: VectorStoreQueryMode | str,
        *,
        top_k: int = _TOP_K,
        alpha: float | None = None,
        mmr_threshold: float | None = None,
        sparse_top_k: int | None = None,
        hybrid_top_k: int | None = None,
    ) -> QueryModeRetriever:
        """Return a retriever for a vector store query mode, such as ``"hybrid"`` or ``"mmr"``."""
        return QueryModeRetriever(
            self.graph,
            self._retriever,
            mode,
            top_k=top_k,
            alpha=alpha,
            mmr_threshold=mmr_threshold,
            sparse_top_k=sparse_top_k,
            hybrid_top_k=hybrid_top_k,
            **self._index,
        )

    def nodes_of(self, *ref_doc_ids: str) -> list[str]:
        """Return the ids of the nodes that belong to the given source documents."""
        ids: list[str] = []
        for ref_doc_id in ref_doc_ids:
            ids += self._own.nodes_of(ref_doc_id)
        return ids

    def as_query_engine(  # type: ignore[override]
        self, llm: LanguageModel | None = None, **kwargs: Unpack[IndexEngineOptions]
    ) -> NodeGraphQueryEngine:
        """Create a query engine for the index.

        Args:
            llm: The language model. Defaults to ``Settings.llm``.
            **kwargs: Arguments of ``as_retriever`` and of ``NodeGraphQueryEngine``.

        Raises:
            TypeError: If an argument is unknown.
        """
        of_search = inspect.signature(self.as_retriever).parameters
        of_engine = inspect.signature(NodeGraphQueryEngine).parameters
        check_names("NodeGraphIndex.as_query_engine", kwargs, {**of_search, **of_engine})
        search: dict[str, Any] = {}
        answer: dict[str, Any] = {}
        for name, value in kwargs.items():
            target = search if name in of_search and name not in of_engine else answer
            target[name] = value
        if "filters" in answer:
            answer["filters"] = as_filters(answer["filters"], self.nodes_of)
        return NodeGraphQueryEngine(self.as_retriever(**search), llm, **answer)

    def as_chat_engine(  # type: ignore[override]
        self,
        chat_mode: ChatMode | str = ChatMode.BEST,
        llm: BaseLLM | None = None,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        **kwargs: Any,
    ) -> BaseChatEngine:
        """Create one of LlamaIndex's chat engines for the index.

        Args:
            chat_mode: ``"condense_plus_context"``, its synonym ``"best"``, ``"context"``,
                ``"condense_question"`` or ``"simple"``.
            llm: The language model. Defaults to ``Settings.llm``.
            similarity_top_k: The maximum number of retrieved nodes.
            filters: Conditions on metadata.
            **kwargs: Arguments of the chat engine, such as ``memory`` or ``system_prompt``. In the
                mode ``"condense_question"``, arguments of ``NodeGraphQueryEngine``, such as
                ``node_postprocessors``, are accepted as well.

        Raises:
            ValueError: If the mode is unknown.
            ImportError: If the package of the default language model is not installed.
        """
        if chat_mode not in _CHAT_ENGINES:
            modes = ", ".join(mode.value for mode in _CHAT_ENGINES)
            raise ValueError(
                f"chat_mode must be one of {modes}, got {chat_mode!r}; for an agent use a "
                "QueryEngineTool of as_query_engine()"
            )
        kwargs["llm"] = default_llm() if llm is None else llm
        retriever = self.as_retriever(similarity_top_k=similarity_top_k, filters=filters)
        if chat_mode == ChatMode.CONDENSE_QUESTION:
            of_engine = {name: kwargs.pop(name) for name in ENGINE_OPTIONS & kwargs.keys()}
            kwargs["query_engine"] = NodeGraphQueryEngine(retriever, kwargs["llm"], **of_engine)
        elif chat_mode != ChatMode.SIMPLE:
            kwargs["retriever"] = retriever
        engine: BaseChatEngine = _CHAT_ENGINES[ChatMode(chat_mode)].from_defaults(**kwargs)
        return engine

    def _search(self, group: str, similarity: str | Similarity | None) -> RetrieverProtocol:
        graph = self.graph
        keys = list(graph.embeddings.embedders)
        if similarity is None and (group in _COMPARED or not keys):
            return self._default_search(group)
        compares_vectors = _compares_vectors(similarity)
        options = self._index if keys and compares_vectors else {}
        sentences = sentence_group(graph, ROOT)
        searched = {NODES: ROOT, SENTENCES: sentences}.get(group, group)
        chosen = similarity or "cosine"
        return Retriever(graph, searched, chosen, target=ROOT, top_k=_TOP_K, **options)

    def _default_search(self, group: str) -> RetrieverProtocol:
        """Return the default search.

        If the index contains nodes with equal texts, all are returned.
        """
        keys = list(self.graph.embeddings.embedders)
        options: dict[str, Any] = {"embed_keys": keys, **self._index} if keys else {}
        search = DefaultRetriever(
            self.graph,
            ROOT,
            top_k=_TOP_K,
            vectors=_COMPARED.get(group, "both"),
            collapse=group != NODES,
            **options,
        )
        return NodeDocumentRetriever(search, self.graph, options)

    # Nodes and documents

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """The source documents, keyed by id, with their metadata and the ids of their nodes."""
        infos = self._docstore.get_all_ref_doc_info() or {}
        ids = self._struct.nodes_dict.keys()
        return {i: info for i, info in infos.items() if not ids.isdisjoint(info.node_ids)}

    def build_index_from_nodes(self, nodes: Sequence[BaseNode], **build_kwargs: Any) -> GraphStruct:
        """Add the initial nodes to the index.

        Raises:
            TypeError: If an argument is unknown.
        """
        check_names("build_index_from_nodes", build_kwargs, ())
        self._insert(nodes)
        return self._struct

    _build_index_from_nodes = build_index_from_nodes

    def insert(self, document: Document, **insert_kwargs: Any) -> None:
        """Split a document into nodes, and add these nodes to the index."""
        super().insert(document, **insert_kwargs)
        self._keep_places(document)

    async def ainsert(self, document: Document, **insert_kwargs: Any) -> None:
        """Async version of ``insert``."""
        await super().ainsert(document, **insert_kwargs)
        await asyncio.to_thread(self._keep_places, document)

    def _keep_places(self, document: Document) -> None:
        """Store the position of each node in its source document, which is needed for windows."""
        # this includes nodes that were deleted from the index
        ids = self._own.nodes_of(document.node_id)
        nodes = self._own.get_nodes([*self.graph.reader.existing_documents(ids)])
        PlaceRecords(self.graph).put([document], nodes)

    def insert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """Add nodes to the index. Nodes with existing ids are replaced."""
        with self._callback_manager.as_trace("insert_nodes"):
            self.put_nodes(nodes)

    def put_nodes(self, nodes: Sequence[BaseNode]) -> None:
        """Add nodes like ``insert_nodes``, but without creating a LlamaIndex trace."""
        self._insert(nodes)
        self._storage_context.index_store.add_index_struct(self._struct)

    def _insert(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        given = {node.node_id: node for node in nodes if node.get_content(MetadataMode.EMBED)}
        self._embed(given)
        stored = [self._without_object(node) for node in given.values()]
        with self._lock:
            for batch in iter_batch(stored, self._insert_batch_size):
                for docstore in self._docstores():
                    docstore.add_documents(batch, allow_update=True)
                self.graph.add([as_document(node) for node in batch])
            self._put_vectors(given)
            self._struct.nodes_dict.update((node_id, node_id) for node_id in given)

    @property
    def _compares_nodes(self) -> bool:
        """Whether searches compare the vectors of nodes. The default search always does."""
        return self._struct.group == NODES or self._struct.similarity is None

    def _embed(self, given: Mapping[str, BaseNode]) -> None:
        """Compute missing vectors of nodes if searches compare them."""
        if not self._compares_nodes:
            return
        texts = [
            node.get_content(MetadataMode.EMBED)
            for node in given.values()
            if node.embedding is None
        ]
        for key in self.graph.embeddings.embedders:
            self.graph.embeddings.vectors(texts, key, what="nodes")

    def _without_object(self, node: BaseNode) -> BaseNode:
        """Return a copy of a node without its vector.

        If the node refers to an object that cannot be stored, the object is kept in memory.
        """
        changes: dict[str, Any] = {"embedding": None}
        if isinstance(node, IndexNode) and not isinstance(node.obj, BaseNode | None):
            self._object_map[node.index_id] = node.obj
            changes["obj"] = None
        return node.model_copy(update=changes)

    def _put_vectors(self, given: dict[str, BaseNode]) -> None:
        """Store the vectors of nodes for each embedding model of the graph."""
        ids = [i for i, node in given.items() if node.embedding is not None]
        nodes = self.graph.reader.existing_nodes(ids)
        texts = self.graph.reader.searched_texts(nodes)
        for key in self.graph.embeddings.embedders:
            self.graph.embeddings.put(texts, [given[node.id].embedding for node in nodes], key)

    def _docstores(self) -> list[Any]:
        """Return the docstore of the index.

        If the storage context has a different docstore, it is returned as well.
        """
        return [self._own] if self._docstore is self._own else [self._own, self._docstore]

    def delete_nodes(
        self, node_ids: Sequence[str], delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """Delete nodes from the index. Unknown ids are ignored.

        Args:
            node_ids: The ids of the nodes.
            delete_from_docstore: Whether to delete the nodes from the docstore as well.
            **delete_kwargs: Ignored.
        """
        with self._lock:
            self._remove(node_ids)
            for docstore in self._docstores() if delete_from_docstore else ():
                for node_id in node_ids:
                    docstore.delete_document(node_id, raise_error=False)

    def delete_ref_doc(
        self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """Delete the nodes of a source document. If the id is unknown, a warning is logged.

        Args:
            ref_doc_id: The id of the source document.
            delete_from_docstore: Whether to delete the document from the docstore as well.
            **delete_kwargs: Ignored.
        """
        with self._lock:
            if not self._own.ref_doc_exists(ref_doc_id):
                logger.warning("there is no document %r, nothing was deleted", ref_doc_id)
                return
            self._remove(self._own.nodes_of(ref_doc_id))
            for docstore in self._docstores() if delete_from_docstore else ():
                docstore.delete_ref_doc(ref_doc_id, raise_error=False)

    def _remove(self, ids: Collection[str]) -> None:
        if existing := self.graph.reader.existing_documents(ids):
            self.graph.remove([*existing])
        for node_id in ids:
            self._struct.nodes_dict.pop(node_id, None)
        self._storage_context.index_store.add_index_struct(self._struct)

    def _delete_node(self, node_id: str, **others: Any) -> None:
        self._remove([node_id])

    def refresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        """Add new documents, and replace documents that have changed.

        Returns:
            A boolean for each document that is True if the document was new or changed.
        """
        with self._callback_manager.as_trace("refresh_ref_docs"):
            return self._refresh(documents)

    def _refresh(self, documents: Sequence[Document]) -> list[bool]:
        for document in documents:
            if not isinstance(document, BaseNode):
                raise TypeError(
                    f"documents must be LlamaIndex documents, got {document!r:.80}; for a text, "
                    "use Document(text=...)"
                )
        hashes = {document.id_: document.hash for document in documents}
        stored = {i: self._docstore.get_document_hash(i) for i in hashes}
        changed = [d for d in documents if stored[d.id_] != hashes[d.id_]]
        if changed:
            nodes = run_transformations(
                [*changed], self._transformations, show_progress=self._show_progress
            )
            for document_id in {d.id_ for d in changed if stored[d.id_] is not None}:
                self.delete_ref_doc(document_id, delete_from_docstore=True)
            PlaceRecords(self.graph).put(changed, nodes)
            self.insert_nodes(nodes)
            for document in changed:
                self._docstore.set_document_hash(document.id_, hashes[document.id_])
        return [stored[d.id_] != hashes[d.id_] for d in documents]

    ainsert_nodes = in_thread(insert_nodes)
    adelete_nodes = in_thread(delete_nodes)
    adelete_ref_doc = in_thread(delete_ref_doc)
    arefresh_ref_docs = in_thread(refresh_ref_docs)

    def _load(self, context: StorageContext) -> None:
        """Load the nodes of a persisted index."""
        docstore = context.docstore
        if isinstance(docstore, SimpleDocumentStore):
            for collection, records in docstore.to_dict().items():
                self._own.records.put_all([*records.items()], collection)
            context.docstore = self._docstore = self._own
        self._insert(docstore.get_nodes([*self._struct.nodes_dict], raise_error=False))


def _compares_vectors(similarity: str | Similarity | None) -> bool:
    return similarity is None or get_similarity(similarity).mode == "embedding"


def _embed_model(
    given: Embedding | str | None,
    similarity: str | Similarity | None,
    manager: CallbackManager | None,
) -> object:
    """Return the embedding model, or None if only words are searched."""
    if similarity is not None and not _compares_vectors(similarity):
        return None
    if given is not None:
        if isinstance(given, str | BaseEmbedding):
            return resolve_embed_model(given, callback_manager=manager)
        return given
    try:
        model = Settings.embed_model
    # the default model of LlamaIndex is not installed or has no API key
    except (ImportError, ValueError):
        model = None
    # With Settings.embed_model = None, LlamaIndex uses a mock model with one dimension.
    if model is not None and not (isinstance(model, MockEmbedding) and model.embed_dim == 1):
        return model
    if similarity is not None:
        raise ValueError(
            f"similarity={similarity!r} requires an embedding model: pass embed_model=..., set "
            "Settings.embed_model, or use similarity='bm25'"
        )
    logger.warning("there is no embedding model, so the index searches by words")
    return None


INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS[GraphStruct.get_type()] = GraphStruct
INDEX_STRUCT_TYPE_TO_INDEX_CLASS[GraphStruct.get_type()] = NodeGraphIndex
