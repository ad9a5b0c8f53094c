"""Stores in folders that a process cannot write to, such as images of containers."""

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.other_user import as_other_user, freeze, shared_folder, thaw

from nodekin import as_retriever
from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.nodegraph.storage.sqlite import faults_of
from nodekin.retrievers import Retriever

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")

TEXTS = ["Green tea is steamed.", "Black tea is fermented.", "White tea is dried."]


@pytest.fixture
def folder() -> Iterator[Path]:
    with shared_folder() as path:
        yield path


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(letter) + 0.1 for letter in "aeioudfkmnrst"] for text in texts]


def opened(folder: Path, source: Path | None = None) -> NodeGraph:
    embed = Embedder(letters, "letters")
    graph = NodeGraph(source, store=folder / "tea.db", embed=embed, progress=False)
    graph.create_node_group("word", str.split)
    return graph


def filled(folder: Path, texts: list[str] = TEXTS) -> None:
    """Write a store, and search it so that everything is derived and imported."""
    with opened(folder) as graph:
        graph.add([Document(text, id=str(number)) for number, text in enumerate(texts)])
        answers(graph)


def answers(graph: NodeGraph) -> list[list[tuple[str, float]]]:
    searches = (
        as_retriever(graph),
        Retriever(graph, "ROOT", "bm25", top_k=2),
        Retriever(graph, "word", "cosine", top_k=2),
    )
    queries = ("Which tea is steamed?", "dried")
    return [
        [(result.text, round(result.score, 6)) for result in search(query, top_k=2)]
        for search in searches
        for query in queries
    ]


def names_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def warnings_of(work: Callable[[], object]) -> list[str]:
    """Return the warnings that a function logs."""
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("nodekin").addHandler(handler)
    work()
    return messages


CHANGES: dict[str, Callable[[NodeGraph], object]] = {
    "add": lambda graph: graph.add("Oolong tea is rolled."),
    "update": lambda graph: graph.update(Document("other", id="0")),
    "remove": lambda graph: graph.remove("0"),
    "link": lambda graph: graph.link("0", "1"),
    "unlink": lambda graph: graph.unlink("0", "1"),
    "compact": lambda graph: graph.compact(),
}


def refusals(folder: Path) -> dict[str, str]:
    """Return the errors of all changes of a store, by name."""
    errors: dict[str, str] = {}
    with opened(folder) as graph:
        for name, change in CHANGES.items():
            try:
                change(graph)
            except StoreError as error:
                errors[name] = str(error)
        assert [node.text for node in graph.nodes("ROOT")] == TEXTS
        graph.nodes("word")
    return errors


def test_read_only_store_is_searched(folder: Path) -> None:
    filled(folder)
    names = names_of(folder)
    with opened(folder) as graph:
        right = answers(graph)
    freeze(folder)

    def search() -> None:
        with opened(folder) as graph:
            assert answers(graph) == right
            assert as_other_user(lambda: answers(graph)) == right  # a fork of this process
            assert as_other_user(lambda: answers(opened(folder))) == right
            assert answers(graph) == right
            graph.close()
            assert answers(graph) == right

    as_other_user(search)
    assert names_of(folder) == names
    assert faults_of(folder / "tea.db") == []
    assert as_other_user(lambda: faults_of(folder / "tea.db")) == []


@pytest.mark.parametrize("part", ["folder", "file", "both"])
def test_changes_of_read_only_store_raise(part: str, folder: Path) -> None:
    filled(folder)
    names = names_of(folder)
    folder.chmod(0o777 if part == "file" else 0o555)
    (folder / "tea.db").chmod(0o666 if part == "folder" else 0o444)
    errors = as_other_user(lambda: refusals(folder))
    assert errors.keys() == CHANGES.keys()
    where = (
        f"read-only in the folder {folder}" if part == "file" else f"folder {folder} is read-only"
    )
    assert [error for error in errors.values() if where not in error] == []
    assert names_of(folder) == names


def test_missing_groups_are_built_in_memory(folder: Path) -> None:
    with opened(folder) as graph:
        graph.add([Document(text, id=str(number)) for number, text in enumerate(TEXTS)])
    freeze(folder)
    before = (folder / "tea.db").read_bytes()
    with shared_folder() as other:
        filled(other)
        with opened(other) as graph:
            right = answers(graph)

    def search() -> list[str]:
        with opened(folder) as graph:
            messages = warnings_of(lambda: answers(graph))
            assert answers(graph) == right
            with pytest.raises(StoreError, match="is read-only"):
                graph.add("more")
            assert answers(graph) == right
            assert as_other_user(lambda: answers(graph)) == right
            return messages

    messages = as_other_user(search)
    assert len(messages) == 1
    assert "derived in memory" in messages[0]
    assert (folder / "tea.db").read_bytes() == before
    assert as_other_user(lambda: refusals(folder)).keys() == CHANGES.keys()


