"""Contract tests of vector engines behind the frameworks' vector stores.

Chroma runs as a server in a separate process, Milvus as a milvus-lite file.
"""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodekin.adapters.vector_store_index import StoreIndexes
from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import Retriever

SIZE = 400

QUERIES = ("tea 7", "river", "长江", "tea 399 changed")

FILTERS: tuple[dict[str, Any] | None, ...] = (None, {"percent": 7}, {"even": True}, {"n": -1})


def model(texts: list[str]) -> list[Any]:
    """Return a random vector for each text, equal for equal texts."""
    seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
    return [np.random.default_rng(seed).normal(size=16) for seed in seeds]


def document(number: int, text: str = "") -> Document:
    metadata = {"n": number, "percent": number % 100, "even": number % 2 == 0}
    return Document(text or f"tea {number}", metadata, id=f"d{number}")


class ChromaServer:
    """A Chroma server on a free port, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def client(self) -> Any:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        return chromadb.HttpClient(host="127.0.0.1", port=self.port, settings=settings)

    def start(self) -> None:
        program = Path(sys.executable).with_name("chroma")
        place = ["--path", str(self._folder), "--port", str(self.port)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([program, "run", *place], **quiet)
        end = time.monotonic() + 300
        while True:
            try:
                self.client().heartbeat()
                return
            except Exception:  # not ready yet
                assert self._process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(60)


@pytest.fixture(scope="module")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    server = ChromaServer(tmp_path_factory.mktemp("chroma"))
    server.start()
    yield server
    server.stop()


@dataclass
class Chroma:
    server: ChromaServer
    name: str
    framework: str

    def index(self) -> StoreIndexes:
        if self.framework == "langchain":
            from langchain_chroma import Chroma

            from nodekin.adapters.langchain import as_index

            return as_index(
                lambda embeddings, group: Chroma(
                    f"{self.name}_{group}", embeddings, client=self.server.client()
                )
            )
        from llama_index.vector_stores.chroma import ChromaVectorStore

        from nodekin.adapters import llama_index

        return llama_index.as_index(
            lambda group: ChromaVectorStore(
                self.server.client().get_or_create_collection(f"{self.name}_{group}")
            )
        )

    def _collection(self) -> Any:
        return self.server.client().get_collection(f"{self.name}_ROOT")

    def clear(self) -> None:
        collection = self._collection()
        collection.delete(ids=collection.get()["ids"])

    def count(self) -> int:
        return int(self._collection().count())

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()


@dataclass
class Milvus:
    uri: str
    name: str
    _stores: list[Any] = field(default_factory=list)

    def index(self) -> StoreIndexes:
        from langchain_milvus import Milvus

        from nodekin.adapters.langchain import as_index

        def create(embeddings: Any, group: str) -> Any:
            self._stores.append(
                Milvus(
                    embeddings,
                    collection_name=f"{self.name}_{group}",
                    connection_args={"uri": self.uri},
                )
            )
            return self._stores[-1]

        return as_index(create)

    def clear(self) -> None:
        from pymilvus import MilvusClient

        MilvusClient(self.uri).delete(f"{self.name}_ROOT", filter='pk != ""')

    def count(self) -> int:
        from pymilvus import MilvusClient

        client = MilvusClient(self.uri)
        return len(client.query(f"{self.name}_ROOT", filter='pk != ""', limit=9_999))

    def stop(self) -> None:
        self._stores[-1].client.close()

    def start(self) -> None: ...  # a new store object connects again


PACKAGES = {
    "langchain-chroma": "langchain_chroma",
    "langchain-milvus": "langchain_milvus",
    "llama-index-vector-stores-chroma": "llama_index.vector_stores.chroma",
}


@pytest.fixture(params=PACKAGES)
def engine(request: pytest.FixtureRequest, tmp_path: Path, socket_enabled: None) -> Any:
    reason = f"no {request.param}, which needs the newest frameworks: pip install --group ci"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages, when they are imported
        pytest.importorskip(PACKAGES[request.param], reason=reason)
        if request.param == "langchain-milvus":
            pytest.importorskip("milvus_lite", reason="no milvus-lite for this platform")
    name = f"t{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:12]}"
    if request.param == "langchain-milvus":
        return Milvus(f"{tmp_path}/milvus.db", name)
    server: ChromaServer = request.getfixturevalue("chroma_server")
    return Chroma(server, name, request.param.partition("-")[0])


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[NodeGraph]:
    with NodeGraph(
        embed=Embedder(model, "random"), store=tmp_path / "graph.db", progress=False
    ) as graph:
        graph.add([document(number) for number in range(SIZE)])
        yield graph


def rows(graph: NodeGraph, index: Any, **settings: Any) -> list[list[tuple[str, float]]]:
    retriever = Retriever(graph, "ROOT", "cosine", index=index, **settings)
    return [[(r.node.id, r.score) for r in results] for results in retriever.batch(QUERIES)]


def same(graph: NodeGraph, index: StoreIndexes, recall: float = 0.98) -> None:
    """Compare with the built-in index: all documents, 1 %, 50 %, none.

    Results are full and scores are equal. HNSW may miss a node, above all after deletions.
    """
    right = total = 0
    for filters in FILTERS:
        for top_k in (1, 10):
            found = rows(graph, index, filters=filters, top_k=top_k)
            expected = rows(graph, "default", filters=filters, top_k=top_k)
            for got, best in zip(found, expected, strict=True):
                assert len(got) == len(best)
                scores = dict(got)
                assert all(scores[i] == score for i, score in best if i in scores)
                right += len(scores.keys() & dict(best).keys())
                total += len(best)
    assert right >= recall * total


def test_results_equal_built_in_index_after_changes(
    graph: NodeGraph, engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    index = engine.index()
    same(graph, index)
    assert engine.count() == SIZE
    assert not [r for r in caplog.records if r.name.startswith("nodekin") and "compared" in r.msg]
    graph.add([document(number) for number in range(SIZE, SIZE + 5)])
    same(graph, index)
    graph.add(document(399, "tea 399 changed"))
    same(graph, index)
    assert rows(graph, index, top_k=1)[3] == [("d399", 1.0)]
    graph.remove([f"d{number}" for number in range(0, 50)])
    same(graph, index)
    assert engine.count() == SIZE + 5 - 50


def test_reopened_graph_writes_nothing(graph: NodeGraph, engine: Any) -> None:
    same(graph, engine.index())
    graph.close()
    index = engine.index()
    shared = index.cosine.open(graph, "ROOT", "default")
    written: list[Any] = []
    shared._backend.add = written.append  # type: ignore[attr-defined]
    same(graph, index)
    assert not written
    assert engine.count() == SIZE


@pytest.mark.parametrize("reopened", [False, True])
def test_emptied_engine_is_filled_again(graph: NodeGraph, engine: Any, reopened: bool) -> None:
    index = engine.index()
    same(graph, index)
    engine.clear()
    if reopened:
        graph.close()
        index = engine.index()
    same(graph, index, recall=0.8)
    assert engine.count() == SIZE


def test_stopped_engine_raises_and_works_after_restart(graph: NodeGraph, engine: Any) -> None:
    index = engine.index()
    same(graph, index)
    engine.stop()
    graph.add(document(399, "tea 399 changed"))
    with pytest.raises(Exception, match=r"(?i)connect"):
        rows(graph, index, top_k=1)
    assert Retriever(graph, "ROOT", "bm25", top_k=1)("changed")[0].node.id == "d399"
    engine.start()
    graph.close()
    same(graph, engine.index())


PAGE = Path(__file__).parents[2] / "docs" / "stores.md"


@pytest.mark.parametrize("engine", ["langchain-chroma", "langchain-milvus"], indirect=True)
def test_example_on_the_page_runs(
    engine: Any,
    graph: NodeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    package = PACKAGES[request.node.callspec.params["engine"]]
    (block,) = (block for block in blocks if f"from {package} import" in block)
    scope: dict[str, Any] = {}
    exec(block, scope)
    same(graph, scope["index"])


def test_distributed_engine_finds_nodes_of_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, socket_enabled: None, capsys: Any
) -> None:
    """Run the recipe of docs/scale.md, then change and remove a document."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages, when they are imported
        for package in ("langchain_milvus", "milvus_lite"):
            pytest.importorskip(package, reason=f"no {package}: pip install --group ci")
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
    (recipe,) = [block for block in page.split("```py\n")[1:] if "langchain_milvus" in block]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(recipe.split("```")[0], names)
    assert capsys.readouterr().out == "['Black tea is fermented.']\ntea\n"
    names["put"](document(1, "Black tea is oxidized.\nGreen tea is not."))
    names["remove"]("tea")
    names["put"](names["Document"]("Black tea needs boiling water.", id="tea"))
    found = names["hits"].retrieve("black tea", top_k=2)
    assert {result.text for result in found} == {
        "Black tea is oxidized.",
        "Black tea needs boiling water.",
    }
    assert {result.node.group for result in found} == {"sentence"}
    names["remove"]("tea")
    texts = [result.text for result in names["hits"].retrieve("boiling water", top_k=9)]
    assert "Black tea needs boiling water." not in texts
    names["graph"].close()
