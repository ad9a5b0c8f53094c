"""Links between nodes, and transforms of whole groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.entity_links import WITH_ANNA, WITHOUT, changed_in_turns
from support.node_texts import texts

from nodekin.nodegraph import Document, Link, Node, NodeGraph, TransformError
from nodekin.nodegraph.node import LinkedText


@pytest.fixture(params=["memory", "file"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeGraph]:
    store = None if request.param == "memory" else tmp_path / "graph"
    with NodeGraph(store=store, progress=False) as graph:
        graph.add(
            [
                Document("Tea is green.\nTea is black.", id="tea"),
                Document("Rivers run.\nTea rivers.", id="river"),
            ]
        )
        graph.create_node_group("line", str.splitlines)
        yield graph


def by_first_word(lines: list[Node]) -> list[LinkedText]:
    """Return a node for each first word, linked to the lines that begin with it."""
    words: dict[str, list[Node]] = {}
    for line in lines:
        words.setdefault(line.text.split()[0], []).append(line)
    return [LinkedText(Node(word, {"lines": len(found)}), found) for word, found in words.items()]


def test_link_connects_two_nodes(graph: NodeGraph) -> None:
    green, black, run, _ = graph.nodes("line")
    graph.link(green, [black, run.id], "cites", weight=0.5, metadata={"page": 3})
    graph.link(green, "tea")
    assert green.links == [
        Link(green.id, black.id, "cites", 0.5),
        Link(green.id, run.id, "cites", 0.5),
        Link(green.id, "tea"),
    ]
    assert green.links[0].metadata == {"page": 3}
    assert texts(graph.linked(green, "cites")) == ["Tea is black.", "Rivers run."]
    assert graph.linked(green)[0].id == "tea"
    assert texts(graph.linked(run, incoming=True)) == ["Tea is green."]
    assert graph.reader.links_of([run.id], incoming=True)[0] == [
        Link(green.id, run.id, "cites", 0.5)
    ]
    assert green.parent is not None
    assert green.parent.links == []


def test_repeated_link_is_replaced_and_removed(graph: NodeGraph) -> None:
    green, black, *_ = graph.nodes("line")
    graph.link(green, black, weight=2)
    graph.link(green, black, weight=3)
    graph.link(green, black, "cites")
    assert [(link.type, link.weight) for link in green.links] == [("related", 3.0), ("cites", 1.0)]
    graph.unlink(green, [black, "tea"])
    assert [link.type for link in green.links] == ["cites"]


def test_link_to_unknown_node_raises(graph: NodeGraph) -> None:
    green, black, *_ = graph.nodes("line")
    with pytest.raises(LookupError, match="no node 'nowhere' to link"):
        graph.link(green, [black, "nowhere"])
    assert green.links == []


def test_links_are_deleted_with_their_nodes(graph: NodeGraph) -> None:
    green, black, run, tea = graph.nodes("line")
    graph.link(green, [run, tea, black])
    graph.add(Document("Tea rivers.\nA new line.", id="river"))  # one unchanged line
    assert texts(graph.nodes("line"))[2:] == ["Tea rivers.", "A new line."]
    assert [link.target for link in green.links] == [tea.id, black.id]
    graph.remove("river")
    assert [link.target for link in green.links] == [black.id]
    graph.remove("tea")
    with pytest.raises(LookupError):
        graph.node(green.id)


def test_group_transform_links_to_members(graph: NodeGraph) -> None:
    graph.create_node_group("word", by_first_word, "line", scope="group")
    tea, rivers = graph.nodes("word")
    assert (tea.text, tea.metadata, tea.parent, tea.start) == ("Tea", {"lines": 3}, None, None)
    assert texts(graph.linked(tea)) == ["Tea is green.", "Tea is black.", "Tea rivers."]
    with pytest.raises(ValueError, match="made from several documents"):
        _ = tea.root
    assert graph.node(rivers.id) == rivers
    assert graph.groups["word"].size == 2


def test_relatives_of_a_group_node_are_its_members(graph: NodeGraph) -> None:
    graph.create_node_group("word", by_first_word, "line", scope="group")
    graph.create_node_group("letter", lambda text: list(text), "word")
    tea, rivers = graph.nodes("word")
    assert texts(graph.find("line")(tea)) == ["Tea is green.", "Tea is black.", "Tea rivers."]
    assert [node.id for node in graph.find("ROOT")(tea)] == ["tea", "river"]
    assert graph.find("word")(graph.nodes("line")[3]) == [tea]
    assert graph.find("word")(graph.node("river")) == sorted(
        [rivers, tea], key=lambda node: node.order
    )
    assert texts(graph.find("letter")(graph.nodes("line")[2])) == list("Rivers")
    letter = graph.nodes("letter")[0]
    assert letter.parent == tea
    assert texts(graph.find("line")(letter)) == texts(graph.find("line")(tea))
    assert graph.nodes("line")[0].children == {"word": [tea]}


def test_group_transform_reruns_after_each_change(graph: NodeGraph) -> None:
    calls = []

    def count(lines: list[Node]) -> str:
        calls.append(len(lines))
        return f"{len(lines)} lines"

    graph.create_node_group("count", count, "line", scope="group")
    assert texts(graph.nodes("count")) == ["4 lines"]
    graph.add(Document("Rivers run.\nTea rivers.", id="river"))  # nothing new
    assert texts(graph.nodes("count")) == ["4 lines"]
    graph.add("Another line.")
    assert texts(graph.nodes("count")) == ["5 lines"]
    graph.remove("tea")
    assert texts(graph.nodes("count")) == ["3 lines"]
    assert calls == [4, 5, 3]


def test_failed_group_transform_is_retried(graph: NodeGraph) -> None:
    good = []

    def fail(lines: list[Node]) -> list[str]:
        if not good:
            raise ValueError("not now")
        return ["made"]

    graph.create_node_group("made", fail, scope="group", version="1")
    with pytest.raises(TransformError, match="on the whole of its parent group: ValueError"):
        graph.nodes("made")
    assert [failure.document for failure in graph.build("made", on_error="skip")] == [""]
    assert graph.nodes("made") == []
    good.append(True)
    assert graph.build("made") == []
    assert texts(graph.nodes("made")) == ["made"]


def test_only_derived_links_return_with_their_targets(graph: NodeGraph) -> None:
    graph.create_node_group("word", by_first_word, "line", scope="group")
    tea, _ = graph.nodes("word")
    line = graph.nodes("line")[3]
    graph.link(tea, line, "cites")
    assert {(k.type, k.derived) for k in tea.links} == {("member", True), ("cites", False)}
    graph.add(Document("Milk.", id="river"))
    graph.build("line")
    assert len(tea.links) == 2
    assert graph.linked(line, incoming=True) == []
    graph.add(Document("Rivers run.\nTea rivers.", id="river"))
    graph.build("line")
    assert texts(graph.linked(tea)) == ["Tea is green.", "Tea is black.", "Tea rivers."]
    assert len(graph.nodes("word")[0].links) == 3
    assert [k.id for k in graph.linked(line, incoming=True)] == [tea.id]
    graph.create_node_group("word", lambda lines: "none", "line", scope="group", replace=True)
    graph.build("word")
    assert graph.linked(line, incoming=True) == []


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [(WITHOUT, WITH_ANNA, ["one", "three", "two"]), (WITH_ANNA, WITHOUT, ["one", "two"])],
)
def test_graphs_of_one_file_share_links(
    tmp_path: Path, first: str, then: str, expected: list[str]
) -> None:
    assert changed_in_turns(str(tmp_path / "graph"), first, then) == [expected] * 3


def test_link_changes_the_revision_of_its_group(graph: NodeGraph) -> None:
    graph.create_node_group("word", by_first_word, parent="line", scope="group")
    graph.build("word")
    (word, *_), (line, other, *_) = graph.nodes("word"), graph.nodes("line")

    def revisions() -> list[int]:
        return [graph.reader.revision(group) for group in ("ROOT", "line", "word")]

    before = revisions()
    graph.link(line, other)
    linked = revisions()
    graph.unlink(line, other)
    unlinked = revisions()
    graph.unlink(word, line, "member")
    assert [a == b for a, b in zip(before, linked, strict=True)] == [True, False, True]
    assert [a == b for a, b in zip(linked, unlinked, strict=True)] == [True, False, True]
    assert graph.reader.changes("line", before[1]).added == []
    assert graph.reader.changes("line", before[1]).revision == unlinked[1]
