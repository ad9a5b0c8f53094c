"""The node graph in LlamaIndex: its retriever, its nodes there and back, its parsers here."""

from ...nodegraph.embeddings.embedder import as_embedder
from ...nodegraph.llm.model import as_llm
from ..extras import extra

with extra("llama-index", "llama_index"):
    from .docstore import NodeGraphDocstore
    from .export import export_index_nodes, export_nodes
    from .imported import Imported, import_nodes
    from .ingestion import NodeGraphTransform
    from .lift import LiftPostprocessor
    from .node_json import dump_nodes, load_nodes
    from .node_with_evidence import NodeWithEvidence
    from .nodes import from_text_node, to_node_with_score, to_text_node
    from .query_engine import NodeGraphQueryEngine
    from .query_transform import NodeGraphQueryTransform
    from .question_generator import NodeGraphQuestionGenerator
    from .reranker import NodeGraphReranker
    from .retriever import NodeGraphRetriever
    from .stages import StageEndEvent, StageObserver, StageStartEvent
    from .transform import as_transform
    from .vector_index import as_index

__all__ = [
    "Imported",
    "LiftPostprocessor",
    "NodeGraphDocstore",
    "NodeGraphQueryEngine",
    "NodeGraphQueryTransform",
    "NodeGraphQuestionGenerator",
    "NodeGraphReranker",
    "NodeGraphRetriever",
    "NodeGraphTransform",
    "NodeWithEvidence",
    "StageEndEvent",
    "StageObserver",
    "StageStartEvent",
    "as_embedder",
    "as_index",
    "as_llm",
    "as_transform",
    "dump_nodes",
    "export_index_nodes",
    "export_nodes",
    "from_text_node",
    "import_nodes",
    "load_nodes",
    "to_node_with_score",
    "to_text_node",
]
