"""Files of all formats as documents of LangChain."""

from pathlib import Path

import pytest
from langchain_community.document_loaders import DirectoryLoader

from nodekin.adapters.langchain import FileLoader
from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def test_a_folder_of_files(tmp_path: Path) -> None:
    loader = FileLoader(SAMPLES)
    pdf, word = loader.load()
    assert pdf.page_content.startswith("# 1 The tea handbook")
    assert "| 龙井 | 四元二角 | 十一元 |" in word.page_content
    assert (pdf.metadata["page_count"], pdf.id) == (2, "files/handbook.pdf")
    assert pdf.metadata["source"] == str(SAMPLES / "handbook.pdf")
    assert str(loader.report) == "2 read"
    graph = NodeGraph()
    graph.add([pdf, word])
    assert [node.place for node in graph.nodes("table")] == [
        "handbook.pdf, page 1, 1.2 Prices",
        "手册.docx, 1.2 价格",
    ]


def test_pages_and_tables_say_where_they_stand() -> None:
    first, second = FileLoader(SAMPLES / "handbook.pdf", "page").load()
    assert (second.metadata["page_label"], second.metadata["page"]) == ("2", 2)
    assert second.page_content.startswith("# 2 Serving")
    (table,) = FileLoader(str(SAMPLES / "handbook.pdf"), "table").lazy_load()
    assert table.metadata["place"] == "handbook.pdf, page 1, 1.2 Prices"
    assert table.page_content in first.page_content


def test_within_langchains_loader_of_folders() -> None:
    documents = DirectoryLoader(str(SAMPLES), glob="*.*", loader_cls=FileLoader).load()
    assert {d.metadata["file_name"] for d in documents} == {"handbook.pdf", "手册.docx"}


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Tea.")
    (tmp_path / "b.txt").write_text("x" * 99)
    loader = FileLoader(tmp_path, reading=ReadOptions(max_bytes=50))
    assert [d.page_content for d in loader.load()] == ["Tea."]
    assert str(loader.report) == "1 read, 1 skipped: 1 too large"
    with pytest.raises(ReadError, match="no file or folder"):
        FileLoader(tmp_path / "nowhere").load()
    with pytest.raises(LookupError, match="pages"):
        FileLoader(tmp_path / "a.txt", "pages").load()
