"""What actors of a Ray cluster build is what one process builds; two machines share the work."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worker_transforms import HeavyModel, Noted, around, notes

from nodekin.nodegraph import Document, Embedder, LLMExtractor, NodeGraph, TransformError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Yield Ray with a cluster of two nodes, each with one CPU."""
    ray = pytest.importorskip("ray", reason='needs Ray: pip install "nodekin[ray]"')
    from ray.cluster_utils import Cluster

    support = str(Path(__file__).parents[2] / "support")
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    nodes = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    environment = {"env_vars": {"PYTHONPATH": support}}
    ray.init(address=nodes.address, log_to_driver=False, runtime_env=environment)
    yield ray
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def make_graph(log: Path) -> NodeGraph:
    graph = NodeGraph(progress=False, embed=Embedder(HeavyModel(log), batch_size=2))
    texts = ["tea is green\nice is not", "rivers run", "长江很长", *map(str, range(20))]
    graph.add([Document(text, {"number": i}, id=str(i)) for i, text in enumerate(texts)])
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", lambda text: text.split(), parent="line")
    graph.create_node_group("around", around, parent="word", trans_node=True)
    return graph


def test_two_nodes_build_what_one_process_builds(cluster: Any, log: Path) -> None:
    from nodekin.adapters.engines.ray import RayWorkers

    def with_node(text: str) -> list[str]:
        import ray

        return [text, f"on {ray.get_runtime_context().get_node_id()}"]

    alone, together = make_graph(log), make_graph(log)
    alone.build("around", embed=True)
    with RayWorkers(num_cpus=1) as workers:
        assert workers.count == 2
        together.build("around", embed=True, workers=workers)
        for group in ("line", "word", "around"):
            rows = [
                [(n.id, n.text, n.start, n.order, n.metadata, n.links) for n in graph.nodes(group)]
                for graph in (alone, together)
            ]
            assert rows[0] == rows[1]
        kind = "embedding heavy"
        assert together._store.get_values(kind) == alone._store.get_values(kind)
        together.create_node_group("node", with_node)
        together.build("node", workers=workers)
    nodes = {node.text for node in together.nodes("node") if node.text.startswith("on ")}
    assert len(nodes) == 2


def test_an_actor_keeps_its_model_and_asks_for_answers_here(cluster: Any, log: Path) -> None:
    from nodekin.adapters.engines.ray import RayWorkers

    graph = make_graph(log)
    asked = log.with_name("asked")
    with RayWorkers(2, num_cpus=1) as workers:
        graph.build("line", embed=True, workers=workers)
        graph.add([f"another text {i}" for i in range(20)])
        graph.build("line", embed=True, workers=workers)
        assert len(notes(log)) == 2, "each loads it once, for both builds"
        graph.add([Document("one prompt", id=f"p{i}") for i in range(10)])
        for name in ("one", "two"):
            graph.create_node_group(name, LLMExtractor(Noted(asked), "summary"))
            graph.build(name, workers=workers)
    prompts = [text for _, text in notes(asked)]
    assert len(prompts) == len(set(prompts))


def test_errors_say_where_and_a_lost_actor_is_replaced(
    cluster: Any, log: Path, tmp_path: Path
) -> None:
    from nodekin.adapters.engines.ray import RayWorkers

    lost = tmp_path / "lost"

    def once(text: str) -> list[str]:
        if text == "1" and not lost.exists():
            lost.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [text]

    def always(text: str) -> list[str]:
        if text == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return [text]

    graph = NodeGraph(progress=False)
    graph.add([Document(str(i), id=str(i)) for i in range(4)])
    graph.create_node_group("once", once)
    graph.create_node_group("always", always)
    graph.create_node_group("word", Noted(log, bad="2"))
    with RayWorkers(2, num_cpus=1) as workers:
        assert graph.build("once", workers=workers) == []
        assert [node.text for node in graph.nodes("once")] == ["0", "1", "2", "3"]
        assert lost.exists()
        with pytest.raises(TransformError, match=r"'1'.*the Ray actor that worked on it ended"):
            graph.build("always", workers=workers)
        with pytest.raises(TransformError, match="ValueError: can't stand '2'") as error:
            graph.build("word", workers=workers)
        cause = error.value.__cause__
        assert cause is not None
        assert "worker_transforms.py" in str(cause.__cause__)
