"""LangChain documents go into a graph as they are."""

import pytest
from langchain_core.documents import Document

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever


@pytest.fixture
def empty():
    graph = NodeGraph(progress=False)
    graph.create_node_group("sentence", split_sentences)
    return graph


def test_id_text_and_metadata_are_kept(empty):
    assert empty.add(Document("Tea is a drink.", id="tea", metadata={"page": 3})) == ["tea"]
    root = empty.node("tea")
    assert (root.text, root.metadata) == ("Tea is a drink.", {"page": 3})
    (sentence,) = empty.nodes("sentence")
    assert sentence.metadata == {"page": 3}


def test_many_with_and_without_ids(empty):
    documents = [Document("One.", id="1"), Document("Two."), Document("三。", metadata={"n": 3})]
    ids = empty.add(documents)
    assert ids[0] == "1"
    assert all(ids)
    assert len(set(ids)) == 3
    assert empty.add(documents) == ids
    assert len(empty.nodes("ROOT")) == 3


def test_the_same_document_twice_is_one(empty):
    first, second = empty.add([Document("Tea."), Document("Tea.")])
    assert first == second
    assert len(empty.nodes("ROOT")) == 1


def test_the_same_text_with_other_metadata_is_another(empty):
    ids = empty.add([Document("Tea.", metadata={"page": n}) for n in (1, 2)])
    assert len(set(ids)) == 2


def test_different_documents_with_one_id_are_refused(empty):
    with pytest.raises(ValueError, match="two different documents"):
        empty.add([Document("One.", id="same"), Document("Two.", id="same")])
    assert empty.nodes("ROOT") == []


def test_adding_an_id_again_updates(empty):
    retriever = NodeGraphRetriever(retriever=Retriever(empty, "sentence", target="ROOT"))
    empty.add(Document("Tea is green.", id="tea"))
    assert [d.id for d in retriever.invoke("green")] == ["tea"]
    empty.add(Document("Tea is black.", id="tea"))
    assert retriever.invoke("green") == []
    assert [d.page_content for d in retriever.invoke("black")] == ["Tea is black."]
    empty.remove("tea")
    assert retriever.invoke("black") == []


def test_changing_a_document_afterwards_does_not_reach_the_graph(empty):
    document = Document("Tea.", id="tea", metadata={"page": 3})
    empty.add(document)
    document.metadata["page"] = 4
    assert empty.node("tea").metadata == {"page": 3}


def test_a_transform_may_return_documents(empty):
    def heading(text):
        return [Document(text[:4], metadata={"kind": "head"})]

    empty.add(Document("Rivers run.", id="r"))
    empty.create_node_group("head", heading)
    (node,) = empty.nodes("head")
    assert (node.text, node.metadata, node.start, node.end) == ("Rive", {"kind": "head"}, 0, 4)
