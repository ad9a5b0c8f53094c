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


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(c) + 0.25 for c in "aeiklmrtn"] for text in texts]


def opened(path: Path) -> NodeGraph:
    graph = NodeGraph(store=path, embed=Embedder(letters, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines, version="1")
    return graph


def answers(graph: NodeGraph) -> list[list[tuple[str, str, float]]]:
    return [
        [(r.node.id, r.node.text, round(r.score, 5)) for r in retriever(query)]
        for retriever in (Retriever(graph, "line", how, top_k=8) for how in ("bm25", "cosine"))
        for query in ("tea", "green river", "milk stone water")
    ]


def damage(path: Path, rng: random.Random) -> str:
    """Truncate a file, append to it, or overwrite a part of it; return the kind of damage."""
    content = bytearray(path.read_bytes())
    kind = rng.choice(["cut", "zeros", "noise", "longer", "empty"])
    place, size = rng.randrange(len(content)), rng.choice([16, 512, 4096])
    end = min(len(content), place + size)
    if kind == "cut":
        del content[place:]
    elif kind == "longer":
        content += rng.randbytes(size)
    elif kind == "empty":
        content.clear()
    else:
        content[place:end] = bytes(end - place) if kind == "zeros" else rng.randbytes(end - place)
    path.write_bytes(content)
    return f"{kind} at {place} in {path.name}"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["indexes", "graph"])
def test_damaged_files_are_rebuilt_or_raise(
    part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    rng, whole = random.Random(1), tmp_path / "whole"
    whole.mkdir()
    with opened(whole / "graph") as graph:
        for number in range(60):
            lines = [" ".join(rng.choices(WORDS, k=6)) + f" {number}.{n}" for n in range(5)]
            graph.add(Document("\n".join(lines), {"n": number}, id=f"d{number}"))
        right = answers(graph)
    indexes = sorted(path for path in (whole / "graph-indexes").rglob("*") if path.is_file())
    assert indexes
    tally = Tally(f"damaged {part}")
    for _ in range(amount(40, 2_000)):
        folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
        path = rng.choice(indexes) if part == "indexes" else whole / "graph"
        what = damage(folder / path.relative_to(whole), rng)
        with tally.trying(what):
            try:
                with opened(folder / "graph") as graph:
                    found = answers(graph)
                tally.note("faults" if faults_of(folder / "graph") else "no faults")
                assert part == "graph" or found == right
            except (StoreError, LookupError):
                tally.note("error")
                assert part == "graph"
        shutil.rmtree(folder, ignore_errors=True)
    tally.check()
