"""Work that was interrupted, or done in another process, is gone on with, never done again."""

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from nodekin.nodegraph import (
    Document,
    Embedder,
    EmbeddingError,
    MemoryStore,
    Node,
    NodeGraph,
    TransformError,
    build_writer,
)


class Model:
    """Answer with the text in capitals, and count what it was asked; break at one of the calls."""

    def __init__(self, breaks_at: int | None = None, error: type[BaseException] = OSError) -> None:
        self.asked: Counter[str] = Counter()
        self._breaks_at = breaks_at
        self._error = error
        self._lock = threading.Lock()

    def __call__(self, text: str) -> str:
        with self._lock:
            if sum(self.asked.values()) == self._breaks_at:
                raise self._error("the line is dead")
            self.asked[text] += 1
        return text.upper()


def opened(path: Path, model: Callable[..., Any], **settings: Any) -> NodeGraph:
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("summary", model, parent="line", version="1", **settings)
    return graph


def texts(graph: NodeGraph, group: str) -> list[str]:
    return [node.text for node in graph.nodes(group)]


MANY = {
    "a long document": [Document("\n".join(f"n{i}" for i in range(1000)), id="long")],
    "many documents": [Document(f"n{i}", id=str(i)) for i in range(1000)],
}


@pytest.mark.slow
@pytest.mark.parametrize("documents", MANY.values(), ids=MANY.keys())
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("num_workers", [0, 4])
def test_a_build_that_broke_off_at_900_of_1000_makes_the_last_100(
    tmp_path: Path, documents: list[Document], error: type[BaseException], num_workers: int
) -> None:
    broken, mended = Model(900, error), Model()
    graph = opened(tmp_path / "graph", broken, num_workers=num_workers)
    graph.add(documents)
    with pytest.raises(TransformError if error is OSError else error):
        graph.nodes("summary")
    graph.close()
    assert sum(broken.asked.values()) >= 900

    with opened(tmp_path / "graph", mended, num_workers=num_workers) as graph:
        assert texts(graph, "summary") == [f"N{i}" for i in range(1000)]
    assert broken.asked + mended.asked == Counter([f"n{i}" for i in range(1000)])


def test_what_fails_again_costs_only_itself(tmp_path: Path) -> None:
    asked: list[str] = []

    def picky(text: str) -> str:
        asked.append(text)
        if text == "bad":
            raise ValueError(text)
        return text.upper()

    lines = [f"n{i}" for i in range(20)]
    for attempt in range(3):
        with opened(tmp_path / "graph", picky) as graph:
            if not attempt:
                graph.add(Document("\n".join([*lines, "bad", "never"]), id="d"))
            with pytest.raises(TransformError, match="bad"):
                graph.nodes("summary")
    assert asked == [*lines, "bad", "bad", "bad"]
    with opened(tmp_path / "graph", picky) as graph:
        graph.remove("d")
        assert texts(graph, "summary") == []
        assert "drafts summary" not in graph._store.kinds()  # what was kept of it is gone, too


def test_threads_that_keep_their_work_while_others_are_written_never_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_writer, "PERIOD", 0.0)  # write at every opportunity
    model = Model()
    graph = opened(tmp_path / "graph", model, num_workers=4)
    graph.add([Document(f"a{i}\nb{i}\nc{i}", id=str(i)) for i in range(60)])
    built = threading.Thread(target=graph.build, args=["summary"], daemon=True)
    built.start()
    built.join(300)
    assert not built.is_alive()
    assert sum(model.asked.values()) == 180
    graph.close()


def test_what_is_slow_to_write_is_written_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    now, written = [0.0], []
    monkeypatch.setattr(build_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class SlowStore(MemoryStore):
        def write_derivations(self, group: str, *rest: Any) -> None:
            super().write_derivations(group, *rest)
            if group == "line":
                written.append(now[0])
                now[0] += 0.3

    def lines(text: str) -> list[str]:
        now[0] += 0.06
        return text.splitlines()

    graph = NodeGraph(store=SlowStore(), progress=False)
    graph.create_node_group("line", lines)
    graph.add(Document("one", id=str(number)) for number in range(100))
    graph.build("line")
    assert 2 < len(written) < 8  # of 6 s, and 50 times where it takes nothing


def counting(fail_in_batch: int | None = None) -> tuple[Embedder, list[str]]:
    embedded: list[str] = []

    def embed(given: Sequence[str]) -> list[list[float]]:
        if len(embedded) // 10 == fail_in_batch:
            raise OSError("the line is dead")
        embedded.extend(given)
        return [[len(text), ord(text[-1])] for text in given]

    return Embedder(embed, "counting", batch_size=10), embedded


def test_an_embedder_that_fails_in_the_seventh_batch_keeps_six(tmp_path: Path) -> None:
    words = [f"word {i}" for i in range(100)]
    broken, first = counting(fail_in_batch=6)
    with NodeGraph(store=tmp_path / "graph", embed=broken) as graph:
        with pytest.raises(EmbeddingError, match="the line is dead"):
            graph.embeddings.vectors(words, "default")
        assert first == words[:60]
    mended, second = counting()
    with NodeGraph(store=tmp_path / "graph", embed=mended) as graph:
        vectors = graph.embeddings.vectors(words, "default")
        assert second == words[60:]
        assert vectors[:, 1].tolist() == [ord(word[-1]) for word in words]


def test_summaries_outlive_every_restart(tmp_path: Path) -> None:
    model = Model()
    for number in range(4):
        with opened(tmp_path / "graph", model) as graph:
            graph.add(Document(f"of {number}\nend {number}", id=str(number)))
            graph.compact()
            assert len(graph.nodes("summary")) == 2 * number + 2
    assert set(model.asked.values()) == {1}
    assert len(model.asked) == 8


class Marked:
    """Cut a text at spaces, put a mark on each piece, and count the calls of its group."""

    calls: ClassVar[Counter[str]] = Counter()

    def __init__(self, group: str, mark: str) -> None:
        self.group = group
        self.mark = mark

    def __call__(self, text: str) -> list[str]:
        Marked.calls[self.group] += 1
        return [self.mark + piece for piece in text.split()]


# left and right stand on top; both have a group below.
TREE = {"left": "ROOT", "below left": "left", "right": "ROOT", "below right": "right"}


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("left", {"left": 5, "below left": 10}),
        ("below left", {"below left": 10}),
        ("right", {"right": 5, "below right": 10}),
        (None, {}),
    ],
)
@pytest.mark.parametrize("what", ["settings", "version"])
def test_another_rule_makes_its_group_and_those_below_anew_and_nothing_else(
    tmp_path: Path, changed: str | None, again: dict[str, int], what: str
) -> None:
    def built(changed: str | None) -> dict[str, int]:
        Marked.calls.clear()
        with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
            if not graph.nodes("ROOT"):
                graph.add([Document(f"a{i} b{i}", id=str(i)) for i in range(5)])
            for name, parent in TREE.items():
                mark = "+" if name == changed else ""
                version = {"version": mark or "1"} if what == "version" else {}
                graph.create_node_group(name, Marked(name, mark), parent, **version)
            for name in TREE:
                assert len(graph.nodes(name)) == 10
            if changed:
                assert {node.text[0] for node in graph.nodes(changed)} == {"+"}
        return dict(Marked.calls)

    assert built(None) == {"left": 5, "below left": 10, "right": 5, "below right": 10}
    assert built(changed) == again
    assert built(changed) == {}


