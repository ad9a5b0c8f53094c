"""Nodes that are given to an index, and the nodes that are derived in a graph."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import (
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.schema import Node as LlamaIndexNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from support.llama_index_models import Words

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphRetriever, export_nodes
from nodekin.adapters.llama_index.nodes import NodeWithEvidence, to_results, to_text_node
from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import Evidence, Retriever, ScoredNode

PIXEL = (
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    b"rkJggg=="
)

SEPARATOR = "metadata_seperator"  # LlamaIndex 0.13 saves it under this name only
if SEPARATOR not in TextNode.model_fields:
    SEPARATOR = "metadata_separator"

GIVEN: dict[str, BaseNode] = {
    "text": TextNode(
        text="Black tea is fermented.",
        id_="text",
        metadata={"year": 1999, "tags": ["a", "b"], "more": {"x": None}},
        excluded_embed_metadata_keys=["year"],
        excluded_llm_metadata_keys=["tags"],
        metadata_template="<{key}={value}>",
        **{SEPARATOR: " | "},
        text_template="{content} -- {metadata_str}",
        start_char_idx=3,
        end_char_idx=26,
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(
                node_id="source",
                node_type=ObjectType.DOCUMENT,
                metadata={"topic": "tea"},
                hash="abc",
            ),
            NodeRelationship.PARENT: RelatedNodeInfo(node_id="parent"),
            NodeRelationship.CHILD: [RelatedNodeInfo(node_id="one"), RelatedNodeInfo(node_id="2")],
            NodeRelationship.PREVIOUS: RelatedNodeInfo(node_id="before"),
            NodeRelationship.NEXT: RelatedNodeInfo(node_id="after"),
        },
    ),
    "reference": IndexNode(text="Black tea, see below.", id_="reference", index_id="below"),
    "image": ImageNode(
        text="A cup of black tea.", id_="image", image_path="cup.png", image_url="https://a.b/c"
    ),
    "media": LlamaIndexNode(
        text_resource=MediaResource(text="Black tea in a picture."),
        image_resource=MediaResource(data=PIXEL, mimetype="image/png"),
        id_="media",
    ),
    "document": Document(text="All on black tea.", id_="document", metadata={"file_name": "a.md"}),
    "image document": ImageDocument(text="A black tea pot.", id_="pot", image=PIXEL.decode()),
}


@pytest.fixture(params=[False, True], ids=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return str(tmp_path / "graph.nodekin") if request.param else None


@pytest.mark.parametrize("name", GIVEN)
def test_given_node_comes_back_equal(name: str, store: str | None) -> None:
    node = GIVEN[name].model_copy(deep=True)
    NodeGraphIndex([node], similarity="bm25", store=store).graph.close() if store else None
    index = NodeGraphIndex([] if store else [node], similarity="bm25", store=store)
    (result,) = index.as_retriever().retrieve("black tea")
    assert type(result.node) is type(node)
    assert result.node == node == GIVEN[name]
    assert result.node.hash == node.hash
    assert result.node is not node
    assert index.docstore.get_node(node.node_id) == node


def test_metadata_of_given_node_keeps_types_and_order() -> None:
    metadata = {"z": 1, "day": date(2020, 1, 2), "a": (1, 2), "set": {"x"}}
    node = TextNode(text="Tea.", metadata=metadata)
    (result,) = NodeGraphIndex([node], similarity="bm25").as_retriever().retrieve("tea")
    assert [*result.node.metadata.items()] == [*metadata.items()]


def test_node_of_subclass_returns_as_text_node() -> None:
    class Own(TextNode):
        pass

    (result,) = (
        NodeGraphIndex([Own(text="Tea.", id_="n")], similarity="bm25")
        .as_retriever()
        .retrieve("tea")
    )
    assert (type(result.node), result.node_id) == (TextNode, "n")


def test_given_node_is_embedded_with_metadata_mode_embed() -> None:
    node = GIVEN["text"]
    model = Words(texts=[])
    index = NodeGraphIndex([node], embed_model=model, similarity="cosine")
    index.as_retriever().retrieve("tea")
    assert model.texts == [node.get_content(MetadataMode.EMBED)]
    (root,) = index.graph.nodes("ROOT")
    assert root.searched_text == node.get_content(MetadataMode.EMBED)
    assert index.as_retriever(similarity="bm25").retrieve("1999") == []


def test_record_of_given_node_stays_hidden() -> None:
    index = NodeGraphIndex([GIVEN["text"]], similarity="bm25")
    for word in ("relationships", "class_name", "TextNode", "before", "abc"):
        assert index.as_retriever().retrieve(word) == []
    (root,) = index.graph.nodes("ROOT")
    assert root.metadata == GIVEN["text"].metadata
    (result,) = index.native_retriever.retrieve("black")
    assert "relationships" not in f"{result.explain()}{result}"


def test_results_of_an_index_share_nothing() -> None:
    retriever = NodeGraphIndex([GIVEN["text"]], similarity="bm25").as_retriever()
    (first,) = retriever.retrieve("tea")
    first.node.metadata["tags"].append("c")
    first.node.set_content("gone")
    first.node.relationships.clear()
    first.evidence.clear()
    (again,) = retriever.retrieve("tea")
    assert again.node == GIVEN["text"]
    assert again.evidence


def test_results_of_another_retriever_share_nothing() -> None:
    class Listed(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=given)]

    given = TextNode(text="Tea.", metadata={"n": 1})
    (result,) = NodeGraphRetriever(Listed()).retrieve("tea")
    result.node.metadata["n"] = 2
    assert given.metadata == {"n": 1}


@pytest.mark.parametrize("is_async", [False, True])
def test_object_of_a_reference_is_followed(is_async: bool) -> None:
    other = NodeGraphIndex([TextNode(text="Oolong.", id_="far")], similarity="bm25")
    nodes = [
        IndexNode(text="green tea", id_="1", index_id="near", obj=TextNode(text="Near", id_="n")),
        IndexNode(text="black tea", id_="2", index_id="far", obj=other.as_retriever()),
    ]
    before = [node.obj for node in nodes]
    retriever = NodeGraphIndex(nodes, similarity="bm25").as_retriever(similarity_top_k=1)
    retrieve = (lambda q: asyncio.run(retriever.aretrieve(q))) if is_async else retriever.retrieve
    assert [result.node_id for result in retrieve("green")] == ["n"]
    assert retrieve("black oolong")[0].node_id == "far"
    assert [node.obj for node in nodes] == before


# Derived nodes


def test_derived_node_has_place_and_relationships(graph: NodeGraph) -> None:
    sentences = graph.nodes("sentence")
    made = to_text_node(sentences[2])
    assert type(made) is TextNode
    assert made.ref_doc_id == "tea"
    assert graph.node("tea").text[made.start_char_idx : made.end_char_idx] == made.text
    assert made.parent_node.node_id == sentences[2].parent_id
    neighbors = made.prev_node.node_id, made.next_node.node_id
    assert neighbors == (sentences[1].id, sentences[3].id)
    assert made.child_nodes is None
    assert all(info.metadata == {} for info in made.relationships.values())
    paragraph = to_text_node(graph.nodes("paragraph")[0])
    assert paragraph.parent_node is None


def test_derived_node_reads_like_its_document(graph: NodeGraph) -> None:
    made = to_text_node(graph.nodes("sentence")[0])
    assert made.metadata == {"topic": "tea", "year": 1999, "file_size": 7}
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert made.get_content(mode) == "topic: tea\nyear: 1999\n\nGreen tea is not fermented."


def test_derived_node_shares_nothing() -> None:
    node = Node("Tea", {"tags": ["a"]}, id="n1", inherited={"more": {"b": 1}})
    made = to_text_node(node)
    made.metadata["tags"].append("x")
    made.metadata["more"]["c"] = 2
    assert node.metadata == {"tags": ["a"], "more": {"b": 1}}


def test_content_of_a_node_is_its_text() -> None:
    made = to_text_node(Node("What is tea?", content="What is tea? A drink.", id="n1"))
    assert made.text == "What is tea? A drink."


def test_node_without_id_raises() -> None:
    with pytest.raises(ValueError, match="has no id"):
        to_text_node(Node("Tea"))


def test_sentences_of_given_nodes_are_text_nodes() -> None:
    index = NodeGraphIndex.from_documents([GIVEN["document"]], embed_model=Words(texts=[]))
    index.as_retriever().retrieve("tea")
    search = Retriever(index.graph, "ROOT sentence", "bm25")
    (result,) = NodeGraphRetriever(search).retrieve("black")
    assert type(result.node) is TextNode
    assert result.node.ref_doc_id == "document"
    assert result.node.parent_node.node_id == next(iter(index.docstore.docs))


# Exported nodes


def test_exported_groups_form_a_hierarchy(graph: NodeGraph) -> None:
    nodes = export_nodes(graph, "sentence")
    paragraphs, sentences = graph.nodes("paragraph"), graph.nodes("sentence")
    assert [node.node_id for node in nodes] == [n.id for n in [*paragraphs, *sentences]]
    assert [n.node_id for n in get_leaf_nodes(nodes)] == [n.id for n in sentences]
    assert [n.node_id for n in get_root_nodes(nodes)] == [n.id for n in paragraphs]
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    first = docstore.get_node(nodes[0].node_id)
    children = [docstore.get_node(child.node_id).text for child in first.child_nodes]
    assert " ".join(children) == first.text
    assert first.prev_node is None
    assert first.next_node.node_id == paragraphs[1].id


# Evidence

CHILD = Node("Tea.", id="n2", group="word", start=0, end=4)
RESULT = ScoredNode(Node("Tea. 茶。", id="n1"), 0.0, (Evidence(CHILD, 1.5, "bm25", "tea"),))
SHOWN = {
    **{"id": "n2", "group": "word", "text": "Tea.", "start": 0, "end": 4},
    **{"score": 1.5, "similarity": "bm25", "query": "tea"},
}


@pytest.mark.parametrize(
    "way",
    [
        copy.copy,
        copy.deepcopy,
        lambda r: r.model_copy(deep=True),
        lambda r: pickle.loads(pickle.dumps(r)),
    ],
)
def test_evidence_survives_copies_and_pickles(way: Any) -> None:
    (made,) = to_results([RESULT])
    again = way(made)
    assert again == made
    assert isinstance(again, NodeWithEvidence)
    assert (again.evidence, again.node.text, again.score) == ([SHOWN], "Tea. 茶。", 0.0)


def test_evidence_is_omitted_from_json() -> None:
    (made,) = to_results([RESULT])
    assert "evidence" not in made.to_dict()
    assert "evidence" not in json.loads(made.to_json())
    assert isinstance(made, NodeWithScore)
