import subprocess
import sys

import pytest

NO_OPENAI = """
import sys
for name in ("llms.openai", "embeddings.openai", "question_gen"):
    sys.modules[f"llama_index.{name}"] = None
sys.modules["openai"] = None
from llama_index.core import Settings
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import Document
from llama_index.core.vector_stores import SimpleVectorStore
from nodekin.adapters.llama_index import *
from nodekin.nodegraph import NodeGraph, as_embedder, as_llm, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever
def letters(texts):
    return [[1 + text.count(letter) for letter in "aeiou"] for text in texts]
graph = NodeGraph(embed=letters, progress=False)
graph.add([Document(text="Tea is a drink. It is green.", id_="d")])
graph.create_node_group("sentence", split_sentences)
vectors = Retriever(graph, "sentence", "cosine", index=as_index(SimpleVectorStore()))
retriever = NodeGraphRetriever(FusionRetriever([vectors, Retriever(graph, "sentence")]))
processors = [
    NodeGraphReranker("KeywordFilter", required="tea"), LiftPostprocessor(graph, "ROOT")
]
engine = RetrieverQueryEngine.from_args(
    retriever, llm=MockLLM(), node_postprocessors=processors
)
assert [node.node_id for node in engine.query("tea").source_nodes] == ["d"]
assert Settings._llm is None and Settings._embed_model is None
assert not [m for m in sys.modules if m.split(".")[0] in ("torch", "langchain_core")]
nodes = IngestionPipeline(transformations=[NodeGraphTransform(split_sentences)]).run(
    documents=[Document(text="One. Two.")]
)
index = NodeGraphIndex(nodes, embed_model=None)
assert index.as_retriever().retrieve("two")[0].node == nodes[1]
for strategy in (
    *("none", "rewrite", "hyde", "multi_query", "sub_question", "multi_step", "self_query"),
):
    engine = NodeGraphQueryEngine(retriever.retriever, MockLLM(), strategy=strategy)
    assert engine.query("tea").source_nodes and engine.get_prompts()
assert NodeGraphQueryTransform("rewrite", lambda prompt: "What is tea?").run("te").query_str
assert NodeGraphQuestionGenerator(MockLLM())
assert as_llm(MockLLM()).complete("tea") == "tea"
assert as_embedder(letters).queries(["tea"]).shape == (1, 5)
"""


@pytest.mark.slow
def test_adapter_needs_no_openai_and_resolves_no_model() -> None:
    command = [sys.executable, "-c", NO_OPENAI]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
