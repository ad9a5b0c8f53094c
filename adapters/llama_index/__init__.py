"""Use node graphs in LlamaIndex, and LlamaIndex's parsers and vector stores in node graphs."""

from ...nodegraph.models import as_embedder, as_llm
from ...retrievers import as_retriever
from ..extras import extra

with extra("llama-index", "llama_index"):
    from .auto_retriever import NodeGraphAutoRetriever
    from .corpus_function_tool import corpus_toolkit
    from .docstore import NodeGraphDocstore
    from .export_nodes import export_index_nodes, export_nodes
    from .file_reader import FileReader
    from .graph_index import NodeGraphIndex
    from .graph_transform import NodeGraphTransform
    from .import_nodes import ImportResult, import_nodes
    from .instrumentation import SpanEndEvent, SpanObserver, SpanStartEvent
    from .lift_postprocessor import LiftPostprocessor
    from .nodes import NodeWithEvidence, from_text_node, to_node_with_score, to_text_node
    from .parser_transform import as_transform
    from .query_engine import NodeGraphQueryEngine
    from .query_transform import NodeGraphQueryTransform
    from .question_generator import NodeGraphQuestionGenerator
    from .reranker import NodeGraphReranker
    from .retriever import NodeGraphRetriever
    from .serialization import dump_nodes, load_nodes
    from .vector_store_backend import as_index

__all__ = [
    "FileReader",
    "ImportResult",
    "LiftPostprocessor",
    "NodeGraphAutoRetriever",
    "NodeGraphDocstore",
    "NodeGraphIndex",
    "NodeGraphQueryEngine",
    "NodeGraphQueryTransform",
    "NodeGraphQuestionGenerator",
    "NodeGraphReranker",
    "NodeGraphRetriever",
    "NodeGraphTransform",
    "NodeWithEvidence",
    "SpanEndEvent",
    "SpanObserver",
    "SpanStartEvent",
    "as_embedder",
    "as_index",
    "as_llm",
    "as_retriever",
    "as_transform",
    "corpus_toolkit",
    "dump_nodes",
    "export_index_nodes",
    "export_nodes",
    "from_text_node",
    "import_nodes",
    "load_nodes",
    "to_node_with_score",
    "to_text_node",
]
