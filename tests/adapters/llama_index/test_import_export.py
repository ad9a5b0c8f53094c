"""Nodes that go from LlamaIndex into graphs, out of them, and into JSON."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    NodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    TokenTextSplitter,
    get_child_nodes,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.retrievers import AutoMergingRetriever, BaseRetriever
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from stress import amount

from nodekin.adapters.llama_index import (
    LiftPostprocessor,
    NodeGraphDocstore,
    NodeGraphRetriever,
    as_transform,
    export_nodes,
    import_nodes,
)
from nodekin.adapters.llama_index.import_export import (
    dump_nodes,
    joined_text,
    load_nodes,
    ordered_ids,
)
from nodekin.adapters.llama_index.nodes import (
    NodeWithEvidence,
    from_text_node,
    to_text_node,
)
from nodekin.nodegraph import (
    Embedder,
    NodeGraph,
    UnknownGroupError,
    split_sentences,
)
from nodekin.retrievers import Retriever

TEXT = "\n\n".join(
    f"Tea number {at} is a drink of leaves and water. 第{at}种红茶是全发酵的，产于山中。 It keeps."
    for at in range(24)
)


def splitter(size: int) -> SentenceSplitter:
    # The default sentence tokenizer may ask NLTK to download.
    def pieces(text: str) -> list[str]:
        return re.split(r"(?<=[.。])", text)

    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=pieces)


def hierarchy(*sizes: int) -> HierarchicalNodeParser:
    parsers: dict[str, NodeParser] = {str(size): splitter(size) for size in sizes}
    return HierarchicalNodeParser.from_defaults(
        node_parser_ids=list(parsers), node_parser_map=parsers
    )


@pytest.fixture
def document() -> Document:
    return Document(
        text=TEXT,
        id_="teas",
        metadata={"topic": "tea", "file_name": "teas.txt", "tags": ["a", 1]},
        excluded_llm_metadata_keys=["tags"],
        text_template="{content} ({metadata_str})",
    )


def relatives(node: BaseNode) -> dict[NodeRelationship, list[str]]:
    """Return the ids of a node's relatives, but for neighbours."""
    return {
        kind: [each.node_id for each in (info if isinstance(info, list) else [info])]
        for kind, info in node.relationships.items()
        if kind not in (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
    }


def same(made: BaseNode, before: BaseNode) -> None:
    assert made.node_id == before.node_id
    assert made.get_content() == before.get_content()
    assert repr(made.metadata) == repr(before.metadata)
    if not isinstance(before, Document):
        assert made.hash == before.hash
    names = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
    for name in (*names, "metadata_template", "metadata_separator", "text_template"):
        assert getattr(made, name) == getattr(before, name)


@pytest.mark.parametrize("ways", ["with the document", "without", "docstore"])
def test_hierarchical_parser(document: Document, ways: str) -> None:
    nodes = hierarchy(256, 64).get_nodes_from_documents([document])
    before = copy.deepcopy(nodes)
    given: Any = nodes
    if ways == "docstore":
        store = SimpleDocumentStore()
        store.add_documents(nodes)
        given = SimpleDocumentStore.from_dict(json.loads(json.dumps(store.to_dict()))).docs.values()
    graph = NodeGraph()
    documents = [] if ways == "without" else [document]
    made = import_nodes(graph, given, documents=documents, groups=["large", "small"])
    assert (made.documents, made.groups, made.blank) == (("teas",), ("large", "small"), ())
    assert nodes == before

    large = [n for n in nodes if n.parent_node is None]
    assert [n.text for n in graph.nodes("large")] == [n.text for n in large]
    assert [n.text for n in graph.nodes("small")] == [n.text for n in get_leaf_nodes(nodes)]
    text = graph.node("teas").text
    for node in graph.nodes("large") + graph.nodes("small"):
        assert text[node.start : node.end] == node.text

    exported = {node.node_id: node for node in export_nodes(graph, "ROOT", "small")}
    assert set(exported) == {"teas", *(n.node_id for n in nodes)}
    for node in nodes:
        same(exported[node.node_id], node)
        assert relatives(exported[node.node_id]) == relatives(node)
    if ways != "without":
        same(exported["teas"], document)
        assert exported["teas"].get_content("llm") == document.get_content("llm")


def test_results_are_the_old_nodes(document: Document) -> None:
    nodes = hierarchy(256, 64).get_nodes_from_documents([document])
    graph = NodeGraph()
    import_nodes(graph, nodes, documents=[document], groups=["large", "small"])
    graph.create_node_group("sentence", split_sentences, parent="small")
    known = {node.node_id: node for node in nodes}
    for group, target in (("small", "small"), ("sentence", "small"), ("sentence", "large")):
        retriever = NodeGraphRetriever(Retriever(graph, group, target=target, top_k=3))
        found = retriever.retrieve("红茶 number 7")
        assert len(found) == 3
        for result in found:
            same(result.node, known[result.node_id])
            again = from_text_node(result.node)
            assert again == graph.node(again.id)
    (sentence,) = NodeGraphRetriever(Retriever(graph, "sentence", top_k=1)).retrieve("number 7")
    assert sentence.node.parent_node.node_id in known
    assert from_text_node(sentence.node) == graph.node(sentence.node_id)
    assert from_text_node(sentence.node).parent_id == graph.node(sentence.node_id).parent_id


def test_old_docstores_and_new_ones_work_together(document: Document) -> None:
    nodes = hierarchy(256, 64).get_nodes_from_documents([document])
    graph = NodeGraph()
    import_nodes(graph, nodes, documents=[document], groups=["large", "small"])
    old = SimpleDocumentStore()
    old.add_documents(nodes)
    new = SimpleDocumentStore()
    new.add_documents(export_nodes(graph, "small"))
    merged = []
    for store in (old, new, NodeGraphDocstore(graph, ["small"])):
        search = NodeGraphRetriever(Retriever(graph, "small", top_k=4))
        storage = StorageContext.from_defaults(docstore=store)
        merging = AutoMergingRetriever(search, storage, simple_ratio_thresh=0.3)
        found = merging.retrieve("Tea number 1 number 2 number 3")
        merged.append([(r.node_id, r.score) for r in found])
    assert merged[0] == merged[1] == merged[2]
    hits = [NodeWithScore(node=n, score=1.0) for n in get_leaf_nodes(nodes)[:2]]
    lifted = LiftPostprocessor(graph, "large").postprocess_nodes(hits)
    assert [r.node_id for r in lifted] == [get_root_nodes(nodes)[0].node_id]


def test_sentence_windows(document: Document) -> None:
    parser = SentenceWindowNodeParser.from_defaults(
        sentence_splitter=split_sentences, window_size=1
    )
    nodes = parser.get_nodes_from_documents([document])
    for documents in ([document], []):
        graph = NodeGraph()
        import_nodes(graph, nodes, documents=documents, groups=["sentence"])
        exported = export_nodes(graph, "sentence")
        for made, before in zip(exported, nodes, strict=True):
            same(made, before)
            assert made.prev_node is None or made.prev_node.node_id == before.prev_node.node_id
            assert made.next_node is None or made.next_node.node_id == before.next_node.node_id
        text = graph.node("teas").text
        places = [(n.start_char_idx, n.end_char_idx) for n in exported]
        assert [text[a:b] for a, b in places] == [n.text for n in nodes]
        assert places == sorted(set(places))  # 0.13 has all equal sentences at the first one's
        found = NodeGraphRetriever(Retriever(graph, "sentence", top_k=1)).retrieve("第7种红茶")
        replaced = MetadataReplacementPostProcessor("window").postprocess_nodes(found)
        assert replaced[0].text == found[0].metadata["window"]


def test_index_nodes_stand_below_what_they_stand_for() -> None:
    base = [TextNode(text=f"Chunk {at} about 茶. And more.", id_=f"n{at}") for at in range(3)]
    parts = [
        IndexNode(text=f"茶 {at}: a summary", index_id=f"n{at}", id_=f"s{at}") for at in range(3)
    ]
    graph = NodeGraph()
    made = import_nodes(graph, [*base, *parts], groups=["summary"])
    assert made.documents == ("n0", "n1", "n2")
    found = Retriever(graph, "summary", target="ROOT", top_k=1)("茶 1 summary")
    assert [r.node.id for r in found] == ["n1"]


fields = st.dictionaries(
    st.sampled_from(["page", "topic", "file_name", "nodekin_group", "llama", "a"]),
    st.one_of(st.booleans(), st.integers(0, 2), st.floats(0, 2), st.lists(st.integers(0, 1))),
    max_size=3,
)
some_text = st.text("ab茶 。.\n", min_size=1, max_size=12).filter(str.strip)
keys = st.lists(st.sampled_from(["page", "topic", "file_name", "x"]), max_size=2, unique=True)


@st.composite
def forests(draw: Any) -> tuple[list[BaseNode], list[BaseNode]]:
    """Make documents and three levels of nodes below them, with what nodes can differ in."""
    documents, nodes = [], []
    # "nodekin_group" means one of ours, so that is left to the next test
    plain = fields.map(lambda f: {k: v for k, v in f.items() if k != "nodekin_group"})
    for number in range(draw(st.integers(1, 3))):
        document = Document(
            text=draw(some_text),
            id_=f"d{number}",
            metadata=draw(plain),
            excluded_embed_metadata_keys=draw(keys),
        )
        documents.append(document)
        above: list[BaseNode] = [document]
        for level in range(draw(st.integers(0, 3))):
            below: list[BaseNode] = []
            for parent in above:
                for place in range(draw(st.integers(1, 3))):
                    node = TextNode(
                        text=draw(some_text),
                        id_=f"{parent.node_id}.{place}",
                        metadata={**draw(st.sampled_from([parent.metadata, {}])), **draw(plain)},
                        excluded_llm_metadata_keys=draw(keys),
                        excluded_embed_metadata_keys=draw(keys),
                        metadata_separator=draw(st.sampled_from(["\n", " "])),
                        text_template=draw(
                            st.sampled_from(["{content}", "{metadata_str}{content}"])
                        ),
                        relationships={
                            NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.node_id)
                        },
                    )
                    if level:
                        info = RelatedNodeInfo(node_id=parent.node_id)
                        node.relationships[NodeRelationship.PARENT] = info
                    below.append(node)
            nodes += below
            above = below
    return documents, nodes


