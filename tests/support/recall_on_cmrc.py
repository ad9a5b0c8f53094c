"""The bound for an engine that approximates: what it finds for the questions of CMRC 2018."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import Retriever

LEAST = 0.99  # of the best ten, and of the first results


def static_vectors() -> Embedder:
    """Return a model of 256 numbers that takes 0.04 ms for a question."""
    reason = "no static vectors: pip install wordllama"
    wordllama = pytest.importorskip("wordllama", reason=reason)
    cache = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=cache, disable_download=True)
    return Embedder(model.embed, "wordllama")


def check_recall(
    name: str,
    options: Mapping[str, Any],
    data: Path,
    filters: Sequence[Mapping[str, Any] | None] = (None,),
    filtered: int = 1,
) -> None:
    """Compare an engine's results with those of comparing all.

    The nodes are the 8,030 clauses of CMRC's paragraphs, in documents of a hundred, ``part`` 0 to
    39. A result is right if its score is at least that of the tenth.

    Args:
        name: Names the engine in what is printed.
        options: What ``NodeGraph`` takes.
        data: The folder of the data sets.
        filters: Each is tried with all questions; None is none.
        filtered: With a filter only every so many-th question is asked.
    """
    folder = data / "cmrc2018"
    if not (folder / "kb").is_dir():
        pytest.skip(f"no CMRC 2018 in {data}")
    texts = [file.read_text("utf-8") for file in sorted((folder / "kb").glob("*.txt"))]
    clauses = [c for t in texts for c in t.replace("，", "。").split("。") if c.strip()]
    random.Random(7).shuffle(clauses)
    lines = (folder / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [q for q in (json.loads(line)["question"] for line in lines) if q.strip()]
    assert len(questions) == 1_000
    model = static_vectors()
    with (
        NodeGraph(embed=model, progress=False, **options) as graph,
        NodeGraph(embed=model, progress=False) as exact,
    ):
        for each in (graph, exact):
            each.create_node_group("line", str.splitlines)
            parts = range(0, len(clauses), 100)
            each.add(
                [Document("\n".join(clauses[p : p + 100]), {"part": p // 100 % 40}) for p in parts]
            )
        for condition in filters:
            settings = {"top_k": 10, "filters": condition}
            asked = questions if condition is None else questions[::filtered]
            found, best = (
                Retriever(each, "line", "cosine", **settings).batch(asked)
                for each in (graph, exact)
            )
            right = first = 0.0
            for got, wanted in zip(found, best, strict=True):
                assert len(got) == len(wanted) == 10
                right += sum(result.score >= wanted[-1].score for result in got) / 10
                first += got[0].score == wanted[0].score
            recall, same = right / len(asked), first / len(asked)
            sys.stdout.write(
                f"\n{name}, {len(clauses):,} clauses, {len(asked):,} questions, "
                f"filter {condition}: recall@10 {recall:.4f}, same first {same:.4f}\n"
            )
            assert recall >= LEAST
            assert same >= LEAST
