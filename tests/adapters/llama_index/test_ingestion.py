"""Transforms and readers in LlamaIndex, parsers of LlamaIndex in graphs."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import SimpleDirectoryReader
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.node_parser import (
    NodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    TokenTextSplitter,
)
from llama_index.core.schema import (
    Document,
    MetadataMode,
    NodeRelationship,
    TextNode,
    TransformComponent,
)

from nodekin.adapters.llama_index import FileReader, NodeGraphTransform, as_transform
from nodekin.nodegraph import (
    Node,
    NodeGraph,
    ReadError,
    TransformError,
    split_paragraphs,
    split_sentences,
)

WORDS = " ".join(f"word{i}" for i in range(60))


def window(**settings: Any) -> SentenceWindowNodeParser:
    return SentenceWindowNodeParser.from_defaults(sentence_splitter=split_sentences, **settings)


def built(transform: object, text: str, metadata: dict[str, Any] | None = None) -> NodeGraph:
    graph = NodeGraph()
    graph.add(Document(id_="d", text=text, metadata=metadata or {}))
    graph.create_node_group("piece", transform)
    graph.nodes("piece")
    return graph


def test_sentence_windows_keep_spans() -> None:
    text = "茶是饮品。Yes. Yes. It is. 茶是饮品。"
    graph = built(as_transform(window(window_size=1)), text, {"topic": "tea"})
    nodes = graph.nodes("piece")
    assert [n.text for n in nodes] == [s.strip() for s in split_sentences(text)]
    assert [text[n.start : n.end] for n in nodes] == [n.text for n in nodes]
    assert len({n.start for n in nodes}) == 5
    assert [set(n.own_metadata) for n in nodes] == [{"window", "original_text"}] * 5
    assert nodes[0].metadata["topic"] == "tea"
    assert nodes[0].searched_text == "topic: tea\n\n茶是饮品。"  # the window is not embedded
    assert nodes[2].metadata["window"] == "Yes. Yes. It is."


def sentences(chunk_size: int, chunk_overlap: int, **settings: Any) -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        chunking_tokenizer_fn=split_sentences,  # the default one may ask NLTK to download
        **settings,
    )


@pytest.mark.parametrize(
    "parser", [sentences(24, 4), TokenTextSplitter(chunk_size=24, chunk_overlap=4)]
)
def test_chunks_equal_those_of_llama_index(parser: NodeParser) -> None:
    document = Document(
        id_="d",
        text=WORDS,
        metadata={"topic": "words", "file_size": 3},
        excluded_embed_metadata_keys=["file_size"],
        metadata_template="{key} is {value}",
    )
    graph = NodeGraph()
    graph.add(document)
    graph.create_node_group("piece", as_transform(parser))
    nodes = graph.nodes("piece")
    theirs = parser.get_nodes_from_documents([document])
    assert [n.searched_text for n in nodes] == [n.get_content(MetadataMode.EMBED) for n in theirs]
    assert [n.text for n in nodes] == [n.get_content() for n in theirs]
    assert [n.start for n in nodes] == [n.start_char_idx for n in theirs]
    assert all(n.own_metadata == {} and n.metadata == document.metadata for n in nodes)


def test_parser_splits_another_group() -> None:
    graph = built(str.splitlines, "One. Two.\nThree. Two.")
    graph.create_node_group("sentence", as_transform(window()), parent="piece")
    assert [(n.text, n.start) for n in graph.nodes("sentence")] == [
        ("One.", 0),
        ("Two.", 5),
        ("Three.", 10),
        ("Two.", 17),
    ]


@pytest.mark.parametrize(
    ("other", "is_equal"),
    [
        (sentences(24, 4), True),
        (sentences(25, 4), False),
        (sentences(24, 4, tokenizer=str.split), False),
        (SentenceSplitter(chunk_size=24, chunk_overlap=4), False),
        (TokenTextSplitter(chunk_size=24, chunk_overlap=4), False),
    ],
)
def test_parsers_with_equal_settings_are_one_rule(other: NodeParser, is_equal: bool) -> None:
    parser = sentences(24, 4)
    graph = built(as_transform(parser), WORDS)
    graph.create_node_group("piece", as_transform(parser))  # whose counters have changed
    if is_equal:
        graph.create_node_group("piece", as_transform(other))
    else:
        with pytest.raises(ValueError, match="already exists with another rule"):
            graph.create_node_group("piece", as_transform(other))


class Upper(TransformComponent):
    def __call__(self, nodes: Any, **kwargs: Any) -> list[TextNode]:
        for node in nodes:
            node.metadata["topic"].append("changed")
            node.metadata["loud"] = node.get_content().upper()
        return list(nodes)


def test_components_other_than_parsers_are_accepted() -> None:
    graph = built(as_transform(Upper()), "Tea.", {"topic": ["tea"]})
    (node,) = graph.nodes("piece")
    assert node.own_metadata == {"topic": ["tea", "changed"], "loud": "TEA."}
    assert (node.start, node.end) == (0, 4)
    assert graph.node("d").metadata == {"topic": ["tea"]}


def test_parser_of_several_levels_raises() -> None:
    class Levels(TransformComponent):
        def __call__(self, nodes: Any, **kwargs: Any) -> list[TextNode]:
            above, below = TextNode(text="ab"), TextNode(text="ab")
            below.relationships[NodeRelationship.PARENT] = above.as_related_node_info()
            return [above, below]

    with pytest.raises(TransformError, match="Levels makes nodes of several levels; use one group"):
        built(as_transform(Levels()), "abab")


@pytest.mark.parametrize("wrong", [str.split, "parser", SentenceSplitter, None])
def test_invalid_parser_raises(wrong: object) -> None:
    with pytest.raises(TypeError, match="as_transform takes a node parser"):
        as_transform(wrong)


TEXT = "Green tea. Black tea.\n\n红茶是茶。水也是。"


@pytest.fixture
def document() -> Document:
    return Document(
        text=TEXT,
        id_="d",
        metadata={"topic": "tea"},
        excluded_llm_metadata_keys=["topic"],
        text_template="<{content}>",
    )


def test_transforms_in_a_row_keep_the_source(document: Document) -> None:
    pipeline = IngestionPipeline(
        transformations=[NodeGraphTransform(split_paragraphs), NodeGraphTransform(split_sentences)]
    )
    nodes = pipeline.run(documents=[document])
    assert [n.text for n in nodes] == ["Green tea.", "Black tea.", "红茶是茶。", "水也是。"]
    assert all(TEXT[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert {n.ref_doc_id for n in nodes} == {"d"}
    assert {type(n) for n in nodes} == {TextNode}
    first, second, third, _ = nodes
    assert first.parent_node.node_id == second.parent_node.node_id != third.parent_node.node_id
    assert first.next_node.node_id == second.node_id
    assert second.prev_node.node_id == first.node_id
    assert second.next_node is None
    assert first.get_content("embed") == "<Green tea.>"
    assert first.get_content("llm") == "Green tea."
    assert first.metadata == {"topic": "tea"}
    assert NodeRelationship.PARENT not in pipeline.transformations[0]([document])[0].relationships


def test_metadata_of_a_transform_are_added() -> None:
    def loud(node: Node) -> list[Node]:
        return [Node(node.text.upper(), {"loud": True, "from": node.metadata["topic"]})]

    given = TextNode(text="tea", id_="t", metadata={"topic": "a"}, start_char_idx=5)
    (made,) = NodeGraphTransform(loud, trans_node=True)([given])
    assert (made.text, made.metadata) == ("TEA", {"topic": "a", "loud": True, "from": "a"})
    assert (made.start_char_idx, made.ref_doc_id) == (None, "t")
    assert given == TextNode(text="tea", id_="t", metadata={"topic": "a"}, start_char_idx=5)
    (piece,) = NodeGraphTransform(str.strip)([given])
    assert (piece.start_char_idx, piece.end_char_idx) == (5, 8)


def test_pipeline_cache_contains_the_rule(document: Document) -> None:
    calls: list[str] = []

    def split(text: str, mark: str = ".") -> list[str]:
        calls.append(text)
        return text.split(mark)

    cache = IngestionCache()
    all_options = [{}, {}, {"mark": "。"}, {"version": "2"}]
    transforms = [NodeGraphTransform(split, **options) for options in all_options]
    for transform, count in zip(transforms, (1, 1, 2, 3), strict=True):
        pipeline = IngestionPipeline(transformations=[transform], cache=cache)
        assert pipeline.run(documents=[document])
        assert len(calls) == count


async def test_async_transform_does_not_block_the_loop(document: Document, unblocked: None) -> None:
    transform = await asyncio.to_thread(NodeGraphTransform, split_sentences)
    pipeline = IngestionPipeline(transformations=[transform], disable_cache=True)
    assert len(await pipeline.arun(documents=[document])) == 4


def test_transform_can_be_pickled() -> None:
    made = pickle.loads(pickle.dumps(NodeGraphTransform(split_sentences)))
    assert [n.text for n in made([TextNode(text="茶。水。")])] == ["茶。", "水。"]
    assert made.rule == NodeGraphTransform(split_sentences).rule
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(NodeGraphTransform(lambda text: text))


def test_invalid_and_failed_transforms_raise() -> None:
    with pytest.raises(TypeError, match="transform must be a callable"):
        NodeGraphTransform(3)
    with pytest.raises(TransformError, match="document 't'"):
        NodeGraphTransform(lambda text: 1 / 0)([TextNode(text="a", id_="t")])


SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def test_reader_of_a_folder() -> None:
    pdf, word = FileReader().load_data(SAMPLES, extra_info={"owner": "us"})
    assert pdf.text.startswith("# 1 The tea handbook")
    assert "| 龙井 | 四元二角 | 十一元 |" in word.text
    assert (pdf.id_, pdf.metadata["owner"]) == ("files/handbook.pdf", "us")
    assert "file_size" in pdf.excluded_llm_metadata_keys
    with pytest.raises(ReadError, match="file or folder not found"):
        FileReader().load_data(SAMPLES / "nowhere")


def test_reader_in_simple_directory_reader() -> None:
    readers = {".pdf": FileReader("page"), ".docx": FileReader()}
    documents = SimpleDirectoryReader(str(SAMPLES), file_extractor=readers).load_data()
    pages = [d for d in documents if d.metadata["file_name"] == "handbook.pdf"]
    assert [d.metadata["page_label"] for d in pages] == ["1", "2"]
    assert pages[1].metadata["place"].startswith("handbook.pdf, page 2")
    assert len(documents) == 3


def test_transform_comes_back_from_dict_and_rebind() -> None:
    made = NodeGraphTransform(split_sentences)
    again = NodeGraphTransform.from_dict(made.to_dict())
    assert again.rule == made.rule
    documents = [TextNode(text="One. Two.")]
    with pytest.raises(ValueError, match="the transform is missing"):
        again(documents)
    assert len(again.rebind(split_sentences)(documents)) == 2
    assert again.rule == made.rule
    assert len(NodeGraphTransform.from_dict(made.to_dict(), transform=str.split)(documents)) == 2
