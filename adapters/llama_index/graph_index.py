"""Use a graph as LlamaIndex users use an index: from documents, as retriever, as engine."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.data_structs.data_structs import IndexStruct
from llama_index.core.data_structs.registry import INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.storage.index_store import SimpleIndexStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import MetadataFilters

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.filters import Filters
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.protocols import RetrieverLike, RetrieverProtocol
from ..frameworks import in_thread
from .docstore import DOCUMENTS, NodeGraphDocstore
from .document_graph import (
    CHUNKS,
    GraphOptions,
    embed_model_of,
    graph_of_documents,
    graph_of_nodes,
    objects_of,
)
from .import_export import (
    EMBEDDED_NODES,
    NODES,
    delete_flat,
    import_flat,
    import_nodes,
    put_documents,
    with_image_vectors,
)
from .nodes import find_node, id_in_llama_index, to_document
from .prompt_templates import default_llm
from .query_engine import EngineOptions, NodeGraphQueryEngine
from .retriever import NodeGraphRetriever

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)


@dataclass
class GraphStruct(IndexStruct):
    """What LlamaIndex's index store knows of an index, so that it can be loaded.

    Attributes:
        of_documents: Whether it was made of documents.
        nodes: The ids of its nodes in a docstore that has others, too.
        similarity: By what it is searched. None for the default, or an object.
    """

    of_documents: bool = True
    nodes: list[str] | None = None
    similarity: str | None = None

    @classmethod
    def get_type(cls) -> Any:
        """Return the name of this kind."""
        return "nodekin_graph"


def _load(
    index_struct: GraphStruct, storage_context: StorageContext, **options: Any
) -> NodeGraphIndex:
    """Make an index of what is in a storage context, for ``load_index_from_storage``.

    The context is changed once the index is there: after an error it has everything still.
    """
    options = {"similarity": index_struct.similarity, **options}
    docstore: Any = storage_context.docstore
    is_graph = isinstance(docstore, NodeGraphDocstore)
    stored: Any
    if not index_struct.of_documents:
        ids = index_struct.nodes
        stored = [*docstore.docs.values()] if ids is None else docstore.get_nodes(ids)
    elif is_graph:
        stored = [*map(to_document, docstore.graph.nodes(ROOT))]
    else:
        stored = [*SimpleDocumentStore.from_dict(docstore.to_dict(), DOCUMENTS).docs.values()]
    if index_struct.of_documents or is_graph:
        docstore = SimpleDocumentStore()  # that of the new graph replaces it
    context = replace(storage_context, docstore=docstore, index_store=SimpleIndexStore())
    make: Any = NodeGraphIndex.from_documents if index_struct.of_documents else NodeGraphIndex
    index: NodeGraphIndex = make(stored, storage_context=context, **options)
    index._struct.index_id = index_struct.index_id
    storage_context.docstore = context.docstore
    index._keep_in(storage_context)
    return index


INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS[GraphStruct.get_type()] = GraphStruct
INDEX_STRUCT_TYPE_TO_INDEX_CLASS[GraphStruct.get_type()] = _load  # type: ignore[assignment]


class NodeGraphIndex:
    """Use a graph as LlamaIndex's indexes are used: documents in, retrievers and engines out.

    ``from_documents`` makes a graph with two groups: ``"chunk"``, by the transformations, and
    ``"chunk sentence"`` below it. Chunks are the results, each once, and ``evidence`` says which
    sentence matched. It is searched by a ``DefaultRetriever``: the words of chunks and of
    sentences, and the vectors of sentences as far as they can be trusted, are fused. For other
    groups, similarities, fusions, rerankers and strategies pass a graph and a retriever: the
    methods are the same.

    It is no ``BaseIndex``. The graph is stored as a whole, in one file:
    ``from_documents([], store="tea.nodekin")`` opens it again. Nothing is embedded before the
    first search, and nothing twice. ``storage_context`` has the nodes for what reads them there.

    Args:
        nodes: The nodes, as for ``from_nodes``; or a node graph.
        retriever: How a graph is searched: any nodekin retriever, or what ``as_retriever``
            takes. None for the default search.
        callback_manager: As everywhere in LlamaIndex.
        **options: Those of ``from_nodes``.

    Attributes:
        graph: The node graph, to add groups to and to search in other ways.

    Raises:
        TypeError: If an argument has the wrong type.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> documents = [Document(text="Green tea is steamed. Black tea is fermented.")]
        >>> index = NodeGraphIndex.from_documents(documents, similarity="bm25")
        >>> (result,) = index.as_retriever(similarity_top_k=1).retrieve("Which is fermented?")
        >>> result.text, result.evidence[0]["similarity"]
        ('Green tea is steamed. Black tea is fermented.', 'bm25')
        >>> engine = index.as_query_engine(llm=MockLLM(), response_mode="compact")
        >>> len(engine.query("Which is fermented?").source_nodes)
        1
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | NodeGraph,
        retriever: RetrieverLike | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[GraphOptions],
    ) -> None:
        self._groups: Sequence[str] | None = None
        self._objects: dict[str, Any] = {}
        self._embed_model: object = None
        self._is_docstore = False  # whether the docstore of the storage context is the graph
        given: Sequence[BaseNode] = ()
        if not isinstance(nodes, NodeGraph):
            given = _checked_nodes(nodes, retriever)
            self._objects = objects_of(given)
            self.graph, retriever = graph_of_nodes(given, **options)
            self._embed_model = embed_model_of(options)
            self._groups = [getattr(retriever, "target", EMBEDDED_NODES)]
        elif options:
            raise TypeError(f"{sorted(options)} are for nodes; the graph has its models and store")
        else:
            self.graph = nodes
        self._retriever = as_retriever(self.graph if retriever is None else retriever, "retriever")
        self._callback_manager = callback_manager
        self._struct = GraphStruct(of_documents=False)
        self._start_keeping(options, given)

    def __repr__(self) -> str:
        return f"NodeGraphIndex({self.graph!r}, {self._retriever!r})"

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[GraphOptions],
    ) -> NodeGraphIndex:
        """Make an index of documents; add more, or the changed ones, if the store has some.

        Args:
            documents: LlamaIndex's documents; their metadata is searched as declared by them.
            callback_manager: As everywhere in LlamaIndex.
            **options: ``embed_model``, ``similarity``, ``transformations``, ``vector_store``,
                ``storage_context``, ``store``, ``show_progress``: see ``GraphOptions``.

        Raises:
            ImportError: If a model is needed, none was given or set, and LlamaIndex's default one
                is not installed.
            TypeError: If an option is unknown or has the wrong type.
            ValueError: If something of the storage context would not be used.
        """
        graph, search = graph_of_documents(documents, **options)
        index = cls(graph, search, callback_manager=callback_manager)
        index._groups = [CHUNKS]
        index._struct.of_documents = True
        index._start_keeping(options)
        return index

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[GraphOptions],
    ) -> NodeGraphIndex:
        """Make an index of nodes, as a parser or an ``IngestionPipeline`` returns them.

        All of them are searched, by themselves and by their sentences, and are the results, with
        their ids, metadata, relationships and classes: an ``IndexNode`` is found like what it
        stands for, and leads LlamaIndex's ``RecursiveRetriever`` there. Its ``obj`` is followed by
        this index itself. Where nodes have embeddings, these are searched and not those of
        sentences. They have to be of the embedding model. Media are kept with their nodes, which
        are found by their texts, and images by their vectors, too, where the embedding model is a
        ``MultiModalEmbedding``. ``import_nodes`` makes a group of each level.

        Args:
            nodes: The nodes. Parents that are to be merged but not found stay in the docstore of
                ``storage_context``.
            callback_manager: As in ``from_documents``.
            **options: As in ``from_documents``, without ``transformations``.

        Raises:
            ValueError: If two nodes differ under one id, or as in ``from_documents``.
            ImportError: As ``from_documents`` does.
            TypeError: As ``from_documents`` does.
        """
        return cls(nodes, callback_manager=callback_manager, **options)

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
        **others: object,
    ) -> NodeGraphRetriever:
        """Return a LlamaIndex retriever; the arguments are those of ``NodeGraphRetriever``.

        Raises:
            TypeError: If there is another argument. It says what replaces those of LlamaIndex's.
        """
        _check_replaced("as_retriever", others)
        if others:
            raise TypeError(
                f"as_retriever has no argument {min(others)!r}; it has similarity_top_k, filters, "
                "verbose and num_workers"
            )
        return NodeGraphRetriever(
            self._retriever,
            similarity_top_k=similarity_top_k,
            filters=filters,
            callback_manager=callback_manager or self._callback_manager,
            object_map=self._objects,
            verbose=verbose,
            num_workers=num_workers,
        )

    def as_query_engine(
        self, llm: object = None, **options: Unpack[EngineOptions]
    ) -> NodeGraphQueryEngine:
        """Return a query engine; the arguments are those of ``NodeGraphQueryEngine``.

        Args:
            llm: The model. None for ``Settings.llm``, read at each query.
            **options: ``response_mode``, ``text_qa_template``, ``streaming``,
                ``similarity_top_k``, ``filters``, ``node_postprocessors``, ``strategy``,
                ``verbose``, and so on.
        """
        _check_replaced("as_query_engine", options)
        options.setdefault("callback_manager", self._callback_manager)
        engine = NodeGraphQueryEngine(self, llm, **options)
        engine.retriever.object_map = self._objects
        return engine

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
            llm: The model. None for ``Settings.llm``.
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
            # LlamaIndex's chat engine streams only what its own query engine answers.
            engine = RetrieverQueryEngine.from_args(self.as_retriever(**searched), llm=model)
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
        return NodeGraphDocstore(self.graph, self._groups)

    @property
    def storage_context(self) -> StorageContext:
        """A storage context whose docstore is the graph, the one that was given or a new one.

        ``persist`` writes documents and nodes as JSON, which LlamaIndex's
        ``load_index_from_storage`` reads, with the options that the index was made with. It writes
        no vectors, and says so in the log: ``store="tea.nodekin"`` keeps everything.
        """
        if self._storage_context is None:
            if self._groups is None:
                logger.warning(
                    "the storage context has the nodes of the graph, and not how it is searched; "
                    "load_index_from_storage finds no index in it"
                )
            self._keep_in(StorageContext.from_defaults(docstore=self.docstore))
        elif self._is_replaced(self._storage_context):
            self._keep_in(self._storage_context)
        return cast(StorageContext, self._storage_context)

    def _start_keeping(self, options: GraphOptions, nodes: Sequence[BaseNode] = ()) -> None:
        if isinstance(similarity := options.get("similarity"), str):
            self._struct.similarity = similarity
        self._keep_in(options.get("storage_context"), nodes)

    def _keep_in(self, context: StorageContext | None, nodes: Sequence[BaseNode] = ()) -> None:
        """Put the index, and nodes that the context does not have, into a storage context."""
        if context is not None and self._is_replaced(context):
            store = SimpleIndexStore()
            context = replace(context, docstore=self.docstore, index_store=store)
        self._storage_context = context
        if context is None or self._groups is None:
            return
        docstore = context.docstore
        if not isinstance(docstore, NodeGraphDocstore):
            docstore.add_documents(nodes, allow_update=True)
        elif docstore.graph is self.graph:
            self._is_docstore = True
        if not self._is_docstore:
            self._struct.nodes = [*map(id_in_llama_index, self.graph.nodes(self._groups[0]))]
        context.index_store.add_index_struct(self._struct)

    def _is_replaced(self, context: StorageContext) -> bool:
        """Return whether the docstore was the graph, until another index of it was loaded."""
        graph = getattr(context.docstore, "graph", self.graph)
        return self._is_docstore and graph is not self.graph

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

    def insert_nodes(self, nodes: Sequence[BaseNode]) -> None:
        """Add nodes to an index of nodes, or replace those with their ids.

        The other nodes of their documents stay. Vectors that the nodes carry are searched if the
        index was made of nodes with vectors, or its model embeds images. Otherwise the log warns.

        Raises:
            TypeError: If the index was made of documents, which are split into its nodes.
        """
        group = self._flat_group("add documents: insert(document), refresh_ref_docs(documents)")
        with_vectors = group == EMBEDDED_NODES
        carrying = [node.node_id for node in nodes if node.embedding is not None]
        if with_vectors:
            nodes = with_image_vectors(nodes, self._embed_model)
        elif carrying and self.graph.embeddings.embedders:
            logger.warning(
                "%s are found by their texts alone: the index was made of nodes without vectors; "
                "make one of all nodes for theirs",
                ", ".join(carrying),
            )
        if group is None:
            import_nodes(self.graph, nodes)
        else:
            import_flat(self.graph, nodes, use_vectors=with_vectors)
        self._keep_in(self._storage_context, nodes)

    def delete_nodes(self, node_ids: Sequence[str], delete_from_docstore: bool = False) -> None:
        """Delete nodes from an index of nodes by their ids; unknown ids are skipped.

        The other nodes of their documents stay. A document without nodes is deleted.

        Args:
            node_ids: The ids.
            delete_from_docstore: Whether to delete the nodes also from the docstore of a given
                ``storage_context``.

        Raises:
            TypeError: If the index was not made of nodes.
        """
        group = self._flat_group("delete documents: delete_ref_doc(ref_doc_id)")
        if group is None:
            raise TypeError(
                "the index searches a graph, whose nodes follow from its documents; delete "
                "documents: delete_ref_doc(ref_doc_id)"
            )
        delete_flat(self.graph, node_ids, use_vectors=group == EMBEDDED_NODES)
        self._keep_in(self._storage_context)
        docstore = getattr(self._storage_context, "docstore", None)
        if delete_from_docstore and docstore and not isinstance(docstore, NodeGraphDocstore):
            for node_id in node_ids:
                docstore.delete_document(node_id, raise_error=False)

    def _flat_group(self, remedy: str) -> str | None:
        if CHUNKS in self.graph.groups:
            raise TypeError(
                f"the index was made of documents, whose nodes its transformations make; {remedy}"
            )
        return next((name for name in (NODES, EMBEDDED_NODES) if name in self.graph.groups), None)

    def refresh_ref_docs(self, documents: Sequence[Document]) -> list[bool]:
        """Add documents that are new, replace those that have changed; all or none.

        Only the nodes of these are derived and embedded again.

        Returns:
            For each document whether it was new or changed.

        Raises:
            TypeError: If the index was made of nodes: a document would have none.
        """
        imported = [name for name in self.graph.groups if name in self.graph.imports]
        if imported:
            raise TypeError(
                f"the groups {imported} are imported nodes, of which new documents have none; "
                "parse them and call import_nodes(index.graph, nodes)"
            )
        before = self.graph.reader.revision(ROOT)
        ids = put_documents(self.graph, documents)
        changed = {node.id for node in self.graph.reader.changes(ROOT, before).added}
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
        self._keep_in(self._storage_context)

    ainsert = aupdate_ref_doc = in_thread(insert)
    arefresh_ref_docs = in_thread(refresh_ref_docs)
    adelete_ref_doc = in_thread(delete_ref_doc)
    ainsert_nodes = in_thread(insert_nodes)
    adelete_nodes = in_thread(delete_nodes)