@pytest.mark.slow
@settings(max_examples=amount(20, 60))
@given(forest=forests())
def test_there_and_back_loses_nothing(forest: tuple[list[BaseNode], list[BaseNode]]) -> None:
    documents, nodes = forest
    graph = NodeGraph(progress=False)
    made = import_nodes(graph, nodes, documents=documents)
    exported = export_nodes(graph, "ROOT", *made.groups)
    by_id = {node.node_id: node for node in exported}
    assert len(by_id) == len(exported) == len(documents) + len(nodes)
    for before in [*documents, *nodes]:
        same(by_id[before.node_id], before)
        wanted = relatives(before)
        found = relatives(by_id[before.node_id])
        for kind in (NodeRelationship.PARENT, NodeRelationship.SOURCE):
            if before not in documents:
                assert found.get(kind) == wanted.get(kind)
    # and once more: what was exported makes the same graph
    again = NodeGraph(progress=False)
    import_nodes(again, exported)
    for group in made.groups:
        assert [facts(n) for n in again.nodes(group)] == [facts(n) for n in graph.nodes(group)]
    assert export_nodes(again, "ROOT", *made.groups) == exported


def facts(node: Any) -> tuple[Any, ...]:
    names = ("id", "text", "content", "start", "end", "offset", "parent_id", "order", "document_id")
    return (*(getattr(node, f) for f in names), dict(node.own_metadata), dict(node.inherited))


