from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_community.document_loaders import DirectoryLoader
from langchain_core.documents import Document
from langchain_text_splitters import (
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
)

from nodekin.adapters.langchain import FileLoader, as_transform
from nodekin.nodegraph import Node, NodeGraph, ReadError, ReadOptions

MARKDOWN = "# Tea\nA drink.\n\n## Green\nUnfermented.\n\n# 河流\n河流入海。"


def recursive(**settings):
    return RecursiveCharacterTextSplitter(
        **{"chunk_size": 12, "chunk_overlap": 4, "add_start_index": True, **settings}
    )


def grouped(transform, *documents):
    graph = NodeGraph(progress=False)
    graph.add([Document(t, metadata={"topic": "x"}, id=str(n)) for n, t in enumerate(documents)])
    graph.create_node_group("piece", transform)
    return graph.nodes("piece")


def test_chunks_equal_the_splitters():
    text = "Rivers run to the sea. Rivers run to the sea. 河流入海，河流入海。"
    splitter = recursive()
    nodes = grouped(as_transform(splitter), text)
    assert [node.text for node in nodes] == splitter.split_text(text)
    assert all(text[node.start : node.end] == node.text for node in nodes)


@given(st.text(alphabet="ab \n河。", min_size=1, max_size=80), st.booleans())
def test_chunks_have_correct_spans(text, add_start_index):
    splitter = recursive(add_start_index=add_start_index)
    for node in grouped(as_transform(splitter), text):
        assert node.start is not None
        assert text[node.start : node.end] == node.text


@pytest.mark.parametrize("starts", [[-1, -1, -1], [0, 3, 0], [0, 4, 6], [0, None, 6], ["0", 3, 6]])
def test_wrong_start_index_gives_no_span(starts):
    class Wrong:
        def split_text(self, text):
            return [
                Document(word, metadata={"start_index": start})
                for word, start in zip(text.split(), starts, strict=True)
            ]

    assert [node.start for node in grouped(as_transform(Wrong()), "ab cd ab")] == [0, 3, 6]


def test_overlap_in_tokens_gives_correct_spans():
    """Here the splitter's own search misses: it subtracts words from characters."""
    text = "one two three four five six seven eight nine ten eleven twelve"
    splitter = recursive(
        chunk_size=4, chunk_overlap=2, length_function=lambda t: len(t.split()), separators=[" "]
    )
    made = splitter.create_documents([text])
    assert any(d.metadata["start_index"] == -1 for d in made)
    nodes = grouped(as_transform(splitter), text)
    assert [node.text for node in nodes] == [d.page_content for d in made]
    starts = [node.start for node in nodes]
    assert None not in starts
    assert starts == sorted(starts)


def test_metadata_of_splitter_becomes_own_metadata():
    splitter = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2")])
    nodes = grouped(as_transform(splitter), MARKDOWN)
    assert [(node.text, dict(node.own_metadata)) for node in nodes] == [
        ("A drink.", {"h1": "Tea"}),
        ("Unfermented.", {"h1": "Tea", "h2": "Green"}),
        ("河流入海。", {"h1": "河流"}),
    ]
    assert nodes[1].metadata == {"topic": "x", "h1": "Tea", "h2": "Green"}
    assert all(MARKDOWN[node.start : node.end] == node.text for node in nodes)


def test_transformer_cannot_change_metadata_of_nodes():
    class Spoiling:
        def transform_documents(self, documents):
            documents[0].metadata["topic"].append("spoilt")
            return documents

    node = Node("tea", {"topic": ["x"]}, id="n")
    (made,) = as_transform(Spoiling())(node)
    assert node.metadata == {"topic": ["x"]}
    assert made.own_metadata == {"topic": ["x", "spoilt"]}


def test_equal_splitters_declare_the_same_group():
    graph = NodeGraph(progress=False)
    graph.create_node_group("piece", as_transform(recursive()))
    graph.create_node_group("piece", as_transform(recursive()))
    with pytest.raises(ValueError, match="another rule"):
        graph.create_node_group("piece", as_transform(recursive(chunk_size=13)))


@pytest.mark.parametrize("wrong", ["text", None, 5, len])
def test_as_transform_of_other_objects_raises(wrong):
    with pytest.raises(TypeError, match="must have one of create_documents, split_text"):
        as_transform(wrong)
    with pytest.raises(TypeError, match=r"RecursiveCharacterTextSplitter\(\.\.\.\)"):
        as_transform(RecursiveCharacterTextSplitter)


# Files of all formats as documents


SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def test_file_loader_reads_a_folder(tmp_path: Path) -> None:
    loader = FileLoader(SAMPLES)
    pdf, word = loader.load()
    assert pdf.page_content.startswith("# 1 The tea handbook")
    assert "| 龙井 | 四元二角 | 十一元 |" in word.page_content
    assert (pdf.metadata["page_count"], pdf.id) == (2, "files/handbook.pdf")
    assert pdf.metadata["source"] == str(SAMPLES / "handbook.pdf")
    assert "place" not in word.metadata
    assert str(loader.report) == "2 read"
    graph = NodeGraph()
    graph.add([pdf, word])
    assert [node.place for node in graph.nodes("table")] == [
        "handbook.pdf, page 1, 1.2 Prices",
        "手册.docx, 1.2 价格",
    ]


def test_file_loader_of_pages_adds_places() -> None:
    first, second = FileLoader(SAMPLES / "handbook.pdf", "page").load()
    assert (second.metadata["page_label"], second.metadata["page"]) == ("2", 2)
    assert second.page_content.startswith("# 2 Serving")
    table, other = FileLoader(str(SAMPLES), "table").lazy_load()
    assert table.metadata["place"] == "handbook.pdf, page 1, 1.2 Prices"
    assert table.page_content in first.page_content
    assert other.metadata["place"] == "手册.docx, 1.2 价格"  # without a page


def test_file_loader_works_in_directory_loader() -> None:
    documents = DirectoryLoader(str(SAMPLES), glob="*.*", loader_cls=FileLoader).load()
    assert {d.metadata["file_name"] for d in documents} == {"handbook.pdf", "手册.docx"}


def test_file_loader_reports_skipped_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Tea.")
    (tmp_path / "b.txt").write_text("x" * 99)
    loader = FileLoader(tmp_path, reading=ReadOptions(max_bytes=50))
    assert [d.page_content for d in loader.load()] == ["Tea."]
    assert str(loader.report) == "1 read, 1 skipped: 1 too large"
    with pytest.raises(ReadError, match="file or folder not found"):
        FileLoader(tmp_path / "nowhere").load()
    with pytest.raises(LookupError, match="pages"):
        FileLoader(tmp_path / "a.txt", "pages").load()