_REPLACED = {
    "vector_store_query_mode": "an index compares words and vectors, or one of them: "
    "NodeGraphIndex.from_documents(documents, similarity='bm25' or 'cosine'); for results that "
    "differ use node_postprocessors=[NodeGraphReranker('NearDuplicateFilter')]",
    "doc_ids": "filter by documents: filters={'document.id': {'in': [...]}}",
    "node_ids": "filter by the nodes' ids: filters={'llama_index_id': {'in': [...]}}",
    "alpha": "weigh words and vectors in nodekin's FusionRetriever(..., weights=[...])",
}
"""What replaces arguments of LlamaIndex's ``VectorStoreIndex.as_retriever``."""


def _check_replaced(method: str, options: Iterable[str]) -> None:
    for name in _REPLACED.keys() & set(options):
        raise TypeError(f"{method} has no argument {name!r}; {_REPLACED[name]}")


def _checked_nodes(nodes: Any, retriever: object) -> Sequence[BaseNode]:
    if isinstance(nodes, BaseNode | str) or not isinstance(nodes, Sequence) or retriever:
        raise TypeError(
            f"nodes is a list of nodes without a retriever, or a NodeGraph, not {nodes!r:.80}; "
            "of documents make an index with NodeGraphIndex.from_documents"
        )
    checked: Sequence[BaseNode] = nodes
    return checked