def test_a_graph_in_another_graph(graph: NodeGraph) -> None:
    graph.create_node_group(
        "loud", lambda node: [type(node)(node.text.upper(), {"loud": True})], trans_node=True
    )
    exported = export_nodes(graph, "ROOT", "sentence", "loud")
    other = NodeGraph()
    made = import_nodes(other, reversed(exported))
    assert set(made.groups) == {"paragraph", "sentence", "loud"}
    for group in ("ROOT", *made.groups):
        assert {facts(n)[:7] for n in other.nodes(group)} == {
            facts(n)[:7] for n in graph.nodes(group)
        }


def test_more_is_added_to_the_groups(tmp_path: Path) -> None:
    def nodes(name: str, *texts: str) -> list[BaseNode]:
        info = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
        return [TextNode(text=t, id_=f"{name}.{t}", relationships=info) for t in texts]

    with NodeGraph(store=tmp_path / "graph.db") as graph:
        import_nodes(graph, nodes("a", "one", "two"), groups=["part"])
        import_nodes(graph, nodes("b", "three"), groups=["part"])
        assert [n.text for n in graph.nodes("part")] == ["one", "two", "three"]
        assert graph.node("a").text == "one\n\ntwo"
        import_nodes(graph, nodes("a", "four"), groups=["part"])
        assert [n.text for n in graph.nodes("part")] == ["one", "two", "four", "three"]
        assert graph.node("a").text == "one\n\ntwo\n\nfour"
        graph.add("A document of another kind.")
        assert len(graph.nodes("part")) == 4
    with NodeGraph(store=tmp_path / "graph.db") as graph:
        import_nodes(graph, [*nodes("a", "four"), *nodes("b", "three")], groups=["part"])
        assert [n.text for n in graph.nodes("part")] == ["one", "two", "four", "three"]


