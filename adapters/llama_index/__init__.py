"""The node graph in LlamaIndex: its retriever, its nodes there and back, its parsers here."""

from ..extras import extra

with extra("llama-index", "llama_index"):
    from .export import export_nodes
    from .node_with_evidence import NodeWithEvidence
    from .nodes import from_text_node, to_node_with_score, to_text_node
    from .retriever import NodeGraphRetriever
    from .transform import as_transform

__all__ = [
    "NodeGraphRetriever",
    "NodeWithEvidence",
    "as_transform",
    "export_nodes",
    "from_text_node",
    "to_node_with_score",
    "to_text_node",
]
