import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from nodekin.adapters.langchain import from_document, to_document
from nodekin.adapters.langchain.documents import (
    delete_documents,
    existing_nodes,
    put_documents,
    to_documents,
)
from nodekin.nodegraph import Document as SourceDocument
from nodekin.nodegraph import Node, NodeGraph, split_sentences
from nodekin.retrievers import Evidence, Retriever, ScoredNode

FIELDS = (
    *("text", "content", "id", "group", "document_id", "parent_id"),
    *("start", "end", "offset", "order", "own_metadata", "inherited"),
)


def same(node, other):
    return all(getattr(node, name) == getattr(other, name) for name in FIELDS)


# Names from a small pool, ours among them, so that they collide.
names = st.sampled_from(["page", "topic", "relevance_score", "nodekin", "score"]) | st.text(
    max_size=3
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
metadata = st.dictionaries(names, values, max_size=4)
numbers = st.none() | st.integers(0, 10**6)
nodes = st.builds(
    Node,
    st.text(),
    metadata,
    st.none()
    | st.text()
    | st.integers()
    | st.booleans()
    | st.lists(st.text(max_size=3), max_size=2),
    numbers,
    numbers,
    st.text(max_size=5),
    st.text(max_size=5),
    st.text(max_size=5),
    st.none() | st.text(max_size=5),
    numbers,
    st.integers(0, 10**12),
    metadata,
)
scores = st.floats(allow_nan=False)
score_keys = st.none() | st.sampled_from(["relevance_score", "score", "page"])


@given(nodes)
def test_a_node_comes_back(node):
    assert same(from_document(to_document(node)), node)


@given(nodes, scores, score_keys)
def test_the_node_of_a_result_comes_back(node, score, key):
    document = to_document(ScoredNode(node, score), score_key=key)
    assert same(from_document(document), node)
    if key is not None:
        assert document.metadata[key] == score


@given(st.lists(nodes, max_size=4), score_keys)
def test_nodes_come_back_from_documents_with_the_same_fields(many, key):
    documents = to_documents([ScoredNode(node, 1.0) for node in many], score_key=key)
    assert len({frozenset(document.metadata) for document in documents}) <= 1
    for document, node in zip(documents, many, strict=True):
        assert same(from_document(document), node)


@given(nodes, scores)
def test_a_node_comes_back_from_json(node, score):
    document = to_document(ScoredNode(node, score))
    again = Document.model_validate(json.loads(json.dumps(document.model_dump())))
    assert same(from_document(again), node)


@given(nodes)
def test_nothing_is_shared(node):
    before = from_document(to_document(node))
    document = to_document(node)
    for value in [*document.metadata.values(), document.metadata["nodekin"]["restore"]]:
        if isinstance(value, list | dict):
            value.clear()
    document.metadata.clear()
    assert same(node, before)


@given(nodes)
def test_a_document_of_documents_comes_back(node):
    """A retrieved document that was put into another graph carries our field as its own."""
    first = to_document(ScoredNode(node, 1.0))
    outer = Node(first.page_content, first.metadata, id="outer")
    again = from_document(to_document(ScoredNode(outer, 2.0)))
    assert same(again, outer)
    assert same(
        from_document(Document(again.content, metadata=dict(again.metadata), id=node.id)), node
    )


def test_what_users_know_is_flat_and_what_is_ours_stands_apart():
    graph = NodeGraph(progress=False)
    graph.add(SourceDocument("绿茶不发酵。红茶发酵。", {"topic": "茶"}, id="tea"))
    graph.create_node_group(
        "sentence", lambda text: [Node(s, {"n": 1}) for s in split_sentences(text)]
    )
    _, node = graph.nodes("sentence")
    document = to_document(node)
    assert (document.page_content, document.id) == ("红茶发酵。", node.id)
    ours = document.metadata.pop("nodekin")
    assert document.metadata == {"topic": "茶", "n": 1}
    assert ours == {
        "group": "sentence",
        "document_id": "tea",
        "parent_id": "tea",
        "start": 6,
        "end": 11,
        "offset": 6,
        "order": node.order,
        "evidence": [],
        "restore": {"inherited": ["topic"], "overridden": {}, "added": {}, "replaced": {}},
    }


def test_the_content_is_what_is_returned():
    node = Node("What is tea?", content="What is tea? A drink.", id="qa")
    document = to_document(node)
    assert document.page_content == "What is tea? A drink."
    assert from_document(document).text == "What is tea?"


@pytest.mark.parametrize("content", [5, True, 2.5, ["a"], {"answer": "A drink."}])
def test_content_that_is_no_text_has_its_text_form(content):
    node = Node("What is tea?", content=content, id="qa")
    document = to_document(node)
    assert document.page_content == str(content)
    assert from_document(document).content == content
    assert type(from_document(document).content) is type(content)


def test_a_score_in_the_place_of_a_field_keeps_both():
    result = ScoredNode(Node("Tea", {"relevance_score": "high"}, id="n"), 1.5)
    document = to_document(result)
    assert document.metadata["relevance_score"] == 1.5
    assert from_document(document).metadata == {"relevance_score": "high"}
    with pytest.raises(ValueError, match="another score_key"):
        to_document(result, details=False)
    assert to_document(result, details=False, score_key="score").metadata == {
        "relevance_score": "high",
        "score": 1.5,
    }


def test_without_details_there_is_only_what_users_know():
    node = Node("Tea", {"page": 3}, id="n", inherited={"topic": "tea"})
    assert to_document(node, details=False).metadata == {"page": 3, "topic": "tea"}


def test_fields_changed_since_belong_to_the_node():
    document = to_document(Node("Tea", {"page": 3}, id="n", inherited={"topic": "tea"}))
    document.metadata["checked"] = True
    document.metadata["page"] = 4
    node = from_document(document)
    assert node.own_metadata == {"page": 4, "checked": True}
    assert node.inherited == {"topic": "tea"}


def test_a_field_that_was_filled_in_and_then_given_a_value_stays():
    nodes = [Node("a", {"page": 1}, id="a"), Node("b", {}, id="b")]
    _, document = to_documents(nodes)
    assert document.metadata["page"] is None
    assert from_document(document).metadata == {}
    document.metadata["page"] = 2
    assert from_document(document).metadata == {"page": 2}


def test_evidence_can_be_written_as_json():
    graph = NodeGraph(progress=False)
    graph.add(["Tea is a drink. Tea is hot."])
    graph.create_node_group("sentence", split_sentences)
    (result,) = Retriever(graph, "sentence", target="ROOT").retrieve("hot tea")
    evidence = to_document(result).metadata["nodekin"]["evidence"]
    assert json.loads(json.dumps(evidence)) == evidence
    assert [each["text"] for each in evidence] == ["Tea is hot.", "Tea is a drink."]


def test_numbers_of_numpy_become_plain():
    import numpy as np

    node = Node("Tea", id="n")
    result = ScoredNode(node, np.float32(0.5), (Evidence(node, np.float32(0.5), "x", "q"),))
    document = to_document(result)
    assert type(document.metadata["relevance_score"]) is float
    assert type(document.metadata["nodekin"]["evidence"][0]["score"]) is float


def test_another_document_becomes_a_source_document():
    document = Document("Tea is a drink.", id="tea", metadata={"page": 3, "nodekin": "mine"})
    made = from_document(document)
    assert made == SourceDocument("Tea is a drink.", {"page": 3, "nodekin": "mine"}, id="tea")
    made.metadata["page"] = 4
    assert document.metadata["page"] == 3
    assert from_document(Document("Tea")).id == SourceDocument("Tea").id


def test_what_is_neither_is_refused():
    with pytest.raises(TypeError, match="Node or a ScoredNode, not 'text'"):
        to_document("text")


@pytest.fixture
def small_graph():
    graph = NodeGraph(progress=False)
    graph.create_node_group("sentence", split_sentences)
    put_documents(graph, [Document("Tea. Milk.", id="tea"), Document("河。", id="河")])
    return graph


def test_ids_are_those_given_else_the_documents_else_made(small_graph):
    ids = put_documents(
        small_graph, [Document("a", id="A"), Document("b", id="B"), Document("c")], ["1", None, ""]
    )
    assert ids[:2] == ["1", "B"]
    assert ids[2] == small_graph.add("c")[0]


def test_nodes_in_the_order_of_the_ids_each_once(small_graph):
    found = existing_nodes(small_graph, ["河", "none", "tea", "河"])
    assert [node.id for node in found] == ["河", "tea"]
    assert existing_nodes(small_graph, ["tea"], "sentence") == []
    pieces = small_graph.nodes("sentence")
    assert existing_nodes(small_graph, [pieces[1].id, pieces[0].id], "sentence") == pieces[1::-1]


def test_what_somebody_else_removes_meanwhile_is_no_error(monkeypatch):
    graph = NodeGraph(progress=False)
    put_documents(graph, [Document("Tea.", id="tea"), Document("河。", id="河")])
    remove = graph.remove

    def after_another(ids):
        monkeypatch.setattr(graph, "remove", remove)
        remove("tea")
        remove(ids)

    monkeypatch.setattr(graph, "remove", after_another)
    assert delete_documents(graph, ["tea", "河", "none"]) == ["河"]
    assert graph.nodes("ROOT") == []


def test_a_piece_is_not_dropped(small_graph):
    with pytest.raises(ValueError, match="made from the document 'tea'"):
        delete_documents(small_graph, ["河", small_graph.nodes("sentence")[0].id])
    assert len(small_graph.nodes("ROOT")) == 2
