"""Objects that are made without validation are those that the constructors make."""

import copy
import pickle

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel

from nodekin.adapters import langchain, llama_index
from nodekin.adapters.plain_models import plain_constructor
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever, ScoredNode


class Point(BaseModel):
    x: int
    y: int = 0


def test_it_is_what_the_constructor_makes() -> None:
    make = plain_constructor(Point(x=1))
    one = make({"x": 2}, None)
    assert one == Point(x=2)
    assert one.model_fields_set == Point(x=2).model_fields_set
    assert one.model_dump(exclude_unset=True) == {"x": 2}
    one.y = 3
    assert make({"x": 2}, None) == Point(x=2)
    assert one == Point(x=2, y=3) == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)


def result() -> ScoredNode:
    graph = NodeGraph(progress=False)
    graph.add("Green tea. Black tea.")
    graph.create_node_group("sentence", lambda text: text.split(". "))
    (found,) = Retriever(graph, "sentence", "bm25", target="ROOT")("green")
    return found


def test_a_document_is_what_langchain_makes() -> None:
    found = result()
    document = langchain.to_document(found)
    assert document == Document("Green tea. Black tea.", metadata={}, id=found.node.id)
    assert document.model_fields_set == {"page_content", "metadata", "id"}
    assert document.to_json() == Document(**document.model_dump()).to_json()


def test_a_node_is_what_llama_index_makes() -> None:
    found = result()
    node = llama_index.to_node_with_score(found).node
    made = TextNode(**{name: getattr(node, name) for name in TextNode.model_fields})
    assert (node.model_dump(), node.hash) == (made.model_dump(), made.hash)


def test_evidence_is_there_however_it_is_asked_for() -> None:
    found = result()
    expected = llama_index.to_node_with_score(found).evidence
    assert [match["text"] for match in expected] == ["Green tea"]
    asked = {
        "dumped": lambda node: node.model_dump()["evidence"],
        "as LlamaIndex writes it": lambda node: node.to_dict()["evidence"],
        "pickled": lambda node: pickle.loads(pickle.dumps(node)).evidence,
        "copied": lambda node: copy.copy(node).evidence,
        "copied deeply": lambda node: copy.deepcopy(node).evidence,
        "copied by pydantic": lambda node: node.model_copy(deep=True).evidence,
        "iterated": lambda node: dict(node)["evidence"],
    }
    for how, ask in asked.items():
        assert ask(llama_index.to_node_with_score(found)) == expected, how
    one, other = (llama_index.to_node_with_score(found) for _ in range(2))
    assert one == other
    assert one.evidence == expected
    assert one == llama_index.to_node_with_score(found)
    assert one != NodeWithScore(node=one.node, score=one.score)
    assert "Green tea" in repr(llama_index.to_node_with_score(found))
    other.evidence = []
    assert other.evidence == []
    assert one != other
    assert one.model_fields_set == {"node", "score", "evidence"}