def test_missing_vectors_are_computed_once(folder: Path) -> None:
    filled(folder)
    with NodeGraph(store=folder / "tea.db", progress=False) as graph:
        graph._store.vectors.delete_unused("letters", set())
    shutil.rmtree(folder / "tea.db-indexes", ignore_errors=True)
    freeze(folder)

    def search() -> int:
        calls: list[str] = []

        def counted(texts: list[str]) -> list[list[float]]:
            calls.extend(texts)
            return letters(texts)

        embed = Embedder(counted, "letters")
        with NodeGraph(store=folder / "tea.db", embed=embed, progress=False) as graph:
            for query in ("steamed", "fermented"):
                assert graph.search(query)[0].text.count(query) == 1
        return len(calls) - len(set(calls))

    assert as_other_user(search) == 0


def test_missing_index_files_are_logged_once(folder: Path) -> None:
    filled(folder, [f"tea number{number}" for number in range(400)])
    assert list((folder / "tea.db-indexes").iterdir())
    shutil.rmtree(folder / "tea.db-indexes")
    freeze(folder)

    def search() -> list[str]:
        def work() -> None:
            with opened(folder) as graph:
                assert Retriever(graph, "ROOT", "bm25", top_k=1)("number7")[0].text == "tea number7"
                assert Retriever(graph, "ROOT", "cosine", top_k=1)("number7")
                answers(graph)

        return warnings_of(work)

    messages = as_other_user(search)
    assert len(messages) == 1
    assert "the store is read-only" in messages[0]


def left_open(folder: Path) -> None:
    """Add a document in a process that is killed before it closes the store."""
    filled(folder, TEXTS[:2])
    child = os.fork()
    if not child:
        graph = opened(folder)
        graph.add(Document(TEXTS[2], id="2"))
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / "tea.db-wal").stat().st_size


def found(folder: Path) -> list[str]:
    with opened(folder) as graph:
        return [node.text for node in graph.nodes("ROOT")]


def test_log_beside_read_only_store_is_read(folder: Path) -> None:
    left_open(folder)
    freeze(folder)
    assert as_other_user(lambda: found(folder)) == TEXTS
    thaw(folder)
    folder.chmod(0o777)
    (folder / "tea.db").chmod(0o444)
    assert as_other_user(lambda: found(folder)) == TEXTS


def test_unreadable_log_is_an_error(folder: Path) -> None:
    left_open(folder)
    (folder / "tea.db-shm").unlink()
    freeze(folder)

    def error() -> str:
        with pytest.raises(StoreError) as raised:
            opened(folder)
        return str(raised.value)

    message = as_other_user(error)
    assert "tea.db-wal holds changes that cannot be read" in message
    assert f"the folder {folder} is read-only" in message
    thaw(folder)
    assert found(folder) == TEXTS  # as the remedy says
    freeze(folder)
    assert as_other_user(lambda: found(folder)) == TEXTS


def test_empty_log_is_ignored(folder: Path) -> None:
    filled(folder)
    (folder / "tea.db-wal").touch()
    freeze(folder)
    assert as_other_user(lambda: found(folder)) == TEXTS


def test_changes_of_the_owner_are_seen(folder: Path) -> None:
    """The folder is read-only for one user, and another user writes to the store."""
    filled(folder)
    folder.chmod(0o755)
    ready, tell = os.pipe()
    wait, go = os.pipe()

    def search() -> list[int]:
        with opened(folder) as graph:
            counts = [len(graph.nodes("ROOT"))]
            for _ in range(2):
                os.write(tell, b"1")
                os.read(wait, 1)
                counts.append(len(graph.nodes("ROOT")))
                assert len(Retriever(graph, "word", "bm25", top_k=9)("tea")) == counts[-1]
            return counts

    def change() -> None:
        os.read(ready, 1)
        with opened(folder) as graph:
            graph.add("Oolong tea is rolled.")
            os.write(go, b"1")
            os.read(ready, 1)
            graph.add("Yellow tea is rare.")
        os.write(go, b"1")

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    assert as_other_user(search) == [3, 4, 5]
    thread.join(60)
    for end in (ready, tell, wait, go):
        os.close(end)


def test_unchanged_source_of_read_only_store_opens(folder: Path) -> None:
    docs = folder / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("Green tea.", encoding="utf-8")
    (docs / "b.unknown").write_bytes(b"\0\1")
    opened(folder, docs).close()
    os.utime(docs / "a.txt", (time.time() - 100,) * 2)  # as in a copied image
    freeze(folder)

    def search() -> list[str]:
        with opened(folder, docs) as graph:
            graph.refresh()
            return [node.text for node in graph.nodes("word")]

    assert as_other_user(search) == ["Green", "tea."]
    (docs / "a.txt").chmod(0o644)
    (docs / "a.txt").write_text("Black tea.", encoding="utf-8")

    def error() -> str:
        with pytest.raises(StoreError) as raised:
            opened(folder, docs)
        return str(raised.value)

    assert f"the folder {folder} is read-only" in as_other_user(error)


def test_empty_read_only_file_raises(folder: Path) -> None:
    (folder / "tea.db").touch()
    freeze(folder)

    def error() -> str:
        with pytest.raises(StoreError) as raised:
            opened(folder)
        return str(raised.value)

    assert "is empty" in as_other_user(error)
