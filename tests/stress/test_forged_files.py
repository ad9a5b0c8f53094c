"""Files that a stranger forged: no crash, no hang, no error that is not documented."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.forged_files import (
    forge_arrays,
    forge_bytes,
    forge_database,
    forge_ignore_file,
    forge_json,
    in_child,
)
from support.stress import Tally, amount

from nodekin.adapters.cli.messages import CommandError
from nodekin.adapters.cli.workspace import find_index, open_graph
from nodekin.nodegraph import (
    Document,
    Embedder,
    EmbeddingError,
    NodeGraph,
    StoreError,
)
from nodekin.nodegraph.errors import MissingNodeError, VectorLengthError
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor
from nodekin.retrievers import LinkRetriever, Retriever
from nodekin.retrievers.indexes import nearest_vectors

REPO = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork") or os.name == "nt", reason="fork"),
]

WORDS = "tea Green black Leaf river Cup milk sugar Anhui water Mountain stone 茶 山水".split()


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(c) + 0.25 for c in "aeiklmrtn"] for text in texts]


def opened(path: Path) -> NodeGraph:
    graph = NodeGraph(store=path, embed=Embedder(letters, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines, version="1")
    graph.create_node_group("names", EntityExtractor(), "line")
    return graph


def fill(path: Path) -> None:
    rng = random.Random(1)
    with opened(path) as graph:
        documents = []
        for number in range(60):
            lines = [" ".join(rng.choices(WORDS, k=6)) + f" {number}.{n}" for n in range(5)]
            fields = {"n": number, "tags": ("a", "b")}
            documents.append(Document("\n".join(lines), fields, id=f"d{number}"))
        graph.add(documents)
        first, second, *_ = graph.nodes("line")
        graph.link(first, second, "next")
        graph.build("line", embed=True)
        use(graph)


def use(graph: NodeGraph) -> list[list[tuple[str, float]]]:
    """Search in all ways, read all nodes, and write."""
    retrievers = [
        Retriever(graph, "line", "bm25", top_k=8),
        Retriever(graph, "line", "cosine", top_k=8),
        Retriever(graph, "line", "bm25", target="ROOT", filters={"n": {"lt": 30}}),
        LinkRetriever(Retriever(graph, "line"), graph, via="names", top_k=4),
    ]
    found = [
        [(r.node.id, round(r.score, 5)) for r in retriever(query)]
        for retriever in retrievers
        for query in ("tea", "Green river", "milk stone 茶")
    ]
    for node in graph.nodes("line")[:10]:
        assert isinstance(node.text, str)
        repr((node.metadata, node.parent, node.place, node.links, node.start, node.order))
        repr((node.locations, graph.neighbors(node), node.searched_text, node.children))
        with suppress(ValueError):  # documented: a forged node may have no document
            assert node.root.text
    return found


def write(graph: NodeGraph) -> None:
    graph.add(Document("Green tea\nof the river", {"n": 7}, id="new"))
    graph.remove(["d3"])
    use(graph)


def use_all(path: Path) -> None:
    with opened(path) as graph:
        use(graph)
        write(graph)


Forge = Callable[[Path, random.Random], str]


def forge_index(folder: Path, rng: random.Random) -> str:
    file = rng.choice(sorted((folder / "graph-indexes").iterdir()))
    return forge_arrays(file, rng)


def forge_hnsw(folder: Path, rng: random.Random) -> str:
    (file,) = (folder / "graph-indexes").glob("vectors-*")
    return forge_arrays(file, rng, "hnsw")


def forge_store(folder: Path, rng: random.Random) -> str:
    if rng.random() < 0.2:
        return forge_bytes(folder / "graph", rng)
    return forge_database(folder / "graph", rng)


def run_alone(nodeid: str) -> None:
    """Run a test in a new process.

    FAISS of earlier tests has started threads in a worker of xdist, and its forked children would
    wait for these threads.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", nodeid]
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a graph with an index of each kind, written by another process."""
    monkeypatch.setattr(nearest_vectors, "EXACT", 100)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 0)
    folder = tmp_path / "whole"
    folder.mkdir()
    assert not in_child(lambda: fill(folder / "graph"), ())
    assert len(list((folder / "graph-indexes").iterdir())) >= 3
    return folder


DOCUMENTED = {
    forge_index: (),
    forge_hnsw: (),
    forge_store: (StoreError, EmbeddingError, VectorLengthError, LookupError, MissingNodeError),
}


@pytest.mark.parametrize("forge", DOCUMENTED)
def test_forged_graph_folder_is_used_or_refused(
    forge: Forge, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if forge is forge_hnsw and not find_spec("faiss"):
        pytest.skip("FAISS")
    if "PYTEST_XDIST_WORKER" in os.environ:
        run_alone(request.node.nodeid)
        return
    whole: Path = request.getfixturevalue("whole")
    rng = random.Random(5)
    tally = Tally(forge.__name__)
    for _ in range(amount(50, 2_000)):
        folder = Path(shutil.copytree(whole, tmp_path / "forged"))
        what = forge(folder, rng)

        with tally.trying(what):
            ended = in_child(partial(use_all, folder / "graph"), DOCUMENTED[forge])
            assert not ended, ended
        shutil.rmtree(folder)
    tally.check()


def test_forged_settings_are_used_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / ".nodekin"
    folder.mkdir(parents=True)
    file = folder / "index.json"
    good = '{"version": 1, "embed": "", "encoding": "", "ocr": false, "updated": 1.0}'
    rng = random.Random(5)
    tally = Tally("index.json")

    def call() -> None:
        with open_graph(find_index(folder), quiet=True) as graph:
            graph.add("Green tea.")

    for _ in range(amount(100, 2_000)):
        file.write_text(good)
        what = forge_json(file, rng)
        with tally.trying(what):
            ended = in_child(call, (CommandError, ImportError))  # the program tesseract
            assert not ended, ended
    tally.check()


def test_forged_ignore_file_ends(tmp_path: Path) -> None:
    for folder in (tmp_path / "docs", tmp_path / "docs" / "a" / "b" / "a"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("a" * 200 + ".txt", "ab" * 100, "b.txt"):
            (folder / name).write_text("Green tea.")
    rng = random.Random(5)
    tally = Tally(".gitignore")
    for _ in range(amount(50, 2_000)):
        what = forge_ignore_file(tmp_path / "docs" / ".gitignore", rng)
        with tally.trying(what):
            ended = in_child(lambda: NodeGraph(tmp_path / "docs", progress=False), ())
            assert not ended, ended
    tally.check()
