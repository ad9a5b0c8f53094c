import json

import pytest
from llama_index.core import StorageContext
from llama_index.core.node_parser import get_child_nodes, get_leaf_nodes, get_root_nodes
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from nodekin.adapters.llama_index import (
    NodeGraphRetriever,
    export_nodes,
    from_text_node,
    to_text_node,
)
from nodekin.nodegraph import NodeGraph, UnknownGroupError
from nodekin.retrievers import Retriever


@pytest.fixture
def exported(graph: NodeGraph) -> list[TextNode]:
    return export_nodes(graph, "sentence")


@pytest.fixture
def docstore(exported: list[TextNode]) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(exported)
    return docstore


def test_groups_above_come_along(graph: NodeGraph, exported: list[TextNode]) -> None:
    ids = [n.id for group in ("paragraph", "sentence") for n in graph.nodes(group)]
    assert [node.node_id for node in exported] == ids
    assert [n.node_id for n in export_nodes(graph, "paragraph", "sentence", "sentence")] == ids
    assert [n.node_id for n in export_nodes(graph)] == ["tea", "panda"]
    whole = [n.node_id for n in export_nodes(graph, "sentence", "ROOT")]
    assert whole == ["tea", "panda", *ids]


def test_leaves_roots_and_children(graph: NodeGraph, exported: list[TextNode]) -> None:
    assert [n.node_id for n in get_leaf_nodes(exported)] == [n.id for n in graph.nodes("sentence")]
    assert get_root_nodes(exported) == [
        n for n in exported if from_text_node(n).group == "paragraph"
    ]
    first = [n for n in exported if n.node_id == graph.nodes("paragraph")[0].id]
    assert [n.text for n in get_child_nodes(first, exported)] == [
        "Green tea is not fermented.",
        "Its leaves stay green.",
    ]


def test_neighbours_across_parents_within_the_document(
    graph: NodeGraph, exported: list[TextNode]
) -> None:
    known = {node.node_id: node for node in exported}
    for group in ("paragraph", "sentence"):
        for document in ("tea", "panda"):
            ids = [n.id for n in graph.nodes(group) if n.document_id == document]
            chain, node = [], known[ids[0]]
            assert node.prev_node is None
            while node.next_node is not None:
                chain.append(node.node_id)
                assert known[node.next_node.node_id].prev_node.node_id == node.node_id
                node = known[node.next_node.node_id]
            assert [*chain, node.node_id] == ids


def test_same_nodes_as_results(graph: NodeGraph, exported: list[TextNode]) -> None:
    for node in exported:
        alone = to_text_node(graph.node(node.node_id))
        assert node.hash == alone.hash
        assert from_text_node(node) == graph.node(node.node_id)


def test_size_stays_small(exported: list[TextNode]) -> None:
    for node in exported:
        for info in node.relationships.values():
            for each in info if isinstance(info, list) else [info]:
                assert each.metadata.keys() <= {"nodekin"}
    assert len(json.dumps([n.to_dict() for n in exported])) < 2500 * len(exported)


def test_auto_merging_over_results(graph: NodeGraph, docstore: SimpleDocumentStore) -> None:
    search = NodeGraphRetriever(Retriever(graph, "sentence", top_k=2))
    storage = StorageContext.from_defaults(docstore=docstore)
    merging = AutoMergingRetriever(search, storage, simple_ratio_thresh=0.5)
    found = merging.retrieve("green leaves, not fermented")
    assert [from_text_node(result.node).group for result in found] == ["paragraph"]


def test_neighbours_of_results_from_the_docstore(docstore: SimpleDocumentStore) -> None:
    sentence = get_leaf_nodes(list(docstore.docs.values()))[2]
    widen = PrevNextNodePostprocessor(docstore=docstore, num_nodes=1, mode="both")
    found = widen.postprocess_nodes([NodeWithScore(node=sentence, score=1.0)])
    assert [r.node.text for r in found] == [
        "Its leaves stay green.",
        "Black tea is fermented.",
        "It keeps for years.",
    ]


def test_unknown_group(graph: NodeGraph) -> None:
    with pytest.raises(UnknownGroupError, match="'sentence'"):
        export_nodes(graph, "sentense")