def below(parent: str, kind: NodeRelationship = NodeRelationship.SOURCE) -> dict[Any, Any]:
    return {kind: RelatedNodeInfo(node_id=parent)}


PARENT = NodeRelationship.PARENT


def test_names_of_groups(graph: NodeGraph) -> None:
    nodes = [
        TextNode(text="b", id_="2", relationships=below("1")),
        TextNode(text="c", id_="3", relationships=below("2", PARENT)),
    ]
    other = NodeGraph()
    assert import_nodes(other, nodes).groups == ("level 1", "level 2")
    with pytest.raises(ValueError, match="group 'all' stand below"):
        import_nodes(other, nodes, groups=lambda node: "all")
    with pytest.raises(ValueError, match="'paragraph' is there with another rule"):
        import_nodes(graph, nodes[:1], groups=["paragraph"])
    assert import_nodes(other, nodes, groups=lambda node: node.text).groups == ("b", "c")


def test_the_order_is_that_of_the_neighbours() -> None:
    texts = ["same", "other", "same", "茶", "same"]
    nodes = [
        TextNode(
            text=text,
            id_=f"{at}",
            start_char_idx=0,
            relationships={
                **below("d"),
                **(below(f"{at + 1}", NodeRelationship.NEXT) if at < 4 else {}),
            },
        )
        for at, text in enumerate(texts)
    ]
    document = Document(text=" ".join(texts), id_="d")
    graph = NodeGraph()
    import_nodes(graph, [nodes[at] for at in (3, 0, 4, 2, 1)], documents=[document], groups=["s"])
    assert [n.metadata["llama_index_id"] for n in graph.nodes("s")] == ["0", "1", "2", "3", "4"]
    assert [n.start for n in graph.nodes("s")] == [0, 5, 11, 16, 18]


