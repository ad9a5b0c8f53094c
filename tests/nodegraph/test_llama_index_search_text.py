"""Searched texts of LlamaIndex documents equal the texts that LlamaIndex embeds."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import (
    SentenceSplitter,
    SentenceWindowNodeParser,
)
from llama_index.core.schema import Document, MetadataMode, TextNode
from support.llama_index_models import Words

from nodekin.adapters.llama_index import (
    NodeGraphRetriever,
    as_index,
    as_transform,
)
from nodekin.adapters.llama_index.nodes import to_text_node
from nodekin.nodegraph import NodeGraph, PassageSplitter, split_sentences
from nodekin.retrievers import Retriever

REVENUES = {"Lyft": 3.2, "Uber": 17.5, "Bolt": 4}


def filings(**properties: Any) -> list[Document]:
    return [
        Document(
            text=f"Its revenue was {revenue} billion in 2021.",
            metadata={"company": company, "secret": "zebra"},
            id_=company,
            **properties,
        )
        for company, revenue in REVENUES.items()
    ]


def searched_texts(graph: NodeGraph, group: str = "ROOT") -> list[str]:
    return [node.searched_text for node in graph.nodes(group)]


def embedded(nodes: Any) -> list[str]:
    return [node.get_content(MetadataMode.EMBED) for node in nodes]


def test_ranking_and_scores_equal_vector_store_index() -> None:
    documents = [
        Document(
            text=f"It is number {n % 7}.", metadata={"name": f"n{n % 5}", "page": n}, id_=str(n)
        )
        for n in range(40)
    ]
    model = Words()
    graph = NodeGraph(embed=model)
    graph.add(documents)
    index = VectorStoreIndex(documents, embed_model=model)
    for store in ("default", as_index(index.vector_store.__class__())):
        ours = NodeGraphRetriever(Retriever(graph, "ROOT", "cosine", top_k=40, index=store))
        for query in ("number 3 of n2", "page 17"):
            theirs = index.as_retriever(similarity_top_k=40).retrieve(query)
            scores = {hit.metadata["page"]: hit.score for hit in theirs}
            hits = ours.retrieve(query)
            assert len(hits) == len(scores) == 40
            for hit in hits:
                assert hit.score == pytest.approx(scores[hit.metadata["page"]], abs=1e-5)


def test_excluded_keys_and_templates_are_used() -> None:
    properties: dict[str, Any] = {
        "excluded_embed_metadata_keys": ["secret"],
        "metadata_template": "<{key}={value}>",
        "metadata_separator": " | ",
        "text_template": "{content} -- {metadata_str}",
    }
    documents = filings(**properties)
    graph = NodeGraph()
    graph.add(documents)
    graph.create_node_group("copy", lambda text: [text])
    expected = embedded(documents)
    assert expected[0] == "Its revenue was 3.2 billion in 2021. -- <company=Lyft>"
    assert searched_texts(graph) == searched_texts(graph, "copy") == expected
    assert Retriever(graph, "ROOT")("zebra") == []
    assert embedded(map(to_text_node, graph.nodes("copy"))) == expected


@pytest.mark.parametrize("parse", [False, True])
def test_excluded_llm_keys_are_hidden_from_models(parse: bool, tmp_path: Path) -> None:
    (document, *_) = filings(
        excluded_llm_metadata_keys=["secret"], metadata_template="{key}={value}"
    )
    (chunk,) = sentence_splitter(200).get_nodes_from_documents([document])
    expected = chunk.get_content(MetadataMode.LLM)
    assert expected == "company=Lyft\n\nIts revenue was 3.2 billion in 2021."
    with NodeGraph(store=tmp_path / "graph") as graph:
        graph.add(document)
        split: Any = as_transform(window()) if parse else lambda text: [text]
        graph.create_node_group("chunk", split)
        graph.build("chunk")
        graph.close()  # the next call reads the file
        for group in ("ROOT", "chunk"):
            (result,) = NodeGraphRetriever(Retriever(graph, group, top_k=1)).retrieve("zebra Lyft")
            assert result.get_content(MetadataMode.LLM) == expected
            assert "zebra" in result.get_content(MetadataMode.EMBED)  # searched nevertheless


@given(
    st.dictionaries(
        st.sampled_from(["title", "headings", "a", "b c", "{", "file_path"]),
        st.one_of(st.none(), st.integers(), st.text(max_size=4), st.lists(st.integers())),
    ),
    st.lists(st.sampled_from(["title", "a", "unknown"])),
    st.sampled_from(["text", " padded \n"]),
)
def test_searched_text_of_any_metadata(
    metadata: dict[str, Any], excluded: list[str], text: str
) -> None:
    node = TextNode(text=text, metadata=metadata, excluded_embed_metadata_keys=excluded)
    graph = NodeGraph()
    graph.add(node)
    assert searched_texts(graph) == embedded([node])


WORDS = "Tea is a drink. It is green. Rivers run to the sea. They are long."


def window() -> SentenceWindowNodeParser:
    return SentenceWindowNodeParser.from_defaults(sentence_splitter=split_sentences, window_size=1)


def sentence_splitter(size: int) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=split_sentences)


def test_search_text_omits_empty_fields_of_transform() -> None:
    graph = NodeGraph()
    graph.add(TextNode(text="Tea is green.", metadata={"page": 3}))
    graph.create_node_group("passage", PassageSplitter)
    graph.create_node_group("sentence", split_sentences, parent="passage")
    for group in ("passage", "sentence"):
        (node,) = graph.nodes(group)
        assert node.metadata["headings"] == []
        assert node.searched_text == "page: 3\n\nTea is green."
