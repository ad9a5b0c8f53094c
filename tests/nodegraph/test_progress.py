import pytest

from nodekin.nodegraph import NodeGraph


def test_nothing_to_build_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.create_node_group("word", str.split)
    ids = graph.add(["a", "b"])
    graph.nodes("word")
    assert "building word" in capsys.readouterr().err
    graph.remove(ids[0])
    assert len(graph.nodes("word")) == 1
    assert capsys.readouterr().err == ""


def test_a_failing_build_closes_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.add("a")
    graph.create_node_group("bad", lambda text: 1 / 0)
    with pytest.raises(RuntimeError, match="division by zero"):
        graph.nodes("bad")
    assert capsys.readouterr().err.endswith("\n")
