"""Make a graph, and the search of it, of what LlamaIndex users begin with: documents or nodes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import MockEmbedding, MultiModalEmbedding
from llama_index.core.ingestion import run_transformations
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, IndexNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...nodegraph.storage.graph_store import GraphStore
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.composite.fusion import FusionRetriever
from ...retrievers.protocols import RetrieverProtocol, Similarity
from ...retrievers.retriever import Retriever
from ...retrievers.similarities.registry import get_similarity
from ..frameworks import document_search
from .docstore import NodeGraphDocstore
from .import_export import (
    EMBEDDED_NODES,
    images_without_vectors,
    import_flat,
    put_documents,
    with_image_vectors,
)
from .ingestion import as_transform
from .vector_store_backend import as_index

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

CHUNKS = "chunk"
"""The group that the transformations make."""

DEFAULT_TOP_K = 2
"""How many results there are by default; LlamaIndex's own number."""


class GraphOptions(TypedDict, total=False):
    """The options of the first lines, to type ``**options``.

    Attributes:
        embed_model: The embedding model, LlamaIndex's or any that ``NodeGraph`` takes; None
            for ``Settings.embed_model``, which is not read if words alone are compared.
        similarity: None for words and vectors, fused, or words alone where the program has set
            ``Settings.embed_model = None``; ``"bm25"`` (or any other of words) for the words of
            chunks alone, for which no model is needed; ``"cosine"`` for vectors of sentences
            alone. Scores are then those of the similarity.
        transformations: Of documents: what makes chunks, one after the other: a node parser, then
            extractors. None for ``Settings.transformations``, that is ``Settings.node_parser``.
            They run when the chunks are needed, once for each document.
        vector_store: Holds and searches the vectors, instead of the built-in index.
        storage_context: Its vector store is used like ``vector_store``, unless words alone are
            compared; its docstore, which has to be a new one, becomes a ``NodeGraphDocstore`` of
            the graph, so that what reads it (``AutoMergingRetriever``, ``persist``) has the nodes.
        store: Where the graph is stored: a path; memory by default.
        show_progress: Whether progress bars are drawn.
    """

    embed_model: object
    similarity: str | Similarity | None
    transformations: Sequence[TransformComponent] | None
    vector_store: BasePydanticVectorStore | None
    storage_context: StorageContext | None
    store: str | Path | GraphStore | None
    show_progress: bool


def graph_of_documents(
    documents: Sequence[Document], **options: Unpack[GraphOptions]
) -> tuple[NodeGraph, RetrieverProtocol]:
    """Return a graph of documents with their chunks, and what searches it for chunks.

    Raises:
        ImportError: If a model is needed, none was given or set, and LlamaIndex's default one
            is not installed.
        TypeError: If an option is unknown or has the wrong type.
        ValueError: If something of the storage context would not be used.
    """
    if isinstance(documents, str | BaseNode) or not isinstance(documents, Sequence):
        raise TypeError(
            f"documents is a list of documents, not {documents!r:.80}; write [document]"
        )
    passed = options.get("transformations")
    parser = _chain(Settings.transformations if passed is None else passed)
    graph = _new_graph(options)
    graph.create_node_group(CHUNKS, as_transform(parser))
    put_documents(graph, documents)
    model = None if _is_of_words(options) else embed_model_of(options)
    if images := images_without_vectors(documents, model):
        logger.warning(
            "the images of %s are found by their texts alone; NodeGraphIndex(nodes) finds images "
            "by their vectors, too",
            ", ".join(image.node_id for image in images),
        )
    return graph, _search(graph, CHUNKS, options)


def graph_of_nodes(
    nodes: Sequence[BaseNode], **options: Unpack[GraphOptions]
) -> tuple[NodeGraph, RetrieverProtocol]:
    """Return a graph of nodes as they are, and what searches all of them.

    Raises:
        ValueError: As ``graph_of_documents``.
        ImportError: As ``graph_of_documents``.
        TypeError: As ``graph_of_documents``, or if there are transformations, which are for
            documents.
    """
    if options.get("transformations") is not None:
        raise TypeError("transformations are for documents; apply them to the nodes before")
    graph = _new_graph(options, nodes)
    if nodes:
        model = None if _is_of_words(options) else embed_model_of(options)
        nodes = with_image_vectors(nodes, model)
        use_vectors = True if isinstance(model, MultiModalEmbedding) else None
        return graph, _search(graph, import_flat(graph, nodes, use_vectors=use_vectors), options)
    imported = [name for name in graph.groups if name in graph.imports]
    return graph, _search(graph, imported[-1] if imported else ROOT, options)


def objects_of(nodes: Sequence[BaseNode]) -> dict[str, Any]:
    """Return what ``IndexNode`` objects stand for, by their ``index_id``."""
    entries = [node for node in nodes if isinstance(node, IndexNode) and node.obj is not None]
    return {node.index_id: node.obj for node in entries}


