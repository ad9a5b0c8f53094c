"""Damaged files: an error, or indexes that are built anew, never another answer."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path

import pytest
from stress import Tally, amount

from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.retrievers import Retriever

WORDS = "tea green black leaf river cup milk sugar Anhui water mountain stone".split()
TRIES = amount(40, 2_000)


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(c) + 0.25 for c in "aeiklmrtn"] for text in texts]


def opened(path: Path) -> NodeGraph:
    graph = NodeGraph(store=path, embed=Embedder(letters, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines, version="1")
    return graph


def answers(graph: NodeGraph) -> list[list[tuple[str, str, float]]]:
    retrievers = [Retriever(graph, "line", how, top_k=8) for how in ("bm25", "cosine")]
    return [
        [(r.node.id, r.node.text, round(r.score, 5)) for r in retriever(query)]
        for retriever in retrievers
        for query in ("tea", "green river", "milk stone water")
    ]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return a folder with a graph of 300 lines and its indexes, closed."""
    choose = random.Random(1)
    random.seed(1)  # of revisions: the same file each time
    folder = tmp_path / "whole"
    folder.mkdir()
    with opened(folder / "graph") as graph:
        for number in range(60):
            lines = [" ".join(choose.choices(WORDS, k=6)) + f" {number}.{n}" for n in range(5)]
            graph.add(Document("\n".join(lines), {"n": number}, id=f"d{number}"))
        answers(graph)
    return folder


def damage(path: Path, choose: random.Random) -> str:
    """Do something to a file that no program meant; return what."""
    content = bytearray(path.read_bytes())
    kind = choose.choice(["bits", "cut", "zeros", "noise", "longer", "empty"])
    place = choose.randrange(len(content))
    size = choose.choice([1, 16, 512, 4096])
    if kind == "bits":
        for _ in range(choose.choice([1, 3, 20])):
            content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    elif kind == "cut":
        del content[place:]
    elif kind == "zeros":
        content[place : place + size] = bytes(len(content[place : place + size]))
    elif kind == "noise":
        content[place : place + size] = choose.randbytes(len(content[place : place + size]))
    elif kind == "longer":
        content += choose.randbytes(size)
    else:
        content.clear()
    path.write_bytes(content)
    return f"{kind} at {place} in {path.name}"


@pytest.mark.slow
def test_damaged_indexes_are_built_anew(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    with opened(whole / "graph") as graph:
        right = answers(graph)
    choose, tally = random.Random(2), Tally("damaged indexes")
    names = sorted(
        path.relative_to(whole) for path in (whole / "graph-indexes").rglob("*") if path.is_file()
    )
    assert names
    for number in range(TRIES):
        folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
        what = [damage(folder / name, choose) for name in choose.sample(names, 1 + number % 2)]
        with tally.trying(what), opened(folder / "graph") as graph:
            assert answers(graph) == right
        shutil.rmtree(folder)
    tally.check()


@pytest.mark.slow
def test_a_damaged_file_is_an_error_as_far_as_sqlite_can_tell(whole: Path, tmp_path: Path) -> None:
    with opened(whole / "graph") as graph:
        right = answers(graph)
    choose, tally = random.Random(3), Tally("damaged graphs")
    for _ in range(TRIES):
        folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
        what = damage(folder / "graph", choose)
        with tally.trying(what):
            try:
                with opened(folder / "graph") as graph:
                    given = answers(graph)
            except (StoreError, LookupError):
                tally.note("said so")
            else:
                if given == right:
                    tally.note("still right")
                elif what.startswith(("cut", "empty", "longer")):
                    assert what.startswith("empty"), "texts are missing, silently"
                    tally.note("empty, and so new")
                else:
                    tally.note("with other texts, which SQLite can't tell")
        shutil.rmtree(folder, ignore_errors=True)
    tally.check()
