import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from nodekin.adapters.llama_index import (
    NodeGraphRetriever,
    NodeWithEvidence,
    dump_nodes,
    export_nodes,
    load_nodes,
)
from nodekin.nodegraph import NodeGraph

QUERY = "Which tea is fermented? 红茶"

# Text that UTF-8 can't hold (half of a pair) has no form in a file.
words = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words, st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)
fields = st.dictionaries(words, plain, max_size=4)
relations = st.dictionaries(
    st.sampled_from([NodeRelationship.SOURCE, NodeRelationship.PARENT]),
    st.builds(RelatedNodeInfo, node_id=words),
)
text_nodes = st.builds(
    TextNode,
    text=words,
    id_=words,
    metadata=fields,
    relationships=relations,
    start_char_idx=st.one_of(st.none(), st.integers(0, 99)),
    embedding=st.one_of(st.none(), st.lists(st.floats(-1, 1), max_size=3)),
    excluded_llm_metadata_keys=st.lists(words, max_size=2),
    text_template=words,
)
index_nodes = st.builds(IndexNode, text=words, index_id=words, metadata=fields)
documents = st.builds(Document, text=words, id_=words, metadata=fields)
nodes = st.one_of(text_nodes, index_nodes, documents)
scores = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
items = st.one_of(
    nodes,
    st.builds(NodeWithScore, node=nodes, score=scores),
    st.builds(NodeWithEvidence, node=nodes, score=scores, evidence=st.lists(fields, max_size=2)),
)


@given(given=st.lists(items, max_size=4))
def test_there_and_back_loses_nothing(given: list[Any]) -> None:
    found = load_nodes(dump_nodes(given))
    assert [type(each) for each in found] == [type(each) for each in given]
    assert [getattr(each, "node", each) for each in found] == [
        getattr(each, "node", each) for each in given
    ]
    for one, other in zip(found, given, strict=True):
        assert type(getattr(one, "node", one)) is type(getattr(other, "node", other))
        assert getattr(one, "score", None) == getattr(other, "score", None)
        assert getattr(one, "evidence", None) == getattr(other, "evidence", None)


def test_results_and_hierarchies(retriever: NodeGraphRetriever, graph: NodeGraph) -> None:
    found = retriever.retrieve(QUERY)
    again = load_nodes(dump_nodes(found))
    assert again == found
    assert [r.evidence for r in again] == [r.evidence for r in found]
    exported = export_nodes(graph, "sentence")
    assert load_nodes(dump_nodes(exported)) == exported
    assert "红茶" in dump_nodes(found)
    image = ImageNode(text="a cup", image_url="http://localhost/cup.png")
    (back,) = load_nodes(dump_nodes([image]))
    assert (type(back), back.image_url) == (ImageNode, image.image_url)


def test_what_would_not_come_back() -> None:
    for value in (datetime.date(2020, 1, 1), (1, 2), {1: 2}, b"x", [{"a": {1}}]):
        with pytest.raises(TypeError, match="would not give back"):
            dump_nodes([TextNode(text="x", metadata={"a": value})])
        with pytest.raises(TypeError, match="would not give back"):
            dump_nodes([NodeWithEvidence(node=TextNode(text="x"), evidence=[{"a": value}])])

    class Own(TextNode):
        pass

    class OwnScore(NodeWithScore):
        pass

    for wrong in (Own(text="x"), OwnScore(node=TextNode(text="x")), "x", None):
        with pytest.raises(TypeError, match="dump_nodes takes nodes and results"):
            dump_nodes([wrong])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a list of nodes"):
        dump_nodes(TextNode(text="x"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "reads what dump_nodes wrote"),
        ("[]", "reads what dump_nodes wrote"),
        ("{}", "reads what dump_nodes wrote"),
        (json.dumps({"format": "nodekin llama_index nodes", "version": 2}), "version 2"),
    ],
)
def test_what_can_not_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_nodes(text)


def test_only_nodes_are_made() -> None:
    text = dump_nodes([TextNode(text="x")]).replace('"TextNode", "data"', '"os.system", "data"')
    with pytest.raises(ValueError, match=r"no class 'os\.system'"):
        load_nodes(text)