def test_documents_are_put_together() -> None:
    info = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    nodes = [
        TextNode(text="茶树", start_char_idx=4, end_char_idx=6, relationships=info, id_="b"),
        TextNode(text="tea ", start_char_idx=0, end_char_idx=4, relationships=info, id_="a"),
        TextNode(text="树 x", start_char_idx=5, end_char_idx=8, relationships=info, id_="c"),
    ]
    graph = NodeGraph()
    import_nodes(graph, nodes, groups=["part"])
    assert graph.node("d").text == "tea 茶树 x"
    assert [(n.metadata["llama_index_id"], n.start) for n in graph.nodes("part")] == [
        ("a", 0),
        ("b", 4),
        ("c", 5),
    ]


def test_blank_nodes_are_told() -> None:
    made = import_nodes(
        NodeGraph(), [TextNode(text=" ", id_="b", relationships=below("d"))], groups=["part"]
    )
    assert made.blank == ("b",)


class Own(TextNode):
    """A class of a user."""


@pytest.mark.parametrize(
    ("nodes", "error", "message"),
    [
        (["text"], TypeError, "takes LlamaIndex nodes, not 'text'"),
        ([Own(text="a")], TypeError, "classes .*is a Own; leave it out"),
        ([TextNode(text="a", relationships=below("x", PARENT))], ValueError, "'x' of node"),
        ([IndexNode(text="a", index_id="x")], ValueError, "stands for 'x'"),
        ([TextNode(text="a", id_="1"), TextNode(text="b", id_="1")], ValueError, "the id '1'"),
        (
            [
                TextNode(text="a", id_="1", relationships=below("2", PARENT)),
                TextNode(text="b", id_="2", relationships=below("1", PARENT)),
            ],
            ValueError,
            "stands below itself",
        ),
        (
            [
                TextNode(text="b", id_="2", relationships=below("1")),
                TextNode(text="c", id_="3", relationships=below("2", PARENT)),
            ],
            ValueError,
            "names 1 levels, and the nodes have 2",
        ),
    ],
)
def test_what_can_not_be_imported(nodes: Any, error: type[Exception], message: str) -> None:
    graph = NodeGraph()
    with pytest.raises(error, match=message):
        import_nodes(graph, nodes, groups=["part"])
    assert graph.nodes("ROOT") == []


def test_siblings_without_relationships_are_ordered_by_their_starts() -> None:
    nodes = [TextNode(text=text, id_=text, start_char_idx=at) for text, at in (("b", 2), ("a", 0))]
    assert ordered_ids(nodes) == ["a", "b"]
    assert joined_text(nodes) == "a b"
    unplaced = [TextNode(text=text, id_=text) for text in ("b", "a")]
    assert ordered_ids(unplaced) == ["b", "a"]
    assert joined_text(unplaced) == "b\n\na"


@pytest.fixture
def exported(graph: NodeGraph) -> list[TextNode]:
    return export_nodes(graph, "sentence")


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


def test_unknown_group(graph: NodeGraph) -> None:
    with pytest.raises(UnknownGroupError, match="'sentence'"):
        export_nodes(graph, "sentense")


QUERY = "Which tea is fermented? 红茶"

# Text that UTF-8 can't hold (half of a pair) has no form in a file.
words = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words, st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)
json_fields = st.dictionaries(words, plain, max_size=4)
relations = st.dictionaries(
    st.sampled_from([NodeRelationship.SOURCE, NodeRelationship.PARENT]),
    st.builds(RelatedNodeInfo, node_id=words),
)
text_nodes = st.builds(
    TextNode,
    text=words,
    id_=words,
    metadata=json_fields,
    relationships=relations,
    start_char_idx=st.one_of(st.none(), st.integers(0, 99)),
    embedding=st.one_of(st.none(), st.lists(st.floats(-1, 1), max_size=3)),
    excluded_llm_metadata_keys=st.lists(words, max_size=2),
    text_template=words,
)
index_nodes = st.builds(IndexNode, text=words, index_id=words, metadata=json_fields)
documents = st.builds(Document, text=words, id_=words, metadata=json_fields)
nodes = st.one_of(text_nodes, index_nodes, documents)
scores = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
items = st.one_of(
    nodes,
    st.builds(NodeWithScore, node=nodes, score=scores),
    st.builds(
        NodeWithEvidence, node=nodes, score=scores, evidence=st.lists(json_fields, max_size=2)
    ),
)


