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
    NodeWithScore,
    ObjectType,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from nodekin.adapters.llama_index import (
    NodeWithEvidence,
    from_text_node,
    to_node_with_score,
    to_text_node,
)
from nodekin.nodegraph import Document as Source
from nodekin.nodegraph import Node, NodeGraph
from nodekin.nodegraph.document import declared_search_text
from nodekin.retrievers import Evidence, ScoredNode

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


def test_llama_index_documents_in_a_graph() -> None:
    graph = NodeGraph()
    given = [
        Document(id_="d1", text="Tea is a drink.", metadata={"page": 1}),
        TextNode(id_="n1", text="茶是饮品。"),
    ]
    assert graph.add(given) == ["d1", "n1"]
    assert graph.add(given[0]) == ["d1"]
    assert [(n.text, n.metadata) for n in graph.nodes("ROOT")] == [
        ("Tea is a drink.", {"page": 1}),
        ("茶是饮品。", {}),
    ]
    made = to_text_node(graph.nodes("ROOT")[0])
    assert (made.node_id, made.text, made.metadata["page"]) == ("d1", "Tea is a drink.", 1)


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
