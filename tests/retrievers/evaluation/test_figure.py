import sys

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate


@pytest.fixture
def result():
    with NodeGraph(progress=False) as graph:
        ids = graph.add(["Green tea is not fermented.", "The Nile runs north."])
        data = Dataset([Question("1", "green tea", (GoldDocument(ids[0]),))])
        retrievers = {
            "texts": Retriever(graph, "ROOT"),
            "$one$": Retriever(graph, "ROOT", top_k=1),
            "failing": lambda query: 1 / 0,
        }
        yield evaluate(retrievers, data, ["recall@1", "tokens"])


def test_svg_has_metrics(result, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    result.save_figure(tmp_path / "figure.svg")
    svg = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert svg.startswith("<?xml")
    assert "recall@1" in svg


def test_png_is_written(result, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    result.save_figure(str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_suffix_raises(result):
    with pytest.raises(ValueError, match=r"a figure must be a file .png or .svg, got 'figure.pdf'"):
        result.save_figure("figure.pdf")


def test_missing_matplotlib_error_has_the_install_command(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "nodekin\[eval\]"'):
        result.save_figure(tmp_path / "figure.png")
