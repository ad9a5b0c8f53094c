import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from nodekin.adapters.langchain import NodeTextSplitter
from nodekin.nodegraph import (
    MarkdownSplitter,
    NodeGraph,
    RecursiveSplitter,
    SentenceSplitter,
    split_paragraphs,
    split_sentences,
)

TEXT = "绿茶不发酵。红茶发酵。Rivers run to the sea. 绿茶不发酵。Rivers run to the sea."


@pytest.mark.parametrize(
    "splitter",
    [None, SentenceSplitter(12, 4), RecursiveSplitter(8, 2), split_sentences, split_paragraphs],
)
def test_offsets_are_true(splitter):
    pieces = NodeTextSplitter(splitter).create_documents([TEXT, "河。\n\n海。"])
    for piece in pieces:
        source = TEXT if piece.page_content in TEXT else "河。\n\n海。"
        assert source.startswith(piece.page_content, piece.metadata["start_index"])


def test_where_langchains_own_go_astray():
    """Overlap in words: their search for a piece begins too far on, and does not find it."""

    def words(text):
        return len(text.split())

    text = "one two three four five six seven eight nine ten eleven twelve"
    settings = {"chunk_size": 4, "chunk_overlap": 2, "length_function": words}
    theirs = RecursiveCharacterTextSplitter(
        add_start_index=True, separators=[" "], **settings
    ).create_documents([text])
    assert any(each.metadata["start_index"] == -1 for each in theirs)
    ours = NodeTextSplitter(**settings).create_documents([text])
    assert len(ours) > 1
    for each in ours:
        assert text.startswith(each.page_content, each.metadata["start_index"])


@given(st.text(alphabet="ab .\n河。", max_size=80), st.integers(2, 20))
def test_they_are_the_splitters_pieces(text, size):
    native = SentenceSplitter(size, size // 4)
    pieces = NodeTextSplitter(native).create_documents([text])
    assert [each.page_content for each in pieces] == [
        text[a:b] for a, b in native.spans(text) if text[a:b].strip()
    ]
    for each in pieces:
        assert text.startswith(each.page_content, each.metadata["start_index"])


def test_metadata_is_copied_and_gets_what_the_splitter_says():
    document = Document("# Tea\nHot.\n# 河\n长。", metadata={"tags": ["a"], "source": "x"})
    pieces = NodeTextSplitter(MarkdownSplitter()).split_documents([document])
    assert len(pieces) == 2
    for piece in pieces:
        assert piece.metadata["source"] == "x"
        piece.metadata["tags"].append("b")
    assert document.metadata == {"tags": ["a"], "source": "x"}
    native = NodeGraph(progress=False)
    native.add(document.page_content)
    native.create_node_group("part", MarkdownSplitter())
    for piece, node in zip(pieces, native.nodes("part"), strict=True):
        assert piece.page_content == node.text
        assert piece.metadata["start_index"] == node.start
        assert node.own_metadata.items() <= piece.metadata.items()


def test_a_transform_of_nodes_sees_the_metadata():
    def headed(node):
        return [f"{node.metadata['title']}: {node.text}", node.text]

    headed.trans_node = True
    pieces = NodeTextSplitter(headed).create_documents(["河流"], [{"title": "河"}])
    assert [(p.page_content, p.metadata["start_index"]) for p in pieces] == [
        ("河: 河流", -1),
        ("河流", 0),
    ]


def test_it_is_one_of_langchains():
    splitter = NodeTextSplitter(chunk_size=20, chunk_overlap=0, length_function=len)
    assert isinstance(splitter, TextSplitter)
    pieces = splitter.transform_documents([Document(TEXT)])
    assert all(len(piece.page_content) <= 20 for piece in pieces)  # characters, as there
    (piece,) = NodeTextSplitter(add_start_index=False).create_documents(["Tea."], [{"n": 1}])
    assert piece.metadata == {"n": 1}
    assert [p.page_content for p in pieces] == splitter.split_text(TEXT)


def test_sizes_beside_a_splitter_are_refused():
    with pytest.raises(TypeError, match="chunk_size is for sentences"):
        NodeTextSplitter(split_sentences, chunk_size=3)
    with pytest.raises(TypeError, match="transform must be a callable"):
        NodeTextSplitter(3)
    with pytest.raises(ValueError, match="2 texts and 1 metadatas"):
        NodeTextSplitter().create_documents(["a", "b"], [{}])


WITHOUT = """
import sys
sys.modules["langchain_text_splitters"] = None
try:
    import nodekin.adapters.langchain.text_splitter
except ImportError as error:
    print(error)
"""


def test_without_the_splitters_package_the_error_says_what_to_install():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert "pip install langchain-text-splitters" in run.stdout
