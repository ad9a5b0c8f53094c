"""A damaged graph file is an error; damaged index files are rebuilt."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path

import pytest
from support.stress import Tally, amount

from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.nodegraph.storage.sqlite import faults_of
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
    random.seed(1)  # of revisions, so that the files are equal in each run
    folder = tmp_path / "whole"
    folder.mkdir()
    with opened(folder / "graph") as graph:
        for number in range(60):
            lines = [" ".join(choose.choices(WORDS, k=6)) + f" {number}.{n}" for n in range(5)]
            graph.add(Document("\n".join(lines), {"n": number}, id=f"d{number}"))
        answers(graph)
    return folder


def damage(path: Path, choose: random.Random) -> str:
    """Truncate a file, append to it, or overwrite a part of it; return the kind of damage."""
    content = bytearray(path.read_bytes())
    kind = choose.choice(["cut", "zeros", "noise", "longer", "empty"])
    place = choose.randrange(len(content))
    size = choose.choice([16, 512, 4096])
    if kind == "cut":
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
def test_damaged_index_files_are_rebuilt(
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
def test_damaged_graph_file_raises_no_other_error(whole: Path, tmp_path: Path) -> None:
    choose, tally = random.Random(3), Tally("damaged graphs")
    for _ in range(TRIES):
        folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
        what = damage(folder / "graph", choose)
        with tally.trying(what):
            try:
                with opened(folder / "graph") as graph:
                    answers(graph)
                faults = faults_of(folder / "graph")
            except (StoreError, LookupError):
                tally.note("error")
            else:
                tally.note("faults" if faults else "no faults")
        shutil.rmtree(folder, ignore_errors=True)
    tally.check()
