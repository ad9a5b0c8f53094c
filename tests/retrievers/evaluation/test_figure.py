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


@pytest.mark.parametrize(("name", "start"), [("f.svg", b"<?xml"), ("f.png", b"\x89PNG")])
def test_save_figure_writes_svg_and_png(result, tmp_path, name, start):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    result.save_figure(tmp_path / name)
    image = (tmp_path / name).read_bytes()
    assert image.startswith(start)
    assert b"recall@1" in image or name == "f.png"


def test_unknown_suffix_raises(result):
    with pytest.raises(ValueError, match=r"a figure must be a file .png or .svg, got 'figure.pdf'"):
        result.save_figure("figure.pdf")


def test_missing_matplotlib_error_has_the_install_command(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "nodekin\[eval\]"'):
        result.save_figure(tmp_path / "figure.png")
