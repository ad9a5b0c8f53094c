"""Groups are built on first use, once, and only for missing documents."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from support.function_calls import function_calls
from support.node_texts import texts

from nodekin.nodegraph import Document, Node, NodeGraph, TransformError, builder

pytestmark = pytest.mark.usefixtures("every_store")

PATIENCE = 300.0
"""Timeout of threads in seconds."""


class Counted:
    """A transform that splits texts and counts its calls."""

    def __init__(self, separator: str | None = None, bad: str = "") -> None:
        self.separator = separator
        self.bad = bad
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> list[str]:
        with self._lock:
            self.calls[text] += 1
        if self.bad and self.bad in text:
            raise ValueError(f"can't stand {self.bad!r}")
        return text.split(self.separator)

    def take(self) -> dict[str, int]:
        """Return the counts since the last call."""
        calls, self.calls = dict(self.calls), Counter()
        return calls


def run_all(works: list[Callable[[], Any]]) -> list[Any]:
    """Run functions in threads. Return their results or errors, in order."""
    results: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(at: int) -> None:
        start.wait(PATIENCE)
        try:
            results[at] = works[at]()
        except Exception as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "it hangs"
    return results


@pytest.fixture
def lines() -> Counted:
    return Counted("\n")


@pytest.fixture
def words() -> Counted:
    return Counted()


@pytest.fixture
def graph(lines: Counted, words: Counted) -> NodeGraph:
    """Three documents, their lines, and the lines' words."""
    graph = NodeGraph(progress=False)
    graph.add([Document("a b\nc", id="1"), Document("d e\nf g", id="2"), Document("h", id="3")])
    graph.create_node_group("line", lines, version="1")
    graph.create_node_group("word", words, parent="line", version="1")
    return graph