@given(given=st.lists(items, max_size=4))
def test_json_there_and_back(given: list[Any]) -> None:
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
        with pytest.raises(TypeError, match="would not give everything back"):
            dump_nodes([TextNode(text="x", metadata={"a": value})])
        with pytest.raises(TypeError, match="would not give everything back"):
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


class Hashed(BaseEmbedding):
    """A weak embedding: counts of pairs of letters, hashed to 64 numbers."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.001] * 64
        for at in range(len(text) - 1):
            vector[hashlib.md5(text[at : at + 2].encode()).digest()[0] % 64] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def char_splitter(size: int) -> SentenceSplitter:
    def sentences(text: str) -> list[str]:  # the default one may download
        return re.split(r"(?<=[.。])", text)

    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=sentences)


@pytest.fixture
def files() -> list[Document]:
    """Return documents as ``SimpleDirectoryReader`` makes them: with metadata and random ids."""
    fields = ["file_name", "file_size"]
    return [
        Document(
            text=" ".join(f"{tea} tea number {at} is a drink of water." for at in range(30)),
            metadata={"file_path": f"/teas/{tea}.txt", "file_name": f"{tea}.txt", "file_size": 7},
            excluded_embed_metadata_keys=fields,
            excluded_llm_metadata_keys=fields,
        )
        for tea in ("Green", "Black")
    ]


@pytest.fixture
def two_levels(files: list[Document]) -> list[BaseNode]:
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={"large": char_splitter(200), "small": char_splitter(40)},
    )
    return parser.get_nodes_from_documents(files)


@pytest.fixture
def imported(files: list[Document], two_levels: list[BaseNode]) -> NodeGraph:
    graph = NodeGraph(progress=False)
    import_nodes(graph, two_levels, documents=files, groups=["large", "small"])
    return graph


# Imported nodes are the old nodes


def test_metadata_in_another_order_than_the_documents_keeps_its_hash() -> None:
    document = Document(text="Tea is a drink.", metadata={"a": 1, "b": True}, id_="d")
    (node,) = char_splitter(40).get_nodes_from_documents([document])
    node.metadata = {"title": "Tea", "b": True, "tags": ["x"]}
    graph = NodeGraph()
    import_nodes(graph, [node], documents=[document], groups=["chunk"])
    (result,) = NodeGraphRetriever(Retriever(graph, "chunk")).retrieve("tea")
    assert result.node.hash == node.hash


def test_an_import_survives_a_restart_without_the_old_nodes(
    files: list[Document], two_levels: list[BaseNode], tmp_path: Path
) -> None:
    with NodeGraph(store=tmp_path / "graph.nodekin", progress=False) as graph:
        import_nodes(graph, two_levels, documents=files, groups=["large", "small"])
    by_id = {node.node_id: node for node in two_levels}
    with NodeGraph(store=tmp_path / "graph.nodekin", progress=False) as graph:
        search = Retriever(graph, "small", target="large", top_k=2)
        results = NodeGraphRetriever(search).retrieve("Black tea number 7")
        assert [result.node.hash for result in results] == [
            by_id[result.node_id].hash for result in results
        ]
        assert len(results) == 2
        assert {n.node_id for n in export_nodes(graph, "small")} == set(by_id)


def test_vectors_that_nodes_have_are_taken_over_when_the_model_is_named(
    files: list[Document], two_levels: list[BaseNode]
) -> None:
    model = Hashed()
    for node in two_levels:
        node.embedding = model.get_text_embedding(node.get_content("embed"))
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [model.get_text_embedding(text) for text in texts]

    found = []
    for key in ("default", None):
        graph = NodeGraph(embed=Embedder(embed, embed_queries=embed), progress=False)
        result = import_nodes(graph, two_levels, documents=files, embed_key=key)
        assert result.vectors == (len(two_levels) if key else 0)
        embedded.clear()
        hits = Retriever(graph, result.groups[-1], "cosine", top_k=5)("Black tea number 7")
        found.append([(hit.node.metadata["llama_index_id"], hit.score) for hit in hits])
        assert (len(embedded) < 5) == (key == "default")
    assert found[0] == found[1]
    with pytest.raises(LookupError, match="'e5'"):
        import_nodes(graph, two_levels, documents=files, embed_key="e5")


# Results have relatives


class Fixed(BaseRetriever):
    """Return the hits that it was given."""

    def __init__(self, hits: list[Any]) -> None:
        super().__init__()
        self.hits = hits

    def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
        return self.hits


@pytest.mark.parametrize("made", ["imported", "derived"])
def test_auto_merging_stops_at_the_largest_chunk(
    files: list[Document], imported: NodeGraph, made: str
) -> None:
    graph = imported
    if made == "derived":
        graph = NodeGraph()
        graph.add(files)
        graph.create_node_group("large", char_splitter(200))
        graph.create_node_group("small", char_splitter(40), parent="large")
    hits = NodeGraphRetriever(Retriever(graph, "small", top_k=99)).retrieve("tea drink water")
    assert len(hits) == len(graph.nodes("small"))
    large = {to_id(node) for node in graph.nodes("large")}
    for docstore in (NodeGraphDocstore(graph), exported_docstore(graph)):
        storage = StorageContext.from_defaults(docstore=docstore)
        merged = AutoMergingRetriever(Fixed(list(hits)), storage).retrieve("tea")
        assert {result.node_id for result in merged} == large


def to_id(node: Any) -> str:
    return str(node.own_metadata.get("llama_index_id", node.id))


def exported_docstore(graph: NodeGraph) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(export_nodes(graph, "small"))
    return docstore


def test_whole_documents_are_not_among_the_docstores_nodes(
    imported: NodeGraph, files: list[Document]
) -> None:
    docstore = NodeGraphDocstore(imported)
    assert not {d.node_id for d in files} & set(docstore.docs)
    assert docstore.get_document(files[0].node_id).text == files[0].text
    assert len(NodeGraphDocstore(imported, ["ROOT"]).docs) == len(files)


# Graphs with LlamaIndex's splitters


SPLITTERS: dict[str, Callable[[], Any]] = {
    "sentences": lambda: char_splitter(40),
    "tokens": lambda: TokenTextSplitter(chunk_size=40, chunk_overlap=0),
    "metadata-aware": lambda: as_transform(char_splitter(60)),
    "windows": lambda: as_transform(
        SentenceWindowNodeParser.from_defaults(sentence_splitter=split_sentences)
    ),
    "Markdown": lambda: as_transform(MarkdownNodeParser()),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_a_graph_with_a_splitter_of_llama_index_is_copied_and_pickled(
    files: list[Document], name: str
) -> None:
    graph = NodeGraph()
    graph.add(files)
    graph.create_node_group("chunk", SPLITTERS[name]())
    retriever = NodeGraphRetriever(Retriever(graph, "chunk", top_k=2))
    wanted = [r.node_id for r in retriever.retrieve("Green tea")]
    for way in (copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))):
        other, again = way((graph, retriever))
        assert [r.node_id for r in again.retrieve("Green tea")] == wanted
        other.add("New tea.")
        assert "New tea." in [r.text for r in again.retrieve("New tea.")]
    assert "New tea." not in [r.text for r in retriever.retrieve("New tea.")]
