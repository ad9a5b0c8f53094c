"""Search texts: the metadata to search with a text."""

from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph, SearchText
from nodekin.nodegraph.search_text import as_search_text
from nodekin.retrievers import Retriever


class Embeds:
    """A model that records the texts that it embeds."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [[text.lower().count(letter) + 0.1 for letter in "aeiou"] for text in texts]

    @property
    def new(self) -> list[str]:
        texts, self.texts = sorted(self.texts), []
        return texts


LYFT = Document("It grew by 57%.", {"title": "Lyft", "year": 2021, "tags": ["ride", "us"]}, id="l")
UBER = Document("It grew by 57%.", {"title": "Uber", "year": 2021}, id="u")


@pytest.mark.parametrize(
    ("search_text", "expected"),
    [
        (None, "Lyft\nIt grew by 57%."),
        (False, "It grew by 57%."),
        ((), "It grew by 57%."),
        ("year", "2021\nIt grew by 57%."),
        (["year", "missing", "title"], "2021\nLyft\nIt grew by 57%."),
        (SearchText("tags"), "ride > us\nIt grew by 57%."),
        (SearchText(None, excluded="title", separator=", "), "2021, ride > us\nIt grew by 57%."),
        (
            SearchText("tags", list_separator=None, template="{text} ({metadata})"),
            "It grew by 57%. (['ride', 'us'])",
        ),
        (
            SearchText(["title"], field_template="{key}={value}", template="{text}{metadata}"),
            "It grew by 57%.title=Lyft",
        ),
        (lambda node: node.text.upper(), "IT GREW BY 57%."),
    ],
)
def test_search_text_forms(search_text: Any, expected: str) -> None:
    graph = NodeGraph(search_text=search_text)
    graph.add(LYFT)
    assert graph.node("l").searched_text == expected
    graph = NodeGraph()
    graph.add(LYFT)
    graph.create_node_group("all", lambda text: [text], search_text=search_text)
    (node,) = graph.nodes("all")
    assert node.searched_text == expected
    assert (node.text, node.content, node.start, node.end) == ("It grew by 57%.",) * 2 + (0, 15)


def test_document_search_text_applies_to_descendants() -> None:
    graph = NodeGraph()
    graph.add(Document("One. Two.", {"a": 1, "title": "T"}, id="d", search_text="a"))
    graph.create_node_group("sentence", lambda text: text.split(" "))
    graph.create_node_group("word", lambda text: [text], parent="sentence")
    for group in ("ROOT", "sentence", "word"):
        assert {node.searched_text for node in graph.nodes(group)} <= {
            "1\nOne. Two.",
            "1\nOne.",
            "1\nTwo.",
        }


def test_node_search_text_applies_to_descendants(tmp_path: Path) -> None:
    def lines(text: str) -> list[Node]:
        return [Node(line, {"at": at}, search_text="at") for at, line in enumerate(text.split())]

    for _ in range(2):  # the second time from the file
        with NodeGraph(store=tmp_path / "graph") as graph:
            graph.add(Document("one two", {"title": "T"}, id="d"))
            graph.create_node_group("line", lines, version="1")
            graph.create_node_group("word", lambda text: [text], parent="line", version="1")
            for group in ("line", "word"):
                texts = [node.searched_text for node in graph.nodes(group)]
                assert texts == ["0\none", "1\ntwo"]


def test_replaced_group_search_text_embeds_changed_texts() -> None:
    embeds, calls = Embeds(), []

    def copy(text: str) -> list[str]:
        calls.append(text)
        return [text]

    graph = NodeGraph(embed=embeds)
    graph.add([LYFT, UBER, Document("Tea.", id="t")])
    graph.create_node_group("copy", copy, version="1")
    retrievers = [Retriever(graph, "copy", name, top_k=1) for name in ("bm25", "cosine")]
    assert [r("Uber Uber")[0].node.document_id for r in retrievers] == ["u", "u"]
    assert embeds.new == ["Lyft\nIt grew by 57%.", "Tea.", "Uber\nIt grew by 57%.", "Uber Uber"]
    with pytest.raises(
        ValueError, match="another search_text; pass an equal search_text, or replace=True"
    ):
        graph.create_node_group("copy", copy, version="1", search_text="tags")
    graph.create_node_group("copy", copy, version="1", search_text="tags", replace=True)
    assert retrievers[0]("Uber") == []
    retrievers[1]("Uber Uber")
    assert embeds.new == ["It grew by 57%.", "ride > us\nIt grew by 57%."]
    graph.create_node_group("copy", copy, version="1", replace=True)
    assert retrievers[0]("Uber")[0].node.document_id == "u"
    retrievers[1]("Uber Uber")
    assert embeds.new == []
    assert len(calls) == 3


def test_index_of_another_search_text_is_rebuilt(tmp_path: Path) -> None:
    embeds = Embeds()
    model = Embedder(embeds, name="vowels")
    documents = [
        Document(f"It is {at}.", {"title": f"t{at}", "name": f"n{at}"}, id=str(at))
        for at in range(300)  # enough for an index to be stored
    ]

    def found(search_text: Any, query: str) -> list[list[str]]:
        with NodeGraph(store=tmp_path / "g", embed=model, search_text=search_text) as graph:
            graph.add(documents)
            both = [Retriever(graph, "ROOT", name, top_k=1) for name in ("bm25", "cosine")]
            return [[r.node.id for r in retriever(query)] for retriever in both]

    found(None, "t7")
    assert list((tmp_path / "g-indexes").iterdir())
    assert len(embeds.new) == 301
    assert found(None, "t7")[0] == ["7"]
    assert embeds.new == ["t7"]
    assert found("name", "t7")[0] == []
    assert len(embeds.new) == 301
    assert found("name", "n7")[0] == ["7"]
    assert found(None, "t7")[0] == ["7"]
    assert embeds.new == ["n7", "t7"]


def test_compact_deletes_vectors_of_unsearched_texts(tmp_path: Path) -> None:
    embeds = Embeds()
    with NodeGraph(store=tmp_path / "g", embed=embeds) as graph:
        graph.add([LYFT, UBER])
        Retriever(graph, "ROOT", "cosine")("q")
        graph.add(Document(UBER.text, {"title": "Bolt"}, id="u"))
        graph.compact()
        assert embeds.new
        graph.node("l").embedding()
        assert embeds.new == []
        graph.node("u").embedding()
        assert embeds.new == ["Bolt\nIt grew by 57%."]


def test_texts_of_another_group_are_searched() -> None:
    """A summary is derived once per document and searched with each sentence."""
    embeds, written = Embeds(), []

    def summary(text: str) -> str:
        written.append(text)
        return f"About {text.split()[0]}"

    graph = NodeGraph(embed=embeds)
    graph.create_node_group("summary", summary, version="1")
    search_text = SearchText((), groups="summary")
    graph.create_node_group(
        "sentence", lambda text: text.split(". "), version="1", search_text=search_text
    )
    graph.add(
        [Document("Tea grows. It is green", id="t"), Document("Rum burns. It is dark", id="r")]
    )
    assert [node.text for node in graph.nodes("sentence")][1] == "It is green"
    assert written == []  # the first search builds the group
    for name in ("bm25", "cosine"):
        results = Retriever(graph, "sentence", name, top_k=2)("tea about")
        assert [r.node.text for r in results][:2] == ["Tea grows", "It is green"]
        assert results[0].evidence[0].searched_with == ("summary",)
    assert len(written) == 2
    assert sorted(set(embeds.new)) == [
        "About Rum\nIt is dark",
        "About Rum\nRum burns",
        "About Tea\nIt is green",
        "About Tea\nTea grows",
        "tea about",
    ]
    graph.create_node_group("summary", lambda text: f"Of {text[:3]}", version="2", replace=True)
    assert Retriever(graph, "sentence", "bm25")("about") == []
    assert len(Retriever(graph, "sentence", "bm25")("rum")) == 2
    graph.add(Document("Gin burns. It is dark", id="r"))
    assert [r.node.text for r in Retriever(graph, "sentence", "bm25")("gin")] == [
        "Gin burns",
        "It is dark",
    ]
    graph.compact()


def test_evidence_names_the_searched_fields() -> None:
    graph = NodeGraph(embed=Embeds())
    graph.add([LYFT, Document("Tea.", id="t")])
    (lyft,) = Retriever(graph, "ROOT", "bm25")("lyft")
    assert lyft.evidence[0].searched_with == ("title",)
    assert "searched with title" in lyft.explain()
    (tea,) = Retriever(graph, "ROOT", "bm25")("tea")
    assert tea.evidence[0].searched_with == ()
    assert "searched" not in tea.explain()
    (exact,) = Retriever(graph, "ROOT", "exact")("tea")  # compares texts without metadata
    assert exact.evidence[0].searched_with == ()
    assert Retriever(graph, "ROOT", "exact")("lyft tea") == []


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: SearchText("a", template="{txt}"), ValueError, "template '{txt}' is invalid"),
        (lambda: SearchText("a", field_template="{}"), ValueError, "{key} and {value}"),
        (lambda: SearchText([1]), TypeError, "fields of a SearchText must be names, got 1"),  # type: ignore[list-item]
        (lambda: as_search_text(3), TypeError, "or False for the text alone, got 3"),
        (lambda: as_search_text(True), TypeError, "got True"),
        (
            lambda: Document("a", search_text=str),  # type: ignore[arg-type]
            TypeError,
            "pass a function to the graph or the group",
        ),
        (lambda: SearchText((), groups="g")(Node("a")), ValueError, "requires a graph"),
    ],
)
def test_invalid_search_text_raises_with_remedy(
    make: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make()


def test_failing_search_text_function_names_the_node() -> None:
    graph = NodeGraph(search_text=lambda node: node.metadata["name"])
    graph.add("text")
    with pytest.raises(ValueError, match=r"search_text of group 'ROOT' failed on Node.*KeyError"):
        Retriever(graph, "ROOT")("text")
    graph = NodeGraph(search_text=lambda node: None)
    graph.add("text")
    with pytest.raises(TypeError, match="returned None"):
        Retriever(graph, "ROOT")("text")


def test_group_search_text_has_priority() -> None:
    for of_graph, of_group, expected in [
        ("title", "page", "1\nt"),
        ("title", None, "T\nt"),
        (None, None, "N\nt"),
    ]:
        graph = NodeGraph(search_text=of_graph)
        metadata = {"title": "T", "page": 1, "name": "N"}
        graph.add(Document("t", metadata, search_text="name"))
        graph.create_node_group("a", lambda text: [text], search_text=of_group)
        assert graph.nodes("a")[0].searched_text == expected
