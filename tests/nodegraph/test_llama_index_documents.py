"""LlamaIndex documents, readers and parsers in a graph."""

from pathlib import Path

from llama_index.core import SimpleDirectoryReader
from llama_index.core.node_parser import (
    MarkdownNodeParser,
    SentenceWindowNodeParser,
    TokenTextSplitter,
)
from llama_index.core.readers import StringIterableReader

from nodekin.adapters.llama_index import as_transform
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever


def test_loaded_documents_have_stable_ids(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("Green tea is a drink.", "utf-8")
    (tmp_path / "茶.md").write_text("# 茶\n\n红茶是全发酵茶。", "utf-8")
    graph = NodeGraph()
    loaded = SimpleDirectoryReader(str(tmp_path)).load_data()
    ids = graph.add(loaded)
    assert len(set(ids)) == len(loaded)  # instead of the reader's random ids
    assert graph.add(SimpleDirectoryReader(str(tmp_path)).load_data()) == ids
    assert Retriever(graph, "ROOT")("红茶")[0].node.metadata["file_name"] == "茶.md"
    assert graph.add(StringIterableReader().load_data(["Rivers run.", "Seas don't."]))
    assert graph.add(loaded[0]) == ids[:1]
    assert len(graph.nodes("ROOT")) == 2 + len(loaded)


def test_node_parsers_create_groups() -> None:
    graph = NodeGraph()
    graph.add("# Tea\n\nGreen tea is a drink. 红茶也是。\n\n# Water\n\nWater is wet.")
    graph.create_node_group("section", as_transform(MarkdownNodeParser()))
    window = SentenceWindowNodeParser.from_defaults(sentence_splitter=split_sentences)
    graph.create_node_group("sentence", as_transform(window), parent="section")
    graph.create_node_group("tokens", TokenTextSplitter(chunk_size=20, chunk_overlap=0))
    found = Retriever(graph, "sentence", target="section")("红茶")
    assert found[0].node.text.startswith("# Tea")
    assert graph.nodes("tokens")
