"""What LlamaIndex has, given to nodekin itself: readers, documents, parsers, embeddings, LLMs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import SimpleDirectoryReader
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.node_parser import (
    MarkdownNodeParser,
    SentenceWindowNodeParser,
    TokenTextSplitter,
)
from llama_index.core.readers import StringIterableReader
from llama_index.core.schema import Document

from nodekin.adapters.llama_index import as_transform
from nodekin.nodegraph import LLMExtractor, NodeGraph, split_sentences
from nodekin.retrievers import Retriever


def test_what_readers_load(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("Green tea is a drink.", "utf-8")
    (tmp_path / "茶.md").write_text("# 茶\n\n红茶是全发酵茶。", "utf-8")
    graph = NodeGraph()
    loaded = SimpleDirectoryReader(str(tmp_path)).load_data()
    ids = graph.add(loaded)
    assert len(set(ids)) == len(loaded)  # not the random ones of the reader
    assert graph.add(SimpleDirectoryReader(str(tmp_path)).load_data()) == ids
    assert Retriever(graph, "ROOT")("红茶")[0].node.metadata["file_name"] == "茶.md"
    assert graph.add(StringIterableReader().load_data(["Rivers run.", "Seas don't."]))
    assert graph.add(loaded[0]) == ids[:1]
    assert len(graph.nodes("ROOT")) == 2 + len(loaded)


def test_an_updated_document_is_the_same_one() -> None:
    graph = NodeGraph()
    graph.add(Document(text="Tea.", id_="d", metadata={"n": 1}))
    graph.add(Document(text="茶。", id_="d", metadata={"n": 2}))
    assert [(n.text, n.metadata) for n in graph.nodes("ROOT")] == [("茶。", {"n": 2})]


def test_parsers_make_groups() -> None:
    graph = NodeGraph()
    graph.add("# Tea\n\nGreen tea is a drink. 红茶也是。\n\n# Water\n\nWater is wet.")
    graph.create_node_group("section", as_transform(MarkdownNodeParser()))
    window = SentenceWindowNodeParser.from_defaults(sentence_splitter=split_sentences)
    graph.create_node_group("sentence", as_transform(window), parent="section")
    graph.create_node_group("tokens", TokenTextSplitter(chunk_size=20, chunk_overlap=0))
    found = Retriever(graph, "sentence", target="section")("红茶")
    assert found[0].node.text.startswith("# Tea")
    assert graph.nodes("tokens")


class Letters(BaseEmbedding):
    """An embedding model that embeds queries another way than texts."""

    asked: list[str] = []  # noqa: RUF012

    def _get_text_embedding(self, text: str) -> list[float]:
        return [0.1 + text.count(letter) for letter in "aeiou茶水"]

    def _get_query_embedding(self, query: str) -> list[float]:
        self.asked.append(query)
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(0)
        self.asked.append(f"async {query}")
        return self._get_text_embedding(query)


async def test_embeddings(unblocked: None) -> None:
    model = Letters(asked=[])
    graph = NodeGraph(embed={"letters": model, "mock": MockEmbedding(4)}, progress=False)
    await asyncio.to_thread(graph.add, ["aaa tea", "水 water", "茶茶"])
    retriever = Retriever(graph, "ROOT", "cosine", embed_keys=["letters"])
    found = await retriever.aretrieve("茶")
    assert found[0].node.text == "茶茶"
    assert model.asked == ["async 茶"]
    both = await Retriever(graph, "ROOT", "cosine").aretrieve("水")
    assert len(both) == 3


class Scripted(CustomLLM):
    answer: str
    prompts: list[str] = []  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.answer)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield self.complete(prompt)


@pytest.mark.parametrize("text", ["Tea is a drink of leaves and water.", "红茶是全发酵茶。"])
def test_models_make_summaries(text: str) -> None:
    llm = Scripted(answer="Tea in short. 茶。", prompts=[])
    graph = NodeGraph(progress=False)
    graph.add(text)
    graph.create_node_group("summary", LLMExtractor(llm, task="summary"))
    found = Retriever(graph, "summary", target="ROOT")("short 茶")
    assert [r.node.text for r in found] == [text]
    assert len(llm.prompts) == 1