def test_a_new_version_that_makes_the_same_nodes_costs_nothing_below(tmp_path: Path) -> None:
    for version, again in (("1", {"left": 5, "below left": 10}), ("2", {"left": 5})):
        Marked.calls.clear()
        with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
            graph.add([Document(f"a{i} b{i}", id=str(i)) for i in range(5)])
            graph.create_node_group("left", Marked("left", ""), version=version)
            graph.create_node_group("below left", Marked("below left", ""), "left", version="1")
            graph.build("below left")
        assert Marked.calls == again


def test_unchanged_chunks_of_a_changed_document_are_neither_derived_nor_embedded_again(
    tmp_path: Path,
) -> None:
    model = Model()
    embedder, embedded = counting()
    lines = [f"line {i}" for i in range(12)]

    def ask(text: str) -> None:
        graph = NodeGraph(store=tmp_path / "graph", embed=embedder, progress=False)
        graph.create_node_group("line", str.splitlines)
        graph.create_node_group("summary", model, parent="line", version="1")
        graph.add(Document(text, id="d"))
        graph.embeddings.vectors(texts(graph, "summary"), "default")
        assert texts(graph, "summary") == text.upper().splitlines()
        graph.close()

    ask("\n".join(lines))
    model.asked.clear()
    embedded.clear()
    ask("\n".join(["new first", *lines[:6], "new between", *lines[8:]]))
    assert model.asked == {"new first": 1, "new between": 1}
    assert embedded == ["NEW FIRST", "NEW BETWEEN"]


def test_a_renamed_file_takes_along_what_was_made_of_it_and_its_links(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}.txt").write_text(f"{name} a\n{name} b")
    model = Model()
    embedder, embedded = counting()

    def open_again() -> NodeGraph:
        graph = NodeGraph(store=tmp_path / "graph", embed=embedder, progress=False)
        graph.create_node_group("line", str.splitlines)
        graph.create_node_group("summary", model, parent="line", version="1")
        return graph

    def line(graph: NodeGraph, text: str) -> Node:
        (found,) = [node for node in graph.nodes("line") if node.text == text]
        return found

    with open_again() as graph:
        graph.add(folder)
        graph.embeddings.vectors(texts(graph, "summary"), "default")
        graph.link(line(graph, "one a"), line(graph, "two b"), "cites", weight=0.5)
        graph.link(line(graph, "three a"), line(graph, "one b"), "cites", metadata={"why": "so"})
        graph.link("files/one.txt", "files/two.txt", "near")
    model.asked.clear()
    embedded.clear()
    (folder / "below").mkdir()
    shutil.move(folder / "one.txt", folder / "below" / "uno.txt")

    with open_again() as graph:
        found = graph.refresh()
        assert found.renamed == [("files/one.txt", "files/below/uno.txt")]
        assert (found.added, found.updated, found.removed) == ([], [], [])
    with open_again() as graph:
        assert sorted(texts(graph, "summary")) == sorted(
            f"{name} {end}".upper() for name in ("one", "two", "three") for end in "ab"
        )
        graph.embeddings.vectors(texts(graph, "summary"), "default")
        assert (model.asked, embedded) == ({}, [])
        moved = line(graph, "one a")
        assert moved.document_id == "files/below/uno.txt"
        assert moved.metadata["file_name"] == "uno.txt"
        (link,) = graph.links(moved)
        assert (link.target, link.type, link.weight) == (line(graph, "two b").id, "cites", 0.5)
        (link,) = graph.links(line(graph, "one b"), incoming=True)
        assert (link.source, link.metadata) == (line(graph, "three a").id, {"why": "so"})
        assert [n.id for n in graph.linked("files/below/uno.txt")] == ["files/two.txt"]
        # A node that is made anew would have got the same id as the one that was moved.
        fresh = NodeGraph(progress=False)
        fresh.create_node_group("line", str.splitlines)
        fresh.add([Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")])
        assert {n.id for n in fresh.nodes("line")} == {n.id for n in graph.nodes("line")}
