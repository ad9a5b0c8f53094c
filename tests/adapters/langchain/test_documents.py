import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_peers import LOADED, QUERIES
from letters import Letters

from nodekin.adapters.langchain import (
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    retriever_tool,
)
from nodekin.adapters.langchain.documents import (
    delete_documents,
    existing_nodes,
    from_document,
    put_documents,
    to_document,
)
from nodekin.nodegraph import Document as SourceDocument
from nodekin.nodegraph import Node, NodeGraph, SearchText, split_sentences
from nodekin.retrievers import Evidence, Reranker, Retriever, ScoredNode

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


@given(nodes)
def test_a_node_comes_back(node):
    assert same(from_document(to_document(node, details="nested")), node)


@given(nodes, scores)
def test_the_node_of_a_result_comes_back_also_from_json(node, score):
    document = to_document(ScoredNode(node, score), details="nested")
    assert document.metadata["nodekin"]["score"] == score
    read = Document.model_validate(json.loads(json.dumps(document.model_dump())))
    for again in (document, read):
        assert same(from_document(again), node)


@given(nodes)
def test_nothing_is_shared(node):
    before = from_document(to_document(node, details="nested"))
    document = to_document(node, details="nested")
    for value in [*document.metadata.values(), document.metadata["nodekin"]["restore"]]:
        if isinstance(value, list | dict):
            value.clear()
    document.metadata.clear()
    assert same(node, before)


@given(nodes, scores)
def test_a_document_has_the_fields_of_its_node_alone(node, score):
    plain = Document(to_document(node).page_content, metadata=node.metadata, id=node.id or None)
    assert to_document(node) == plain
    assert to_document(ScoredNode(node, score)) == plain


@given(nodes)
def test_a_document_of_documents_comes_back(node):
    """A retrieved document that was put into another graph carries our field as its own."""
    first = to_document(ScoredNode(node, 1.0), details="nested")
    outer = Node(first.page_content, first.metadata, id="outer")
    again = from_document(to_document(ScoredNode(outer, 2.0), details="nested"))
    assert same(again, outer)
    assert same(
        from_document(Document(again.content, metadata=dict(again.metadata), id=node.id)), node
    )


def test_what_users_know_is_flat_and_what_is_ours_stands_apart():
    graph = NodeGraph(progress=False)
    graph.add(Document("绿茶不发酵。红茶发酵。", metadata={"topic": "茶"}, id="tea"))
    graph.create_node_group(
        "sentence", lambda text: [Node(s, {"n": 1}) for s in split_sentences(text)]
    )
    _, node = graph.nodes("sentence")
    document = to_document(node, details="nested")
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
        "restore": {"inherited": ["topic"], "overridden": {}},
    }


@pytest.mark.parametrize("content", [5, True, 2.5, ["a"], {"answer": "A drink."}])
def test_content_that_is_no_text_has_its_text_form(content):
    node = Node("What is tea?", content=content, id="qa")
    document = to_document(node, details="nested")
    assert document.page_content == str(content)
    assert from_document(document).content == content
    assert type(from_document(document).content) is type(content)


def test_details_do_not_replace_a_field():
    result = ScoredNode(Node("Tea", {"score": "high"}, id="n"), 1.5)
    with pytest.raises(ValueError, match=r"replace the field 'score' of node 'n'.*nested"):
        to_document(result, details=True)
    document = to_document(result, details="nested")
    assert document.metadata["score"] == "high"
    assert document.metadata["nodekin"]["score"] == 1.5


def test_details_are_flat_values_that_json_and_chroma_hold():
    graph = NodeGraph(progress=False)
    graph.add(Document("Tea is a drink. Tea is hot.", metadata={"page": 3}, id="tea"))
    graph.create_node_group("sentence", split_sentences)
    (result,) = Retriever(graph, "sentence", target="ROOT").retrieve("hot tea")
    fields = to_document(result, details=True).metadata
    assert list(fields) == ["page", "score", "evidence", "start", "end"]
    assert (fields["evidence"], fields["start"], fields["end"]) == ("Tea is hot.", 16, 27)
    assert all(type(value) in (str, int, float) for value in fields.values())
    evidence = to_document(result, details="nested").metadata["nodekin"]["evidence"]
    assert json.loads(json.dumps(evidence)) == evidence
    assert [each["text"] for each in evidence] == ["Tea is hot.", "Tea is a drink."]