def test_group_is_built_once_after_its_ancestors(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    assert texts(graph.nodes("word")) == list("abcdefgh")
    assert lines.take() == {"a b\nc": 1, "d e\nf g": 1, "h": 1}
    assert words.take() == {"a b": 1, "c": 1, "d e": 1, "f g": 1, "h": 1}
    assert graph.groups["line"].built
    assert texts(graph.nodes("line")) == ["a b", "c", "d e", "f g", "h"]
    assert texts(graph.nodes("word")) == list("abcdefgh")
    assert (lines.take(), words.take()) == ({}, {})


def test_sixteen_threads_build_a_group_once(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    results = run_all([lambda: texts(graph.nodes("word")), lambda: texts(graph.nodes("line"))] * 8)
    assert results == [list("abcdefgh"), ["a b", "c", "d e", "f g", "h"]] * 8
    assert set(lines.take().values()) == {1}
    assert set(words.take().values()) == {1}


def test_change_derives_only_changed_lines(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    graph.nodes("word")
    lines.take(), words.take()
    graph.add(Document("new\nd e\nf g", id="2"))
    assert texts(graph.nodes("word")) == ["a", "b", "c", "new", *"defgh"]
    assert (lines.take(), words.take()) == ({"new\nd e\nf g": 1}, {"new": 1})


def test_num_workers_run_concurrently() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["a", "b", "c"])
    together = threading.Barrier(3)

    def wait(text: str) -> str:
        together.wait(PATIENCE)
        return text

    graph.create_node_group("slow", wait, num_workers=3)
    assert texts(graph.nodes("slow")) == ["a", "b", "c"]


def test_slow_build_blocks_neither_builds_nor_changes(graph: NodeGraph) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return text

    graph.create_node_group("slow", slow)
    results: list[list[str]] = []
    thread = threading.Thread(target=lambda: results.append(texts(graph.nodes("slow"))))
    thread.start()
    assert begun.wait(PATIENCE)
    assert run_all([lambda: texts(graph.nodes("word"))]) == [list("abcdefgh")]
    assert run_all([lambda: graph.add(Document("late", id="4"))]) == [["4"]]
    assert run_all([lambda: graph.remove("3")]) == [None]
    go_on.set()
    thread.join(PATIENCE)
    assert results == [["a b\nc", "d e\nf g", "late"]]


@pytest.mark.parametrize("workers", [0, 4])
def test_transform_reads_relatives_of_its_node(graph: NodeGraph, workers: int) -> None:
    def around(node: Node) -> str:
        assert node.parent is not None
        siblings = node.parent.children["line"]
        return f"{node.text}|{node.parent.id}|{node.root.id}|{len(siblings)}|{len(node.children)}"

    graph.create_node_group("around", around, "line", trans_node=True, num_workers=workers)

    def build() -> list[str]:
        return texts(graph.nodes("around"))

    assert run_all([build]) == [
        ["a b|1|1|2|0", "c|1|1|2|0", "d e|2|2|2|0", "f g|2|2|2|0", "h|3|3|1|0"]
    ]
    # In the second build, the group is stale, so it is left out of the children.
    graph.add(Document("i", id="4"))
    assert run_all([build, build])[0][-1] == "i|4|4|1|0"


@pytest.mark.parametrize("workers", [0, 2])
def test_transform_that_reads_its_own_group_raises(graph: NodeGraph, workers: int) -> None:
    def read(text: str) -> list[str]:
        return texts(graph.nodes("below"))

    graph.create_node_group("own", read, num_workers=workers)
    graph.create_node_group("below", str.split, parent="own")
    for name in ("own", "below"):
        (error,) = run_all([lambda name=name: graph.nodes(name)])
        assert isinstance(error, TransformError)
        assert "the transform of group 'own' reads group 'own', which is being built" in str(error)
    assert texts(graph.nodes("word")) == list("abcdefgh")


def test_failure_names_document_group_and_cause(graph: NodeGraph) -> None:
    picky = Counted(bad="d")
    graph.create_node_group("picky", picky, version="1")
    with pytest.raises(
        TransformError, match=r"'picky' failed on document '2'.*can't stand 'd'"
    ) as e:
        graph.nodes("picky")
    assert (e.value.document, e.value.group) == ("2", "picky")
    assert isinstance(e.value.__cause__, ValueError)
    assert not graph.groups["picky"].built
    assert graph.failures == []
    assert texts(graph.nodes("word")) == list("abcdefgh")
    picky.bad = ""
    assert texts(graph.nodes("picky")) == list("abcdefgh")
    assert picky.take() == {"a b\nc": 1, "d e\nf g": 2, "h": 1}


def test_skipped_document_is_retried_by_build(graph: NodeGraph) -> None:
    picky = Counted("\n", bad="d")
    graph.create_node_group("picky", picky, version="1")
    graph.create_node_group("below", str.split, parent="picky")
    (failure,) = graph.build("below", on_error="skip")
    assert (failure.document, failure.group) == ("2", "picky")
    assert isinstance(failure.error, TransformError)
    assert isinstance(failure.error.__cause__, ValueError)
    assert graph.failures == [failure]
    assert texts(graph.nodes("below")) == list("abch")
    assert texts(graph.nodes("picky")) == ["a b", "c", "h"]
    picky.bad = ""
    assert texts(graph.nodes("below")) == list("abch")  # no retry without build()
    picky.take()
    assert graph.build("picky") == []
    assert picky.take() == {"d e\nf g": 1}
    assert texts(graph.nodes("below")) == list("abcdefgh")
    assert graph.failures == []


@pytest.mark.parametrize("workers", [0, 2])
def test_interrupted_build_keeps_finished_documents(graph: NodeGraph, workers: int) -> None:
    seen: list[str] = []
    interrupt = True

    def split(text: str) -> list[str]:
        seen.append(text)
        if interrupt and text == "h":
            raise KeyboardInterrupt
        return text.split()

    graph.create_node_group("piece", split, num_workers=workers, version="1")
    with pytest.raises(KeyboardInterrupt):
        graph.nodes("piece")
    interrupt = False
    assert not graph.groups["piece"].built
    assert run_all([lambda: texts(graph.nodes("piece"))]) == [list("abcdefgh")]
    assert Counter(seen) == {"a b\nc": 1, "d e\nf g": 1, "h": 2}
    assert run_all([lambda: graph.add("free")])[0] == [graph.nodes("ROOT")[-1].id]


def test_derived_nodes_are_written_once_per_second(
    graph: NodeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []  # nodes that a kill during each call would leave

    def slow(text: str) -> str:
        stored.append(graph.reader.count("slow"))
        return text

    clock = SimpleNamespace(monotonic=lambda: 0.3 * len(stored))
    monkeypatch.setattr(builder, "time", clock)
    graph.add([Document(str(number)) for number in range(20)])
    graph.create_node_group("slow", slow)
    graph.build("slow")
    assert len(stored) == 23
    assert all(derived - written <= 4 for derived, written in enumerate(stored))


def test_build_inside_a_reading_raises(graph: NodeGraph) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return text

    def ask_inside() -> None:
        assert begun.wait(PATIENCE)
        try:
            with graph.reader.reading("line"):
                graph.nodes("slow")
        finally:
            go_on.set()

    graph.build("line")
    graph.create_node_group("slow", slow)
    built, error = run_all([lambda: len(graph.nodes("slow")), ask_inside])
    assert built == 3
    assert isinstance(error, RuntimeError)
    assert "build it before" in str(error)


def nested_calls(count: int) -> int:
    """Return the number of function calls that build nested groups over one word."""
    graph = NodeGraph(progress=False)
    graph.add("word")
    names = ["ROOT", *[f"group {number}" for number in range(count)]]
    for parent, name in pairwise(names):
        graph.create_node_group(name, str.split, parent, version="1")
    calls = function_calls(lambda: graph.build(*names[1:]))
    assert [node.text for node in graph.nodes(names[-1])] == ["word"]
    return calls


def test_nested_groups_take_few_calls() -> None:
    assert nested_calls(80) < 4.5 * nested_calls(40)  # each group compares its ancestors


class Listener:
    """Records the texts of the nodes that a build has written."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def nodes_written(self, nodes: Sequence[Node]) -> None:
        self.texts += texts(nodes)


def test_listener_gets_the_new_nodes_of_its_group(graph: NodeGraph) -> None:
    listener, other = Listener(), Listener()
    graph.reader.add_listener("line", listener)
    graph.reader.add_listener("word", other)
    graph.build("line")
    assert listener.texts == ["a b", "c", "d e", "f g", "h"]
    assert other.texts == []
    graph.add([Document("d e\nnew", id="2"), Document("last", id="4")])
    graph.build("word")
    assert listener.texts[5:] == ["d e", "new", "last"]
    listener.texts.clear()
    del other
    graph.add(Document("after", id="5"))
    graph.build("word")
    assert listener.texts == ["after"]
    assert texts(graph.nodes("word"))[-1] == "after"
