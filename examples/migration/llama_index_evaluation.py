"""Evaluation of a retriever by LlamaIndex's RetrieverEvaluator.

The figures differ, since nodekin embeds sentences of nodes. With eleven questions and vectors that
count words they show how to compare, and not which is better.
"""

from statistics import fmean

from llama_index.core import VectorStoreIndex
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import BaseRetriever
from llama_index_offline import WordVectors, documents, with_spaces

from nodekin.adapters.llama_index import NodeGraphIndex

METRICS = ["hit_rate", "mrr", "precision", "recall", "ap", "ndcg"]
QUESTIONS = {  # with words of the only node that has the answer
    "Which river passes through ten countries?": "Danube",
    "Which tea is fermented?": "Black tea",
    "Which bridge is painted in orange?": "Golden Gate",
    "Which bridge fell in the wind?": "Tacoma",
    "Who taxed tea by the gallon?": "gallon",
    "What made the fields of Egypt fertile?": "floods",
    "Which bridge crosses gorges?": "Andes",
    "What moved the towers apart?": "earthquake",
    "How long does green tea keep?": "Green tea",
    "Which tea is dried in the sun?": "White tea",
    "Which river carries the most water?": "more water",
}
PARSER = SentenceSplitter(chunk_size=60, chunk_overlap=0, chunking_tokenizer_fn=with_spaces)
NODES = PARSER.get_nodes_from_documents(documents())


def evaluate(retriever: BaseRetriever) -> dict[str, float]:
    """Return the mean of each metric over the questions."""
    evaluator = RetrieverEvaluator.from_metric_names(METRICS, retriever=retriever)
    values = []
    for question, answer in QUESTIONS.items():
        expected = [node.node_id for node in NODES if answer in node.text]
        values.append(evaluator.evaluate(question, expected).metric_vals_dict)
    return {name: round(fmean(value[name] for value in values), 3) for name in METRICS}


def before() -> dict[str, float]:
    """Evaluate LlamaIndex's retriever."""
    return evaluate(VectorStoreIndex(NODES, embed_model=WordVectors()).as_retriever())


def after() -> dict[str, float]:
    """Evaluate nodekin's: results are the same nodes, with the same ids."""
    return evaluate(NodeGraphIndex.from_nodes(NODES, embed_model=WordVectors()).as_retriever())


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
