"""Transforms: forms, inputs, outputs and errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, SentenceSplitter, TransformError
from nodekin.nodegraph.node import LinkedText

TEXT = "Tea is hot. Ice is not."


def made(transform: Any, text: str = TEXT, **settings: Any) -> list[Node]:
    graph = NodeGraph()
    graph.add(Document(text, {"topic": "tea"}, id="doc"))
    graph.create_node_group("made", transform, **settings)
    return graph.nodes("made")


def texts(transform: Any, text: str = TEXT, **settings: Any) -> list[str]:
    return [node.text for node in made(transform, text, **settings)]


def cut(text: str, mark: str = " ", limit: int = -1) -> list[str]:
    return text.split(mark, limit)


def annotated(node: Node) -> str:
    return f"{node.id}: {node.text[:3]}"


class Cutter:
    def __init__(self, mark: str = " ") -> None:
        self.mark = mark

    def __call__(self, text: str) -> list[str]:
        return text.split(self.mark)

    def method(self, text: str) -> str:
        return text.upper()


class Halves:
    """A transform in the form of LazyLLM."""

    def transform(self, node: Node, **kwargs: Any) -> list[str]:
        return node.text.split(". ")


class OnNodes:
    trans_node = True

    def __call__(self, item: Any) -> str:
        return f"{item.metadata['topic']}: {item.text[:3]}"


@pytest.mark.parametrize(
    ("transform", "settings", "expected"),
    [
        (cut, {}, TEXT.split()),
        (cut, {"mark": ". "}, ["Tea is hot", "Ice is not."]),
        (lambda text: text.split(". "), {}, ["Tea is hot", "Ice is not."]),
        (str.upper, {}, [TEXT.upper()]),
        (len, {}, ["23"]),
        (functools.partial(cut, mark=". "), {}, ["Tea is hot", "Ice is not."]),
        (Cutter("."), {}, ["Tea is hot", " Ice is not"]),
        (Cutter(".").method, {}, [TEXT.upper()]),
        (Cutter, {"mark": ". "}, ["Tea is hot", "Ice is not."]),
        (SentenceSplitter, {"chunk_size": 5, "chunk_overlap": 0}, ["Tea is hot.", "Ice is not."]),
        (SentenceSplitter(5, 0), {}, ["Tea is hot.", "Ice is not."]),
        (annotated, {}, ["doc: Tea"]),
        (OnNodes(), {}, ["tea: Tea"]),
        (OnNodes, {}, ["tea: Tea"]),
        (lambda node: node.id, {"trans_node": True}, ["doc"]),
        (OnNodes.__call__.__get__(OnNodes()), {"trans_node": True}, ["tea: Tea"]),
        (SentenceSplitter(5, 0), {"num_workers": 4}, ["Tea is hot.", "Ice is not."]),
        (Halves(), {}, ["Tea is hot", "Ice is not."]),
        (Halves, {}, ["Tea is hot", "Ice is not."]),
    ],
)
def test_supported_transform_forms(
    transform: object, settings: dict[str, Any], expected: list[str]
) -> None:
    assert texts(transform, **settings) == expected


def test_trans_node_argument_has_priority() -> None:
    assert texts(lambda node: type(node).__name__, trans_node=True) == ["Node"]
    assert texts(lambda text: type(text).__name__, trans_node=False) == ["str"]
    with pytest.raises(TransformError, match="'str' object has no attribute"):
        made(OnNodes(), trans_node=False)


RETURNED: list[tuple[str, Callable[[str], Any], list[str]]] = [
    ("text", lambda text: "new", ["new"]),
    ("list", lambda text: ["Tea", "new"], ["Tea", "new"]),
    ("generator", lambda text: (word for word in text.split()), TEXT.split()),
    ("nothing", lambda text: [], []),
    ("blank pieces", lambda text: ["", " \n", "Tea"], ["Tea"]),
    ("number", lambda text: 2.5, ["2.5"]),
    ("mapping", lambda text: {"a": 1}, ["{'a': 1}"]),
    ("nested", lambda text: [("a", 1), ["b"]], ["('a', 1)", "['b']"]),
    ("node", lambda text: Node("Tea"), ["Tea"]),
    ("mixed", lambda text: [Node("Tea"), "Ice", 3], ["Tea", "Ice", "3"]),
    ("LangChain-like", lambda text: SimpleNamespace(page_content="Tea", metadata={}), ["Tea"]),
    ("LlamaIndex-like", lambda text: [SimpleNamespace(get_content=lambda: "Ice")], ["Ice"]),
]


@pytest.mark.parametrize(
    ("returned", "expected"), [case[1:] for case in RETURNED], ids=[case[0] for case in RETURNED]
)
def test_supported_return_values(returned: Callable[[str], Any], expected: list[str]) -> None:
    assert texts(returned) == expected


def test_framework_nodes_are_placed_in_the_text() -> None:
    langchain = pytest.importorskip("langchain_core.documents")
    llama_index = pytest.importorskip("llama_index.core.schema")
    for one in (
        langchain.Document("Ice", metadata={"page": 2}),
        llama_index.TextNode(text="Ice", metadata={"page": 2}),
    ):
        for returned in (one, [one]):
            (node,) = made(lambda text, returned=returned: returned)
            assert (node.text, node.metadata) == ("Ice", {"topic": "tea", "page": 2})
            assert (node.start, node.end) == (12, 15)


def test_returned_content_is_kept() -> None:
    assert [n.content for n in made(len)] == [23]
    node = Node("Hot?", {"kind": "question"}, "Hot? Yes.")
    (node,) = made(lambda text: node)
    assert (node.text, node.content) == ("Hot?", "Hot? Yes.")
    assert node.own_metadata == {"kind": "question"}
    assert node.metadata == {"topic": "tea", "kind": "question"}
    assert (node.group, node.document_id, node.start) == ("made", "doc", None)


def test_pieces_are_found_in_order() -> None:
    def transform(text: str) -> list[Any]:
        return ["is", "is", Node("is", start=4, end=6), Node("Ice", start=12), "new"]

    spans = [(node.start, node.end) for node in made(transform)]
    assert spans == [(4, 6), (16, 18), (4, 6), (12, 15), (None, None)]


@pytest.mark.parametrize(
    ("transform", "cause", "message"),
    [
        (lambda text: None, TypeError, "got None; return [] to create no nodes"),
        (lambda text: ["a", None], TypeError, "got a list with None"),
        (str.encode, TypeError, "got bytes; decode them"),
        (lambda text: LinkedText("x", ["id"]), TypeError, "requires nodes of the graph, got 'id'"),
        (lambda text: (1 / 0 for _ in text), ZeroDivisionError, "ZeroDivisionError"),
        (lambda text: Node("Ice", start=0, end=3), ValueError, "which is 'Tea', got 'Ice'"),
        (lambda text: Node("Ice", start=12, end=14), ValueError, "parent's text at 12:14"),
        (lambda text: Node("not", start=-4, end=-1), ValueError, "parent's text at -4:-1"),
    ],
)
def test_invalid_output_raises_transform_error(
    transform: object, cause: type[Exception], message: str
) -> None:
    with pytest.raises(TransformError) as error:
        made(transform)
    assert message in str(error.value)
    assert "group 'made' failed on document 'doc'" in str(error.value)
    assert isinstance(error.value.__cause__, cause)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (3, "transform must be a callable, .* got 3"),
        (None, "got None"),
        ("split", "got 'split'"),
        ({"f": SentenceSplitter, "kwargs": {}}, r"create_node_group\(name, transform, \*\*sett"),
        ([str.split], "transform must be a callable"),
        (SimpleNamespace(get_nodes_from_documents=list), r"llama_index\.as_transform\(parser\)"),
    ],
)
def test_unsupported_transform_raises(transform: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        made(transform)


def test_langchain_splitter_is_a_transform() -> None:
    splitters = pytest.importorskip("langchain_text_splitters")
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=12, chunk_overlap=0)
    nodes = made(splitter)
    assert [node.text for node in nodes] == splitter.split_text(TEXT)
    assert [TEXT[node.start : node.end] for node in nodes] == [node.text for node in nodes]
    by_heading = splitters.MarkdownHeaderTextSplitter([("#", "title")])
    (node,) = made(by_heading, "# Tea\nHot.")
    assert (node.text, node.metadata) == ("Hot.", {"topic": "tea", "title": "Tea"})


def test_llama_index_splitter_is_a_transform() -> None:
    parsers = pytest.importorskip("llama_index.core.node_parser")
    splitter = parsers.TokenTextSplitter(
        chunk_size=4, chunk_overlap=0, tokenizer=str.split, include_metadata=False
    )
    nodes = made(splitter)
    assert len(nodes) == 2
    assert [node.text for node in nodes] == splitter.split_text(TEXT)
    assert [TEXT[node.start : node.end] for node in nodes] == [node.text for node in nodes]
    with pytest.raises(TypeError, match="as_transform"):
        made(parsers.MarkdownNodeParser())


def test_pydantic_model_is_one_piece() -> None:
    pydantic = pytest.importorskip("pydantic")
    pair = pydantic.create_model("Pair", question=str, answer=str)
    assert texts(lambda text: pair(question="Hot?", answer="Yes")) == [
        "question='Hot?' answer='Yes'"
    ]
