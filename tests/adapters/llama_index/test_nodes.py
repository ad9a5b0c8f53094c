"""Nodes as LlamaIndex nodes and back: values, relationships, evidence, ids."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import (
    Document,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from nodekin.adapters.llama_index import NodeGraphRetriever, export_nodes, import_nodes
from nodekin.adapters.llama_index.nodes import (
    NodeWithEvidence,
    find_node,
    from_text_node,
    id_in_llama_index,
    original_id,
    original_metadata,
    original_properties,
    parent_id_in_llama_index,
    read_record,
    to_node_with_score,
    to_text_node,
)
from nodekin.nodegraph import Document as Source
from nodekin.nodegraph import Node, NodeGraph
from nodekin.nodegraph.document import declared_search_text
from nodekin.retrievers import Evidence, Retriever, ScoredNode

FIELDS = (
    *("id", "text", "content", "group", "document_id", "parent_id", "start", "end"),
    *("order", "offset"),
)


def facts(node: Node) -> tuple[object, ...]:
    values = tuple(getattr(node, name) for name in FIELDS)
    return (*values, type(node.content), dict(node.own_metadata), dict(node.inherited))


def through_docstore(node: TextNode) -> TextNode:
    store = SimpleDocumentStore()
    store.add_documents([node])
    again = SimpleDocumentStore.from_dict(json.loads(json.dumps(store.to_dict())))
    return again.get_document(node.node_id)


WAYS = {
    "as it is": lambda node: node,
    "dict": lambda node: TextNode.from_dict(node.to_dict()),
    "json": lambda node: TextNode.from_json(node.to_json()),
    "pickle": lambda node: pickle.loads(pickle.dumps(node)),
    "copy": lambda node: node.model_copy(deep=True),
    "docstore": through_docstore,
    "vector store": lambda node: metadata_dict_to_node(node_to_metadata_dict(node)),
}

values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers()))
names = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        [
            "page",
            "nodekin_group",
            "nodekin_user_page",
            "nodekin_overridden_page",
            "nodekin_inherited",
        ]
    ),
)
fields = st.dictionaries(names, values, max_size=5)
place = st.one_of(st.none(), st.integers(0, 2**40))
nodes = st.builds(
    Node,
    text=st.text(),
    own_metadata=fields,
    content=st.one_of(
        st.none(),
        st.text(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
    ),
    start=place,
    end=place,
    id=st.text(min_size=1),
    group=st.text(),
    document_id=st.text(),
    parent_id=st.one_of(st.none(), st.text()),
    offset=place,
    order=st.integers(0, 2**60),
    inherited=fields,
)


@pytest.mark.parametrize("way", WAYS)
@given(node=nodes)
def test_there_and_back_loses_nothing(way: str, node: Node) -> None:
    assert facts(from_text_node(WAYS[way](to_text_node(node)))) == facts(node)


@pytest.mark.parametrize("group", ["ROOT", "paragraph", "sentence"])
def test_graph_nodes_there_and_back(graph: NodeGraph, group: str) -> None:
    for node in graph.nodes(group):
        back = from_text_node(through_docstore(to_text_node(node)))
        assert facts(back) == facts(node)
        assert back == node == graph.node(back.id)


def test_place_in_document_and_relationships(graph: NodeGraph) -> None:
    node = graph.nodes("sentence")[2]
    made = to_text_node(node)
    assert made.class_name() == "TextNode"
    assert made.ref_doc_id == "tea"
    assert graph.node("tea").text[made.start_char_idx : made.end_char_idx] == made.text
    assert made.parent_node.node_id == node.parent_id
    assert made.source_node.node_type == ObjectType.DOCUMENT
    assert made.parent_node.node_type == ObjectType.TEXT
    before, after = graph.nodes("sentence")[1], graph.nodes("sentence")[3]
    assert (made.prev_node.node_id, made.next_node.node_id) == (before.id, after.id)
    assert made.child_nodes is None
    for info in made.relationships.values():
        assert info.metadata.keys() <= {"nodekin"}
    assert (
        made.source_node.hash == Document(text=graph.node("tea").text, metadata=made.metadata).hash
    )
    (root,) = (to_text_node(n) for n in graph.nodes("ROOT")[:1])
    assert root.parent_node is None
    assert root.ref_doc_id == "tea"


def test_the_hash_of_a_document_is_made_once_for_each_state_of_it(monkeypatch) -> None:
    hashed: list[str] = []

    def document(text: str, metadata: dict[str, object]) -> Document:
        hashed.append(text)
        return Document(text=text, metadata=metadata)

    monkeypatch.setattr("nodekin.adapters.llama_index.nodes.LlamaIndexDocument", document)
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    for text, fields in [("One.\nTwo.", {}), ("One.\nTwo.", {"year": 1}), ("One.\nSix.", {})]:
        graph.add([Source(text, fields, id="a")])
        made = [to_text_node(node) for node in graph.nodes("line") * 2]
        expected = Document(text=text, metadata=fields).hash
        assert {node.source_node.hash for node in made} == {expected}
    assert hashed == ["One.\nTwo.", "One.\nTwo.", "One.\nSix."]
    gone = graph.nodes("line")[0]
    graph.remove(["a"])
    assert to_text_node(gone).source_node.hash is None


def test_metadata_is_that_of_the_user(graph: NodeGraph) -> None:
    made = to_text_node(graph.nodes("sentence")[0])
    assert made.metadata == {"topic": "tea", "year": 1999, "file_size": 7}
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert made.get_content(mode) == "topic: tea\nyear: 1999\n\nGreen tea is not fermented."
    node_to_metadata_dict(made, flat_metadata=True)


def test_nothing_is_shared() -> None:
    node = Node("Tea", {"tags": ["a"]}, id="n1", inherited={"more": {"b": 1}})
    made = to_text_node(node)
    made.metadata["tags"].append("x")
    made.metadata["more"]["c"] = 2
    made.metadata["new"] = 1
    made.set_content("changed")
    assert facts(from_text_node(to_text_node(node))) == facts(node)
    assert node.own_metadata == {"tags": ["a"]}
    assert node.inherited == {"more": {"b": 1}}
    back = from_text_node(made)
    back.own_metadata["tags"].append("y")  # type: ignore[attr-defined]
    assert made.metadata["tags"] == ["a", "x"]


def test_content_is_what_a_model_reads() -> None:
    node = Node("What is tea?", content="What is tea? A drink.", id="n1", group="qa")
    made = to_text_node(node)
    assert made.text == "What is tea? A drink."
    assert made.metadata == {}
    assert from_text_node(made).text == "What is tea?"


def test_hash_is_that_of_the_node(graph: NodeGraph) -> None:
    first, second = graph.nodes("sentence")[:2]
    assert to_text_node(first).hash == to_text_node(first).hash != to_text_node(second).hash


def test_fields_added_later_are_kept() -> None:
    made = to_text_node(Node("Tea", {"page": 1}, id="n1", group="line"))
    made.metadata["title"] = "On tea"
    assert from_text_node(made).own_metadata == {"page": 1, "title": "On tea"}


def test_foreign_nodes_are_documents() -> None:
    chunk = TextNode(id_="c", text="Tea.", metadata={"page": 1})
    searched = declared_search_text(chunk)
    assert from_text_node(chunk) == Source("Tea.", {"page": 1}, id="c", search_text=searched)
    document = Document(id_="d", text="茶。", metadata={"page": 1})
    assert from_text_node(document) == Source("茶。", {"page": 1}, id="d", search_text=searched)
    assert from_text_node(ImageNode(id_="i", text="A cup.")).text == "A cup."


def test_what_is_no_node() -> None:
    with pytest.raises(TypeError, match=r"takes a nodekin Node, not 'Tea'"):
        to_text_node("Tea")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no id yet"):
        to_text_node(Node("Tea"))
    scored = to_node_with_score(ScoredNode(Node("Tea", id="n1"), 1))
    with pytest.raises(TypeError, match=r"give the \.node"):
        from_text_node(scored)  # type: ignore[arg-type]


# Evidence

CHILD = Node("Tea.", id="n2", group="word", start=0, end=4)
RESULT = ScoredNode(Node("Tea. 茶。", id="n1"), 0.0, (Evidence(CHILD, 1.5, "bm25", "tea"),))
SHOWN = {
    **{"id": "n2", "group": "word", "text": "Tea.", "start": 0, "end": 4},
    **{"score": 1.5, "similarity": "bm25", "query": "tea"},
}


def test_score_and_evidence() -> None:
    made = to_node_with_score(RESULT)
    assert (made.score, made.get_score(raise_error=True)) == (0.0, 0.0)
    assert made.evidence == [SHOWN]
    assert "evidence" not in made.metadata


def test_evidence_survives() -> None:
    made = to_node_with_score(RESULT)
    copies = (copy.copy, copy.deepcopy, lambda result: result.model_copy(deep=True))
    for again in (pickle.loads(pickle.dumps(made)), *(way(made) for way in copies)):
        assert again == made
        assert isinstance(again, NodeWithEvidence)
        assert (again.evidence, again.node.text, again.score) == ([SHOWN], "Tea. 茶。", 0.0)


def test_evidence_is_left_out_of_json() -> None:
    made = to_node_with_score(RESULT)
    assert "evidence" not in made.to_dict()
    assert len(made.to_json()) < 1.6 * len(NodeWithScore(node=made.node, score=0.0).to_json())


def test_each_result_has_its_own_evidence() -> None:
    first, second = to_node_with_score(RESULT), to_node_with_score(RESULT)
    first.evidence[0]["score"] = 9
    assert second.evidence == [SHOWN]


def test_a_result_is_a_plain_text_node_without_children(graph: NodeGraph) -> None:
    graph.build("sentence")
    (result,) = NodeGraphRetriever(Retriever(graph, "paragraph", top_k=1)).retrieve("Europe")
    node = result.node
    (exported,) = (other for other in export_nodes(graph, "sentence") if other.id_ == node.id_)
    assert type(node) is TextNode
    assert exported.child_nodes
    assert {**node.relationships, NodeRelationship.CHILD: exported.child_nodes} == (
        exported.relationships
    )


def test_the_record_of_the_node_in_the_graph(graph: NodeGraph) -> None:
    sentence = graph.nodes("sentence")[1]
    node = to_text_node(sentence)
    record = read_record(node)
    assert record["group"] == "sentence"
    assert read_record(TextNode.from_json(node.to_json())) == record
    assert read_record(TextNode(text="other")) is None


def test_nodes_without_a_document_are_their_own_source() -> None:
    graph = NodeGraph()
    graph.add(["Green tea.", "Black tea."])
    graph.create_node_group("all", lambda texts: " ".join(texts), scope="group", trans_node=False)
    for node in (graph.nodes("all")[0], Node("Tea", id="n1")):
        assert to_text_node(node).ref_doc_id == node.id
        assert set(to_text_node(node).relationships) == {NodeRelationship.SOURCE}


def test_documents_are_no_parents(graph: NodeGraph) -> None:
    paragraph = graph.nodes("paragraph")[0]
    (node,) = (to_text_node(paragraph) for _ in range(1))
    assert (node.parent_node, node.ref_doc_id) == (None, "tea")
    assert to_text_node(graph.nodes("sentence")[0]).parent_node.node_id == paragraph.id


def test_fields_of_an_imported_node() -> None:
    fields = {"llama_index_id": "a", "llama_index_properties": '{"fields": ["y", "x"]}', "y": 1}
    inherited = {"llama_index_id": "above", "x": 2, "z": 3}
    node = Node("Tea", fields, id="n", group="g", parent_id="p", inherited=inherited)
    assert (original_id(node), id_in_llama_index(node)) == ("a", "a")
    assert list(original_metadata(node).items()) == [("y", 1), ("x", 2)]
    assert parent_id_in_llama_index(node) == "above"


def test_fields_of_other_nodes() -> None:
    node = Node("Tea", {"llama_index_properties": "no JSON", "x": 1}, id="n", group="g")
    assert (original_id(node), id_in_llama_index(node)) == (None, "n")
    assert original_properties(node) == {}
    assert original_metadata(node) == {"x": 1}
    assert parent_id_in_llama_index(node) is None


def test_nodes_by_either_id(graph: NodeGraph) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="rivers")}
    chunk = TextNode(text="The Nile is long.", id_="nile", relationships=source)
    import_nodes(graph, [chunk], groups=["chunk"])
    (imported,) = graph.nodes("chunk")
    assert imported.id != "nile"
    assert [find_node(graph, node_id) for node_id in ("nile", imported.id, "tea", "none")] == [
        *(imported, imported, graph.node("tea"), None)
    ]
    exported = next(node for node in export_nodes(graph, "chunk") if node.node_id == "nile")
    assert [find_node(graph, node) for node in (exported, chunk, TextNode(id_="none"))] == [
        *(imported, imported, None)
    ]