def default_embed_model() -> BaseEmbedding:
    """Return ``Settings.embed_model``.

    Raises:
        ImportError: If no model was set, and LlamaIndex's default one is not installed.
        ValueError: If embeddings are disabled.
    """
    if _is_disabled():
        raise ValueError(
            "Settings.embed_model is None, so that there are no vectors to compare; leave out "
            "similarity, give a model, embed_model=..., or compare words, similarity='bm25'"
        )
    try:
        return Settings.embed_model
    except ImportError as error:
        raise ImportError(
            "there is no embedding model: give one, embed_model=..., set Settings.embed_model, or "
            "search by words: Settings.embed_model = None, or similarity='bm25' for BM25 alone; "
            "LlamaIndex's default is OpenAI's, whose package llama-index-embeddings-openai is not "
            "installed"
        ) from error


def _is_disabled() -> bool:
    """Return whether the program has set ``Settings.embed_model = None``."""
    try:
        model = Settings.embed_model
    except ImportError:
        return False
    return isinstance(model, MockEmbedding) and model.embed_dim == 1  # what LlamaIndex makes of it


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


def _new_graph(options: GraphOptions, nodes: Sequence[BaseNode] = ()) -> NodeGraph:
    """Return the graph to fill; everything that can be wrong with the options is checked before."""
    if unknown := options.keys() - GraphOptions.__annotations__.keys():
        allowed = ", ".join(GraphOptions.__annotations__)
        raise TypeError(f"there is no argument {min(unknown)!r}; there is {allowed}")
    by_words = _is_of_words(options)
    if _vector_store(options) is not None and by_words:
        raise ValueError(
            "words are compared, as similarity or Settings.embed_model = None says, and no vector "
            "store is used; leave one of them out"
        )
    if (context := options.get("storage_context")) is not None:
        docstore = context.docstore
        for node in nodes if isinstance(docstore, NodeGraphDocstore) else ():
            if not docstore.document_exists(node.node_id):
                raise ValueError(
                    "the docstore of the storage context is the graph of another index, which "
                    f"the node {node.node_id!r} can't be added to; give this index a "
                    "StorageContext of its own"
                )
        if not nodes and not _is_empty(docstore):
            raise ValueError(
                "the graph stores documents and nodes itself (store='corpus.nodekin' keeps them), "
                f"and would not use the {type(docstore).__name__} of the storage context; leave "
                "the docstore out of it, or index what it has: "
                "NodeGraphIndex.from_nodes([*docstore.docs.values()])"
            )
    return NodeGraph(
        embed=embed_model_of(options),
        store=options.get("store"),
        progress=options.get("show_progress", False),
    )


def embed_model_of(options: GraphOptions) -> object:
    """Return the model to embed with, None where words alone are compared."""
    model = options.get("embed_model")
    return default_embed_model() if model is None and not _is_of_words(options) else model


def _search(graph: NodeGraph, target: str, options: GraphOptions) -> RetrieverProtocol:
    """Return what searches the graph, and show the graph in the storage context."""
    context = options.get("storage_context")
    if context is not None and _is_empty(context.docstore):  # others have the nodes' parents
        context.docstore = NodeGraphDocstore(graph, [target])
    similarity, store = options.get("similarity"), _vector_store(options)
    index: Any = {} if store is None else {"index": as_index(store)}
    if target != EMBEDDED_NODES or _is_of_words(options):
        return document_search(
            graph, target=target, similarity=similarity, top_k=DEFAULT_TOP_K, **index
        )
    vectors = Retriever(graph, target, similarity or "cosine", top_k=DEFAULT_TOP_K, **index)
    if similarity is not None:
        return vectors
    words = DefaultRetriever(graph, target, embed_keys=[])
    return FusionRetriever([words, vectors], "relative", [2, 1], top_k=DEFAULT_TOP_K)


def _is_empty(docstore: BaseDocumentStore) -> bool:
    return isinstance(docstore, SimpleDocumentStore) and not docstore.docs


def _is_of_words(options: GraphOptions) -> bool:
    similarity = options.get("similarity")
    if similarity is None:
        return options.get("embed_model") is None and _is_disabled()
    return get_similarity(similarity).mode == "text"


def _vector_store(options: GraphOptions) -> BasePydanticVectorStore | None:
    """Return the vector store to use; for words not the empty one of every storage context."""
    passed, context = options.get("vector_store"), options.get("storage_context")
    lease = None if context is None else context.vector_store
    if isinstance(lease, SimpleVectorStore) and not lease.data.embedding_dict:
        lease = None if _is_of_words(options) or passed is not None else lease
    if passed is not None and lease is not None and passed is not lease:
        raise ValueError("vector_store and storage_context have different stores; give one of them")
    return lease if passed is None else passed
