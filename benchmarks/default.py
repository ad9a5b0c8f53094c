"""The default retriever beside what it is made of, on every set that there is data for.

CMRC 2018 (and its development set), XQuAD in each language: MRR@10 of the paragraph that answers.
HotpotQA and MuSiQue: the share of questions with all gold passages among the first five. Weak
vectors are wordllama's (static, English: ``pip install wordllama``); "weight" is what the default
gives them, beside 3 and 1 of the words of passages and sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from comparing import compare, graph_of
from datasets import cmrc, cmrc_dev, multi_hop, xquad
from harness import arguments, show

from nodekin.nodegraph import ROOT, Embedder, EntityExtractor
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    Retriever,
    trace,
)
from nodekin.retrievers.evaluation import Dataset

DEPTH = 10
FUSED_DEPTH = 50


def datasets(data: Path) -> Iterator[tuple[Dataset, str]]:
    """Yield the sets that there are, each with its metric."""
    yield cmrc(data), "mrr@10"
    try:
        yield cmrc_dev(data), "mrr@10"
    except FileNotFoundError as error:
        print(f"\nskipped: no {error.filename}")
    for dataset in xquad(data):
        yield Dataset(dataset.questions, dataset.documents, f"XQuAD, {dataset.name}"), "mrr@10"
    for dataset in multi_hop(data):
        yield dataset, "all_gold@5"


def measured(data: Path) -> Iterator[list[str]]:
    """Yield a row for each set, as it is done."""
    for dataset, metric in datasets(data):
        graph = graph_of(dataset)
        default = DefaultRetriever(graph, ROOT)
        words = Retriever(graph, ROOT, top_k=FUSED_DEPTH)
        sentences = Retriever(graph, default.sentences, target=ROOT, top_k=FUSED_DEPTH)
        both = FusionRetriever([words, sentences], "relative", [3, 1], top_k=FUSED_DEPTH)
        graph.create_node_group("name", EntityExtractor(), scope="group")
        linked = [LinkRetriever(inner, graph, via="name") for inner in (words, both)]
        setups = dict(zip(COLUMNS, (words, sentences, both, *linked, default), strict=True))
        figures = compare(dataset, setups, [metric], top_k=DEPTH).figures
        values = [f"{figures[name][metric].value:.3f}" for name in setups]
        yield [dataset.name, *values, *weak(dataset, metric)]


COLUMNS = ["words", "sentences", "both, 3:1", "words, links", "both, links", "default"]


def weak(dataset: Dataset, metric: str) -> list[str]:
    """Return the default's figure with weak vectors, and the weight that it gives them."""
    try:
        import wordllama
    except ImportError:
        return ["skipped, not installed: wordllama", ""]
    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    embedder = Embedder(lambda texts: model.embed(list(texts), norm=True), "wordllama")
    default: Any = DefaultRetriever(graph_of(dataset, embed=embedder), ROOT)
    value = compare(dataset, {"weak": default}, [metric], top_k=DEPTH).figure("weak", metric).value
    with trace() as traced:
        default.retrieve(dataset.questions[0].text)
    weights = traced.children[0].attributes["weights"]
    return [f"{value:.3f}", f"{weights[-1]:.1f}"]


def main() -> None:
    """Run what there is data for."""
    options = arguments(__doc__).parse_args()
    show("By default", ["set", *COLUMNS, "with weak vectors", "weight"], measured(options.data))


if __name__ == "__main__":
    main()
