import pytest

from nodekin.nodegraph import NodeGraph


def shown(capsys: pytest.CaptureFixture[str], progress: bool | None) -> str:
    graph = NodeGraph(progress=progress)
    graph.add(["a b", "c"])
    graph.create_node_group("word", str.split)
    assert len(graph.nodes("word")) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_a_bar_names_the_group_and_counts_documents(capsys: pytest.CaptureFixture[str]) -> None:
    err = shown(capsys, True)
    assert "building word" in err
    assert "2/2" in err


@pytest.mark.parametrize("progress", [False, None])
def test_silence(capsys: pytest.CaptureFixture[str], progress: bool | None) -> None:
    assert shown(capsys, progress) == ""


def test_nothing_to_build_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.create_node_group("word", str.split)
    ids = graph.add(["a", "b"])
    graph.nodes("word")
    capsys.readouterr()
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
