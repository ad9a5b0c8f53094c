"""Groups are built when they are needed, once, and only what is missing."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from node_texts import texts

from nodekin.nodegraph import Document, Node, NodeGraph, StoreError, TransformError

pytestmark = pytest.mark.usefixtures("every_store")

PATIENCE = 300.0
"""Seconds after which something that should happen is taken to hang."""


class Counted:
    """Split, and count the texts that came."""

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
        """Return the counts since the last time."""
        calls, self.calls = dict(self.calls), Counter()
        return calls


def run_all(works: list[Callable[[], Any]]) -> list[Any]:
    """Run in as many threads; return what each gave or raised, in order."""
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


def test_declaring_and_looking_builds_nothing(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    summary = graph.groups["word"]
    assert (summary.size, summary.built, summary.parent) == (0, False, "line")
    graph.find("word")
    assert graph.node("1").children == {}
    assert (lines.take(), words.take()) == ({}, {})


def test_a_group_is_built_once_its_ancestors_first(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    assert texts(graph.nodes("word")) == list("abcdefgh")
    assert lines.take() == {"a b\nc": 1, "d e\nf g": 1, "h": 1}
    assert words.take() == {"a b": 1, "c": 1, "d e": 1, "f g": 1, "h": 1}
    assert graph.groups["line"].built
    assert texts(graph.nodes("line")) == ["a b", "c", "d e", "f g", "h"]
    assert texts(graph.nodes("word")) == list("abcdefgh")
    assert (lines.take(), words.take()) == ({}, {})


def test_once_under_sixteen_threads(graph: NodeGraph, lines: Counted, words: Counted) -> None:
    results = run_all([lambda: texts(graph.nodes("word")), lambda: texts(graph.nodes("line"))] * 8)
    assert results == [list("abcdefgh"), ["a b", "c", "d e", "f g", "h"]] * 8
    assert set(lines.take().values()) == {1}
    assert set(words.take().values()) == {1}


def test_a_group_may_be_declared_after_the_first_use(graph: NodeGraph, lines: Counted) -> None:
    graph.nodes("line")
    graph.create_node_group("letter", str.split, parent="line")
    assert texts(graph.nodes("letter")) == list("abcdefgh")
    assert set(lines.take().values()) == {1}


def test_an_added_document_alone_is_derived(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    graph.nodes("word")
    lines.take(), words.take()
    graph.add(Document("i j", id="4"))
    assert texts(graph.nodes("word")) == list("abcdefghij")
    assert (lines.take(), words.take()) == ({"i j": 1}, {"i j": 1})


def test_a_changed_document_alone_is_derived_and_of_it_only_the_changed_lines(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    graph.nodes("word")
    lines.take(), words.take()
    graph.add(Document("new\nd e\nf g", id="2"))
    assert texts(graph.nodes("word")) == ["a", "b", "c", "new", *"defgh"]
    assert (lines.take(), words.take()) == ({"new\nd e\nf g": 1}, {"new": 1})


def test_a_removed_document_leaves_and_nothing_is_derived(
    graph: NodeGraph, lines: Counted, words: Counted
) -> None:
    graph.nodes("word")
    lines.take(), words.take()
    graph.remove("2")
    assert texts(graph.nodes("word")) == list("abch")
    assert texts(graph.nodes("line")) == ["a b", "c", "h"]
    assert (lines.take(), words.take()) == ({}, {})


def test_a_rule_that_sees_nodes_runs_again_where_its_document_changed(graph: NodeGraph) -> None:
    seen: Counter[str] = Counter()

    def mark(node: Node) -> str:
        seen[node.text] += 1
        return f"{node.text} of {len(node.root.text)}"

    graph.create_node_group("mark", mark, parent="line", trans_node=True, version="1")
    graph.nodes("mark")
    seen.clear()
    graph.add(Document("d e\nf", id="2"))
    assert texts(graph.nodes("mark")) == [
        *("a b of 5", "c of 5"),
        *("d e of 5", "f of 5", "h of 1"),
    ]
    assert seen == {"d e": 1, "f": 1}


def test_a_parent_that_makes_nothing_is_not_asked_again_for_new_metadata() -> None:
    graph = NodeGraph(progress=False)
    asked: Counter[str] = Counter()

    def questions(text: str) -> list[str]:
        asked[text] += 1
        return ["why?"] if "why" in text else []

    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("question", questions, parent="line", version="1")
    graph.add(Document("why\nnot", id="1"))
    assert texts(graph.nodes("question")) == ["why?"]
    graph.add(Document("why\nnot", {"new": True}, id="1"))
    assert [node.metadata for node in graph.nodes("question")] == [{"new": True}]
    assert asked == {"why": 1, "not": 1}


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_threads_make_the_same_nodes(workers: int) -> None:
    def build(num_workers: int) -> list[tuple[object, ...]]:
        graph = NodeGraph(progress=False)
        graph.add([Document(f"x{i} y{i}\nz{i} y{i}", id=str(i)) for i in range(40)])
        graph.create_node_group("line", str.splitlines, num_workers=num_workers)
        graph.create_node_group("word", str.split, parent="line", num_workers=num_workers)
        return [(n.id, n.text, n.start, n.end, n.order, n.parent_id) for n in graph.nodes("word")]

    assert build(workers) == build(0)


def test_threads_work_at_the_same_time() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["a", "b", "c"])
    together = threading.Barrier(3)

    def wait(text: str) -> str:
        together.wait(PATIENCE)
        return text

    graph.create_node_group("slow", wait, num_workers=3)
    assert texts(graph.nodes("slow")) == ["a", "b", "c"]


def test_a_slow_build_holds_up_neither_other_groups_nor_changes(graph: NodeGraph) -> None:
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
    assert results == [["a b\nc", "d e\nf g", "late"]]  # as the documents are in the end


def test_a_document_added_between_parent_and_child_is_not_lost(graph: NodeGraph) -> None:
    """It comes when the lines are built and the words are not yet begun."""

    def split(text: str) -> list[str]:
        if text == "h":  # the last document of the parent group
            changer = threading.Thread(target=change)
            changer.start()
            changer.join(PATIENCE)
        return text.split("\n")

    def change() -> None:
        if "late" not in {n.id for n in graph.nodes("ROOT")}:
            graph.add([Document("x y", id="late"), Document("z", id="1")])

    graph.create_node_group("line", split, replace=True)
    assert texts(graph.nodes("word")) == ["z", *"defgh", "x", "y"]


def test_a_rule_replaced_while_it_runs_does_not_count(graph: NodeGraph) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def old(text: str) -> str:
        begun.set()
        assert go_on.wait(PATIENCE)
        return "old"

    graph.create_node_group("line", old, replace=True, version="old")
    results: list[list[str]] = []
    thread = threading.Thread(target=lambda: results.append(texts(graph.nodes("word"))))
    thread.start()
    assert begun.wait(PATIENCE)
    graph.create_node_group("line", lambda text: "new", replace=True, version="new")
    go_on.set()
    thread.join(PATIENCE)
    assert results == [["new"] * 3]
    assert texts(graph.nodes("line")) == ["new"] * 3


@pytest.mark.parametrize("workers", [0, 4])
def test_transforms_may_look_around(graph: NodeGraph, workers: int) -> None:
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
    # The second time the group being built is there, half of it out of date: it is not shown.
    graph.add(Document("i", id="4"))
    assert run_all([build, build])[0][-1] == "i|4|4|1|0"


def test_a_failure_names_document_group_and_cause_and_harms_no_other(graph: NodeGraph) -> None:
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


def test_skipping_leaves_the_document_out_until_it_is_tried_again(graph: NodeGraph) -> None:
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
    assert texts(graph.nodes("below")) == list("abch")  # not tried by itself
    picky.take()
    assert graph.build("picky") == []
    assert picky.take() == {"d e\nf g": 1}
    assert texts(graph.nodes("below")) == list("abcdefgh")
    assert graph.failures == []


def test_a_graph_that_skips_needs_no_asking(words: Counted) -> None:
    graph = NodeGraph(on_error="skip", progress=False)
    words.bad = "x"
    graph.create_node_group("word", words)
    graph.add([Document("a b", id="1"), Document("x", id="2")])
    assert texts(graph.nodes("word")) == ["a", "b"]
    assert [f.document for f in graph.failures] == ["2"]
    graph.nodes("word")
    graph.add(Document("x", id="2"))
    graph.nodes("word")
    assert words.take() == {"a b": 1, "x": 1}  # a failure is not tried at every use
    with pytest.raises(TransformError):
        graph.build("word", on_error="raise")


def test_a_failed_document_that_changes_or_goes_is_no_failure_any_more(words: Counted) -> None:
    graph = NodeGraph(on_error="skip", progress=False)
    words.bad = "x"
    graph.create_node_group("word", words, version="1")
    graph.add([Document("x", id="1"), Document("x y", id="2"), Document("c", id="3")])
    graph.nodes("word")
    assert [f.document for f in graph.failures] == ["1", "2"]
    graph.add(Document("a", id="1"))
    graph.remove("2")
    assert texts(graph.nodes("word")) == ["a", "c"]
    assert graph.failures == []
    words.bad = ""
    graph.add(Document("x y", id="2"))
    assert texts(graph.nodes("word")) == ["a", "c", "x", "y"]


def test_a_document_that_fails_after_a_change_shows_nothing_old(words: Counted) -> None:
    graph = NodeGraph(on_error="skip", progress=False)
    words.bad = "x"
    graph.create_node_group("word", words)
    graph.add([Document("a b", id="1"), Document("c", id="2")])
    assert texts(graph.nodes("word")) == ["a", "b", "c"]
    graph.add(Document("a b x", id="1"))
    assert texts(graph.nodes("word")) == ["c"]


def test_nothing_half_built_is_seen(graph: NodeGraph) -> None:
    at_last, go_on = threading.Event(), threading.Event()

    def slow(text: str) -> list[str]:
        if text == "h":
            at_last.set()
            assert go_on.wait(PATIENCE)
        return text.split()

    graph.create_node_group("slow", slow)
    thread = threading.Thread(target=lambda: graph.build("slow"))
    thread.start()
    assert at_last.wait(PATIENCE)
    assert (graph.groups["slow"].size, graph.groups["slow"].built) == (0, False)
    assert "slow" not in graph.node("1").children
    go_on.set()
    thread.join(PATIENCE)
    assert (graph.groups["slow"].size, graph.groups["slow"].built) == (8, True)


def test_a_document_whose_pieces_partly_fail_gives_none(graph: NodeGraph) -> None:
    graph.create_node_group("picky", Counted(bad="f"), parent="line")
    graph.build("picky", on_error="skip")
    assert texts(graph.nodes("picky")) == list("abch")


@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupt_keeps_what_was_finished(graph: NodeGraph, workers: int) -> None:
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


def test_a_transform_that_returns_a_broken_generator_fails_like_any(graph: NodeGraph) -> None:
    def broken(text: str) -> Iterator[str]:
        yield text
        raise OSError("disk")

    graph.create_node_group("broken", broken)
    with pytest.raises(TransformError, match="OSError: disk"):
        graph.nodes("broken")
    assert graph.groups["broken"].size == 0


def test_a_document_that_goes_while_it_is_worked_on_fails_nothing(graph: NodeGraph) -> None:
    def slow(node: Node) -> str:
        if node.id == "2":
            run_all([lambda: graph.remove("2")])
        return node.root.text[:1]

    graph.create_node_group("first", slow, trans_node=True)
    assert texts(graph.nodes("first")) == ["a", "h"]
    assert graph.build("first", on_error="skip") == []


def test_a_document_that_changes_while_it_is_worked_on_is_tried_as_it_is_then(
    graph: NodeGraph,
) -> None:
    def slow(text: str) -> str:
        if text == "h":
            run_all([lambda: graph.update(Document("new", id="3"))])
            raise ValueError("this text is of yesterday")
        return text[:1]

    graph.create_node_group("first", slow)
    assert texts(graph.nodes("first")) == ["a", "d", "n"]


def test_after_a_failure_what_waits_for_a_thread_is_not_begun() -> None:
    graph = NodeGraph(progress=False)
    graph.add("\n".join(map(str, range(1_000))))
    graph.create_node_group("line", str.splitlines)
    begun: list[str] = []
    pause = threading.Event()

    def fail(line: str) -> str:
        begun.append(line)
        if line == "0":
            raise ValueError(line)
        pause.wait(0.1)
        return line

    graph.create_node_group("fail", fail, parent="line", num_workers=2, version="1")
    with pytest.raises(TransformError):
        graph.nodes("fail")
    assert len(begun) < 100


def test_a_document_that_goes_and_comes_back_meanwhile_is_where_it_came_back(
    graph: NodeGraph,
) -> None:
    once = iter([lambda: graph.remove("2"), lambda: graph.add(Document("d e\nf g", id="2"))])

    def slow(text: str) -> str:
        if text.startswith("d"):
            for change in once:
                run_all([change])
        return text[:1]

    graph.create_node_group("first", slow)
    assert texts(graph.nodes("first")) == ["a", "h", "d"]
    assert graph.find("first")(graph.nodes("ROOT")) == graph.nodes("first")


def test_a_reader_does_not_wait_for_who_builds_and_waits_for_it(graph: NodeGraph) -> None:
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


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def test_a_build_by_another_rule_that_breaks_off_leaves_nothing_behind() -> None:
    calls: list[str] = []

    def words(text: str) -> list[str]:
        if "bad" in text or text == "b":
            raise ValueError("no words")
        calls.append(text)
        if text == "gr":  # the work on the second document, by the other rule

            def change_back() -> None:
                graph.create_node_group("line", str.splitlines, replace=True)
                graph.build("line")

            thread = threading.Thread(target=change_back)
            thread.start()
            thread.join()
        return text.split()

    graph = NodeGraph(on_error="skip")
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", words, parent="line")
    graph.add([Document("tea cup", id="a"), Document("gree", id="b"), Document("bad", id="c")])
    graph.nodes("word")
    graph.create_node_group("line", halves, replace=True)
    graph.nodes("word")
    assert "gr" in calls
    assert [node.text for node in graph.nodes("word")] == ["tea", "cup", "gree"]
    assert [node.parent.text for node in graph.nodes("word")] == ["tea cup", "tea cup", "gree"]


def test_a_store_that_keeps_no_build_is_an_error_and_no_endless_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add("one\ntwo")
    monkeypatch.setattr(type(graph._store), "mark_built", lambda *arguments: None)
    with pytest.raises(StoreError, match="line was built 20 times and is still outdated"):
        graph.nodes("line")