def test_fields_changed_since_belong_to_the_node():
    node = Node("Tea", {"page": 3}, id="n", inherited={"topic": "tea"})
    document = to_document(node, details="nested")
    document.metadata["checked"] = True
    document.metadata["page"] = 4
    node = from_document(document)
    assert node.own_metadata == {"page": 4, "checked": True}
    assert node.inherited == {"topic": "tea"}


def test_numbers_of_numpy_become_plain():
    import numpy as np

    node = Node("Tea", id="n")
    result = ScoredNode(node, np.float32(0.5), (Evidence(node, np.float32(0.5), "x", "q"),))
    details = to_document(result, details="nested").metadata["nodekin"]
    assert type(details["score"]) is float
    assert type(details["evidence"][0]["score"]) is float
    assert type(to_document(result, details=True).metadata["score"]) is float


def test_another_document_becomes_a_source_document():
    document = Document("Tea is a drink.", id="tea", metadata={"page": 3, "nodekin": "mine"})
    made = from_document(document)
    metadata = {"page": 3, "nodekin": "mine"}
    assert made == SourceDocument(
        "Tea is a drink.", metadata, id="tea", search_text=SearchText("headings")
    )
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


@pytest.fixture
def theirs():
    store = InMemoryVectorStore(Letters())
    store.add_documents(LOADED)
    return store.as_retriever(search_kwargs={"k": 3})


@pytest.fixture
def graph():
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(LOADED)
    return graph


@pytest.fixture
def ours(graph):
    return NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine", top_k=3))


def test_a_document_is_the_same_whatever_the_query(ours, theirs):
    for query in QUERIES:
        assert ours.invoke(query) == theirs.invoke(query)


@pytest.mark.parametrize("put", ["graph", "store", "index"])
@pytest.mark.parametrize("details", [False, True, "nested"])
@pytest.mark.parametrize("copied", [None, copy.deepcopy, copy.copy, "pickled", "reranked"])
def test_an_edited_hit_that_is_put_back_pollutes_nothing(graph, put, details, copied):
    """The details that were asked for are not put back, what was edited is."""
    search = Retriever(graph, "ROOT", "bm25", top_k=3)
    (hit,) = NodeGraphRetriever(retriever=search, details=details).invoke("steamed", k=1)
    added = {False: set(), True: {"evidence", "start", "end"}, "nested": {"nodekin"}}[details]
    assert added <= hit.metadata.keys() - LOADED[0].metadata.keys()
    if copied == "pickled":
        hit = pickle.loads(pickle.dumps(hit))
    elif copied == "reranked":
        model = Reranker("ModuleReranker", model=lambda query, texts: [1.0] * len(texts))
        reranker = NodeGraphReranker(reranker=model, score_key="relevance_score")
        (hit,) = reranker.compress_documents([hit], "steamed")
        assert hit.metadata["relevance_score"] == 1.0
    elif copied:
        hit = copied(hit)
    hit.page_content = "Green tea is steamed, and dried."
    hit.metadata["checked"] = True
    add = {
        "graph": graph.add,
        "store": NodeGraphVectorStore(graph).add_documents,
        "index": NodeGraphRetriever(graph=graph).upsert,
    }[put]
    add([hit])
    assert len(graph.nodes("ROOT")) == len(LOADED)
    node = graph.node("1")
    metadata = {**LOADED[0].metadata, "checked": True}
    assert (node.text, node.metadata) == (hit.page_content, metadata)


def test_an_edited_piece_of_a_document_is_refused(graph):
    graph.create_node_group("sentence", split_sentences)
    (hit,) = NodeGraphRetriever(retriever=Retriever(graph, "sentence", "bm25")).invoke("roasted")
    with pytest.raises(ValueError, match="taken by a node of group 'sentence'"):
        graph.add(hit)


def test_every_face_returns_the_documents_as_they_were_added(graph, ours):
    by_id = {document.id: document for document in LOADED}
    query = "green tea"
    artifact = retriever_tool(ours, "search", "Search.").invoke(
        {"name": "search", "args": {"query": query}, "id": "1", "type": "tool_call"}
    )
    reranker = NodeGraphReranker(
        reranker=Reranker("ModuleReranker", model=lambda query, texts: [len(t) for t in texts])
    )
    for documents in (
        NodeGraphVectorStore(graph).similarity_search(query),
        NodeGraphRetriever(graph=graph).invoke(query),
        reranker.compress_documents(LOADED, query),
        artifact.artifact,
    ):
        assert documents
        assert documents == [by_id[document.id] for document in documents]
