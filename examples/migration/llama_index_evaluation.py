"""Evaluation of a retriever by LlamaIndex's RetrieverEvaluator."""

from llama_index.core import VectorStoreIndex
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import BaseRetriever
from llama_index_offline import WordVectors, documents

from nodekin.adapters.llama_index import NodeGraphIndex
from nodekin.nodegraph import split_sentences

METRICS = ["hit_rate", "mrr", "precision", "recall", "ap", "ndcg"]
QUESTION, ANSWER = "Which river passes through ten countries?", "Danube"
PARSER = SentenceSplitter(chunk_size=60, chunk_overlap=0, chunking_tokenizer_fn=split_sentences)
NODES = PARSER.get_nodes_from_documents(documents())


def evaluate(retriever: BaseRetriever) -> dict[str, float]:
    """Measure how well the nodes with the answer are found."""
    expected = [node.node_id for node in NODES if ANSWER in node.text]
    evaluator = RetrieverEvaluator.from_metric_names(METRICS, retriever=retriever)
    return evaluator.evaluate(QUESTION, expected).metric_vals_dict


def before() -> dict[str, float]:
    """Evaluate LlamaIndex's retriever."""
    return evaluate(VectorStoreIndex(NODES, embed_model=WordVectors()).as_retriever())


def after() -> dict[str, float]:
    """Evaluate nodekin's: results are the same nodes, with the same ids."""
    return evaluate(NodeGraphIndex.from_nodes(NODES, embed_model=WordVectors()).as_retriever())


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
