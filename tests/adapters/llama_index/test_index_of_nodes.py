"""An index of nodes finds whatever it was given, and returns it as it was."""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever, RecursiveRetriever
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_models import Words

from nodekin.adapters.llama_index import NodeGraphIndex
from nodekin.adapters.llama_index.import_export import dump_nodes, load_nodes

TEXTS = ("Ultron was made by Tony Stark.", "Loki came with an army to New York.")
SUMMARY = "Who made Ultron?"


class Table(CustomQueryEngine):
    """Answer everything alike."""

    def custom_query(self, query_str: str) -> str:
        return "42 rows"


def base_nodes() -> list[BaseNode]:
    documents = [Document(text=text, id_=f"d{at}") for at, text in enumerate(TEXTS)]
    return SentenceSplitter().get_nodes_from_documents(documents)


def ids(results: Any) -> list[str]:
    return [result.node_id for result in results]


@pytest.fixture(params=["bm25", None, "cosine"])
def similarity(request: pytest.FixtureRequest) -> str | None:
    value: str | None = request.param
    return value


def both(nodes: list[BaseNode], similarity: str | None = "cosine", **options: Any) -> list[Any]:
    """Return LlamaIndex's index and ours of the same nodes."""
    ours = NodeGraphIndex.from_nodes(nodes, similarity=similarity, embed_model=Words(), **options)
    return [VectorStoreIndex(nodes, embed_model=Words()), ours]


def test_base_nodes_and_index_nodes_are_one_pool(similarity: str | None) -> None:
    base = base_nodes()
    nodes = [*base, IndexNode(text=SUMMARY, index_id=base[0].node_id, id_="summary")]
    for index in both(nodes, similarity):
        (best, *_) = index.as_retriever(similarity_top_k=3).retrieve("Loki army New York")
        assert best.node_id == base[1].node_id
        (best, *_) = index.as_retriever(similarity_top_k=3).retrieve(SUMMARY)
        assert isinstance(best.node, IndexNode)
        assert (best.node_id, best.node.index_id) == ("summary", base[0].node_id)
        followed = RecursiveRetriever(
            "vector",
            retriever_dict={"vector": index.as_retriever(similarity_top_k=1)},
            node_dict={node.node_id: node for node in nodes},
        ).retrieve(SUMMARY)
        assert [result.text for result in followed] == [TEXTS[0]]


def test_chunk_references_are_followed_as_over_a_vector_store_index() -> None:
    base = base_nodes()
    small = SentenceSplitter(chunk_size=12, chunk_overlap=2)
    nodes: list[BaseNode] = []
    for node in base:
        parts = small.get_nodes_from_documents([node])
        nodes += [IndexNode.from_text_node(part, node.node_id) for part in parts]
        nodes.append(IndexNode.from_text_node(node, node.node_id))
    found = [
        RecursiveRetriever(
            "vector",
            retriever_dict={"vector": index.as_retriever(similarity_top_k=1)},
            node_dict={node.node_id: node for node in [*nodes, *base]},
        ).retrieve("an army in New York")
        for index in both(nodes)
    ]
    assert ids(found[0]) == ids(found[1])


def test_references_to_retrievers_engines_and_objects_are_followed() -> None:
    base = base_nodes()
    marvel = VectorStoreIndex(base, embed_model=Words()).as_retriever(similarity_top_k=1)
    entries: list[BaseNode] = [
        IndexNode(text="All on Marvel", index_id="marvel"),
        IndexNode(text="A table of years", index_id="years"),
    ]
    for question, expected in (("Marvel", TEXTS[0]), ("table of years", "42 rows")):
        texts = []
        for index in both(entries):
            recursive = RecursiveRetriever(
                "root",
                retriever_dict={"root": index.as_retriever(similarity_top_k=1), "marvel": marvel},
                query_engine_dict={"years": Table()},
                query_response_tmpl="{response}",
            )
            texts.append([result.text for result in recursive.retrieve(question)])
        assert texts[0] == texts[1]
        objects = [
            IndexNode(text="All on Marvel", index_id="marvel", obj=base[0]),
            IndexNode(text="A table of years", index_id="years", obj=Table()),
        ]
        index = NodeGraphIndex.from_nodes(objects, similarity="bm25")
        for retriever in (index.as_retriever(), index.as_query_engine(MockLLM())):
            (result, *_) = retriever.retrieve(QueryBundle(question))
            assert result.text == expected


