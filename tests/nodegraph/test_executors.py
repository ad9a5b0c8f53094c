"""Builds in the workers of an executor."""

import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph, TransformError

DOCUMENTS = [Document(f"tea {n}. leaf {n % 7}.\nwater {n}", id=f"d{n}") for n in range(300)]


def declared(store: Path | None = None) -> NodeGraph:
    embed = Embedder(lambda texts: [[len(text), text.count("a"), 1] for text in texts], "letters")
    graph = NodeGraph(store=store, embed=embed, progress=False)
    graph.create_node_group("line", lambda text: text.split("\n"))
    graph.create_node_group("word", str.split, parent="line")
    graph.create_node_group("pair", first_words, parent="line", trans_node=True)
    graph.create_node_group("all", lambda lines: f"{len(lines)} {os.getpid()}", scope="group")
    graph.add(DOCUMENTS)
    return graph


def first_words(node: Node) -> list[str]:
    return [f"{node.root.id} {node.text.split()[0]} {os.getpid()}"]


def facts(graph: NodeGraph, group: str) -> list[tuple[object, ...]]:
    return [(n.id, n.text, n.start, n.order, n.parent_id) for n in graph.nodes(group)]


@pytest.fixture(params=["processes", "dask"])
def executor(request: pytest.FixtureRequest, socket_enabled: None) -> Iterator[Executor]:
    if request.param == "processes":
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            yield pool
        return
    distributed = pytest.importorskip("distributed", reason="no distributed: group ci")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_build_in_an_executor_equals_a_build_without(executor: Executor) -> None:
    graph, expected = declared(), declared()
    assert graph.build("word", "pair", "all", embed=True, executor=executor) == []
    for group in ("line", "word", "pair", "all"):
        assert facts(graph, group) == facts(expected, group)
    nodes = graph.nodes("word")
    assert [list(n.embedding()) for n in nodes[:9]] == [
        list(n.embedding()) for n in expected.nodes("word")[:9]
    ]


def test_executor_runs_transforms_and_models() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[os.getpid(), 1] for _ in texts]

    graph = NodeGraph(embed=embed, progress=False)
    graph.create_node_group("process", lambda text: [str(os.getpid())])
    graph.add("tea")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        graph.build("process", embed=True, executor=pool)
        worker = pool.submit(os.getpid).result()
    (node,) = graph.nodes("process")
    assert (node.text, node.embedding()[0]) == (str(worker), worker)


def test_transform_that_cannot_be_pickled_raises() -> None:
    graph = NodeGraph(progress=False)
    lock = __import__("threading").Lock()
    graph.create_node_group("line", lambda text: [text] if lock else [], version="1")
    graph.add("tea")
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(TypeError, match="the transform of group 'line' cannot be pickled"),
    ):
        graph.build("line", executor=pool)
    assert graph.groups["line"].size == 0


def test_failing_transform_in_a_worker_is_skipped() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("number", lambda text: [str(int(text))])
    graph.add([Document("1", id="a"), Document("two", id="b")])
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        (failure,) = graph.build("number", on_error="skip", executor=pool)
    assert (failure.document, type(failure.error)) == ("b", TransformError)
    assert [node.text for node in graph.nodes("number")] == ["1"]


class EndedExecutor(Executor):
    """An executor whose worker has ended before the first call."""

    def submit(self, *args, **kwargs):
        raise BrokenExecutor("the worker has ended")


def test_ended_executor_raises_with_the_group() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("word", str.split)
    graph.add("tea")
    with pytest.raises(RuntimeError, match="a worker of the executor that builds group 'word'"):
        graph.build("word", executor=EndedExecutor())


def test_killed_worker_raises_and_leaves_whole_documents() -> None:
    def end_process(text: str) -> list[str]:
        if text == "tea 200":
            os._exit(1)
        return text.split()

    graph = NodeGraph(progress=False)
    graph.create_node_group("word", end_process, version="1")
    graph.add([Document(f"tea {n}", id=f"d{n}") for n in range(300)])
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(RuntimeError, match="a worker of the executor that builds group 'word'"),
    ):
        graph.build("word", executor=pool)
    assert graph.groups["word"].size % 2 == 0
    graph.create_node_group("word", str.split, replace=True)
    assert len(graph.nodes("word")) == 600


def test_number_is_no_executor() -> None:
    with pytest.raises(TypeError, match=r"such as ProcessPoolExecutor\(4\), got 4"):
        NodeGraph().build(executor=4)  # type: ignore[arg-type]
