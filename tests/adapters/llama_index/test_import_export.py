"""Hierarchies that were made in LlamaIndex, as groups of a graph, and back again."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    NodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.retrievers import AutoMergingRetriever, RecursiveRetriever
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore

from nodekin.adapters.llama_index import (
    LiftPostprocessor,
    NodeGraphDocstore,
    NodeGraphRetriever,
    export_index_nodes,
    export_nodes,
    from_text_node,
    import_nodes,
)
from nodekin.nodegraph import Document as Source
from nodekin.nodegraph import NodeGraph, split_paragraphs, split_sentences
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
    again = export_index_nodes(graph, "summary", "ROOT")
    assert [(n.node_id, n.index_id, n.text) for n in again] == [
        (n.node_id, n.index_id, n.text) for n in parts
    ]


class Letters(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0 + text.count(letter) for letter in "aeiou0123456789茶"]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def test_recursive_retriever_of_llama_index_follows_index_nodes() -> None:
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add([Source(TEXT, id="teas")])
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    index = VectorStoreIndex(
        export_index_nodes(graph, "sentence", "paragraph"), embed_model=Letters()
    )
    recursive = RecursiveRetriever(
        "vector",
        retriever_dict={"vector": index.as_retriever(similarity_top_k=8)},
        node_dict={n.node_id: n for n in export_nodes(graph, "paragraph")},
    )
    theirs = [r.node_id for r in recursive.retrieve("Tea number 7 is a drink of leaves and water.")]
    search = Retriever(graph, "sentence", "cosine", target="paragraph", top_k=len(theirs))
    mine = [r.node.id for r in search("Tea number 7 is a drink of leaves and water.")]
    assert mine[0] == theirs[0]
    down = export_index_nodes(graph, "paragraph", "sentence")
    assert len({node.node_id for node in down}) == len(down) == len(graph.nodes("sentence"))


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


@settings(max_examples=60)
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
        assert [n.text for n in graph.nodes("part")] == ["four", "three"]
        graph.add("A document of another kind.")
        assert len(graph.nodes("part")) == 2
    with NodeGraph(store=tmp_path / "graph.db") as graph:
        import_nodes(graph, [*nodes("a", "four"), *nodes("b", "three")], groups=["part"])
        assert [n.text for n in graph.nodes("part")] == ["four", "three"]


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