def test_nodes_with_and_without_documents_are_found() -> None:
    alone = TextNode(text="Milk is white.", id_="milk")
    by_ids = NodeGraphIndex([alone, *base_nodes()], similarity="bm25").as_retriever(
        filters={"llama_index_id": {"in": ["milk"]}}
    )
    assert ids(by_ids.retrieve("white Ultron")) == ["milk"]
    index = NodeGraphIndex.from_nodes([*base_nodes(), alone], similarity="bm25")
    assert ids(index.as_retriever(similarity_top_k=1).retrieve("milk")) == ["milk"]
    assert {*index.ref_doc_info} == {"d0", "d1", "milk"}
    index.delete_ref_doc("milk")
    assert index.as_retriever().retrieve("milk") == []


def test_all_levels_of_a_hierarchy_are_found_and_leaves_are_merged() -> None:
    texts = (f"{text[:-1]} in {at}. It was {at} ago." for at, text in enumerate(TEXTS * 2))
    document = Document(text=" ".join(texts))
    parser = HierarchicalNodeParser.from_defaults([48, 12], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([document])
    index = NodeGraphIndex.from_nodes(nodes, similarity="bm25")
    results = index.as_retriever(similarity_top_k=99).retrieve("Loki army Ultron Stark long ago")
    assert {*ids(results)} == {node.node_id for node in nodes}
    given = {node.node_id: node for node in nodes}
    for result in results:
        assert result.node.hash == given[result.node_id].hash
        assert result.node.start_char_idx == given[result.node_id].start_char_idx
        for name in ("parent_node", "child_nodes", "next_node", "prev_node"):
            mine, theirs = getattr(result.node, name), getattr(given[result.node_id], name)
            lists = [one if isinstance(one, list) else [one] for one in (mine, theirs)]
            assert [o and o.node_id for o in lists[0] or []] == [
                o and o.node_id for o in lists[1] or []
            ]
    merged = []
    for kind in (VectorStoreIndex, NodeGraphIndex):
        storage = StorageContext.from_defaults(docstore=SimpleDocumentStore())
        storage.docstore.add_documents(nodes)
        leaves: Any = kind(get_leaf_nodes(nodes), storage_context=storage, embed_model=Words())
        base = leaves.as_retriever(similarity_top_k=9)
        merged.append({*ids(AutoMergingRetriever(base, storage).retrieve("Loki army Ultron"))})
    assert merged[0] == merged[1]


def test_neighbours_of_nodes_without_a_source_are_kept() -> None:
    nodes = [TextNode(text=f"Tea {name}.", id_=name) for name in "abc"]
    for before, after in pairwise(nodes):
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    index = NodeGraphIndex.from_nodes(nodes, similarity="bm25")
    for result in index.as_retriever(similarity_top_k=3).retrieve("tea"):
        (given,) = (node for node in nodes if node.node_id == result.node_id)
        for mine, theirs in (
            (result.node.next_node, given.next_node),
            (result.node.prev_node, given.prev_node),
        ):
            assert (mine and mine.node_id) == (theirs and theirs.node_id)


@pytest.mark.parametrize("how", ["cosine", None])
def test_vectors_that_nodes_carry_are_used(how: str | None, tmp_path: Any) -> None:
    documents = [Document(text=text, id_=str(at)) for at, text in enumerate(TEXTS)]
    pipeline = IngestionPipeline(transformations=[SentenceSplitter(), Words()])
    nodes = list(pipeline.run(documents=documents))
    model, file = Words(texts=[]), tmp_path / "nodes.nodekin"
    theirs = VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=1)
    index = NodeGraphIndex.from_nodes(nodes, embed_model=model, similarity=how, store=file)
    question = "Who came with an army?"
    found = index.as_retriever(similarity_top_k=1).retrieve(question)
    assert ids(found) == ids(theirs.retrieve(question))
    assert model.texts == []
    index.graph.close()
    index = NodeGraphIndex.from_nodes([], embed_model=model, similarity=how, store=file)
    assert ids(index.as_retriever(similarity_top_k=1).retrieve(question)) == ids(found)
    assert model.texts == []
    index.insert_nodes([TextNode(text="Hulk is green.", id_="hulk")])
    assert ids(index.as_retriever(similarity_top_k=1).retrieve("green Hulk")) == ["hulk"]
    assert model.texts == ["Hulk is green."]


def test_images_are_found_by_their_texts_and_come_back_as_images() -> None:
    picture = MediaResource(url="https://example.com/cup.png")
    nodes: list[BaseNode] = [
        ImageNode(text="A cup of tea", image="aGVsbG8=", id_="cup", metadata={"page": 1}),
        Node(text_resource=MediaResource(text="A bridge"), image_resource=picture, id_="bridge"),
        ImageDocument(text="A panda", image="aGVsbG8=", id_="panda"),
    ]
    index = NodeGraphIndex.from_nodes(nodes, similarity="bm25")
    for node, question in zip(nodes, ("cup", "bridge", "panda"), strict=True):
        (result,) = index.as_retriever(similarity_top_k=1).retrieve(question)
        assert type(result.node) is (Document if isinstance(node, Document) else type(node))
        assert result.node.metadata == node.metadata
        assert result.node.get_content() == node.get_content()
        for name in ("image_resource" if isinstance(node, Document) else "image", "image_resource"):
            assert getattr(result.node, name, None) == getattr(node, name, None)
        assert load_nodes(dump_nodes([result])) == [result]


class Pictures(Words, MultiModalEmbedding):
    """Embed an image as the words that its bytes are."""

    def _get_image_embedding(self, img_file_path: Any) -> list[float]:
        self.texts.append(img_file_path.getvalue().decode())
        return self._get_query_embedding(self.texts[-1])

    async def _aget_image_embedding(self, img_file_path: Any) -> list[float]:
        return self._get_image_embedding(img_file_path)


def picture(shows: str, name: str, text: str) -> ImageNode:
    return ImageNode(text=text, id_=name, image=base64.b64encode(shows.encode()).decode())


def test_images_are_found_by_their_vectors_where_the_model_has_them() -> None:
    nodes = [picture("panda bamboo", "1", "Figure 1"), picture("tea cup", "2", "Figure 2")]
    index = NodeGraphIndex(nodes, embed_model=Pictures())
    index.insert_nodes([picture("river bridge", "3", "Figure 3")])
    for question, name in (("bamboo", "1"), ("a cup of tea", "2"), ("the bridge", "3")):
        assert ids(index.as_retriever(similarity_top_k=1).retrieve(question)) == [name]
    with pytest.raises(ValueError, match=r"'1' and '4' have the same text, 'Figure 1'"):
        NodeGraphIndex([*nodes, picture("river", "4", "Figure 1")], embed_model=Pictures())


def test_images_without_a_text_are_left_out_and_not_embedded(caplog: Any) -> None:
    model = Pictures()
    blank = [picture("tea", "a", ""), picture("river", "b", " ")]
    blank[1].metadata = {"file_name": "river.png"}
    index = NodeGraphIndex([*blank, picture("panda bamboo", "1", "Figure 1")], embed_model=model)
    index.insert_nodes(blank)
    assert ids(index.as_retriever(similarity_top_k=3).retrieve("bamboo")) == ["1"]
    assert model.texts == ["panda bamboo"]
    assert caplog.text.count("left out, as they have no text: a, b") == 2


@pytest.mark.parametrize("of_settings", [False, True])
def test_images_that_are_added_to_texts_are_found_by_their_vectors(
    of_settings: bool, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Pictures()
    monkeypatch.setattr(Settings, "_embed_model", model if of_settings else None)
    first = TextNode(text="A text", id_="text")
    index = NodeGraphIndex([first], embed_model=None if of_settings else model)
    index.insert_nodes([picture("panda bamboo", "1", "Figure 1")])
    for question, name in (("bamboo", "1"), ("text", "text")):
        assert ids(index.as_retriever(similarity_top_k=1).retrieve(question)) == [name]
    assert not caplog.text
    document = ImageDocument(text="Figure 2", image=picture("cup", "2", "").image, id_="2")
    NodeGraphIndex.from_documents([document], embed_model=model)
    assert "the images of 2 are found by their texts alone" in caplog.text


def test_vectors_that_are_added_to_texts_are_a_warning(caplog: Any) -> None:
    index = NodeGraphIndex([TextNode(text="A text")], embed_model=Words())
    index.insert_nodes([TextNode(text="More")])
    assert not caplog.text
    index.insert_nodes([TextNode(text="Else", id_="else", embedding=[1.0])])
    assert "else are found by their texts alone" in caplog.text


def test_images_of_documents_stay_with_their_chunks(caplog: Any) -> None:
    given = [ImageDocument(text="A panda. It eats.", image="aGVsbG8=", id_="p", metadata={"n": 1})]
    for kind in (VectorStoreIndex, NodeGraphIndex):
        index: Any = kind.from_documents(given, embed_model=Words())
        (result, *_) = index.as_retriever().retrieve("panda")
        assert (type(result.node), result.node.image) == (ImageNode, "aGVsbG8=")
        assert (result.metadata, result.node.ref_doc_id) == ({"n": 1}, "p")
    index.insert(ImageDocument(text="A bridge.", image="dGVh", id_="b"))
    assert index.as_retriever().retrieve("bridge")[0].node.image == "dGVh"
    assert index.refresh_ref_docs(given) == [False]
    assert not caplog.text
    index.insert(ImageDocument(text="", image="dGVh", id_="blank"))
    index = NodeGraphIndex(
        [picture("tea", "none", ""), picture("tea", "cup", "A cup")], similarity="bm25"
    )
    assert "the images of blank can't be found" in caplog.text
    assert "left out, as they have no text: none" in caplog.text
