"""The default retriever beside what it is made of, on every set that there is data for.

CMRC 2018 (and its development set), XQuAD in each language: MRR@10 of the paragraph that answers.
HotpotQA and MuSiQue: the share of questions with all gold passages among the first five. Weak
vectors are wordllama's (static, English: ``pip install wordllama``); "weight" is what the default
gives them, beside 3 and 1 of the words of passages and sentences.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from harness import Question, arguments, cmrc, cmrc_dev, hit, show
from languages import xquad
from multi_hop import documents as titled_documents
from multi_hop import hotpotqa, musique

DEPTH = 10
FUSED_DEPTH = 50


class Task(NamedTuple):
    """Documents, and questions with the ids of all that answer them."""

    name: str
    documents: list[Any]
    questions: list[tuple[str, set[str]]]
    two_hop: bool = False


def tasks(data: Path) -> Iterator[Task]:
    """Read the sets that there are."""
    yield _single("CMRC 2018", *cmrc(data))
    passages, questions = cmrc_dev(data)
    if passages:
        yield _single("CMRC 2018, development", passages, questions)
    for task in xquad(data):
        if "among all" not in task.name:
            yield _single(f"XQuAD, {task.name}", list(dict.fromkeys(task.passages)), task.questions)
    for read in (hotpotqa, musique):
        try:
            hops = read(data)
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")
            continue
        yield Task(hops.name, titled_documents(hops.passages), hops.questions, two_hop=True)


def _single(name: str, passages: list[str], questions: list[Question]) -> Task:
    from nodekin.nodegraph import Document

    ids = {text: str(at) for at, text in enumerate(passages)}

    @cache
    def gold(text: str) -> set[str]:
        return {ids[text]} if text in ids else {i for other, i in ids.items() if hit(other, text)}

    pairs = [(question.text, gold(question.gold)) for question in questions]
    return Task(name, [Document(text, id=i) for text, i in ids.items()], pairs)


def figure(retriever: Any, task: Task) -> float:
    """Return the set's measure of a retriever."""
    values = []
    for question, gold in task.questions:
        ids = [result.node.id for result in retriever.retrieve(question, top_k=DEPTH)]
        if task.two_hop:
            values.append(float(gold <= set(ids[:5])))
        else:
            values.append(next((1 / at for at, i in enumerate(ids, 1) if i in gold), 0.0))
    return statistics.mean(values)


def measured(data: Path) -> Iterator[list[str]]:
    """Return a row for each set, as it is done."""
    from nodekin.nodegraph import ROOT, EntityExtractor, NodeGraph
    from nodekin.retrievers import DefaultRetriever, FusionRetriever, LinkRetriever, Retriever

    for task in tasks(data):
        graph = NodeGraph(progress=False)
        graph.add(task.documents)
        default = DefaultRetriever(graph, ROOT)
        words = Retriever(graph, ROOT, top_k=FUSED_DEPTH)
        sentences = Retriever(graph, default.sentences, target=ROOT, top_k=FUSED_DEPTH)
        both = FusionRetriever([words, sentences], "relative", [3, 1], top_k=FUSED_DEPTH)
        graph.create_node_group("name", EntityExtractor(), scope="group")
        linked = [LinkRetriever(inner, graph, via="name") for inner in (words, both)]
        figures = [figure(one, task) for one in (words, sentences, both, *linked, default)]
        yield [task.name, *(f"{value:.3f}" for value in figures), *weak(task)]


def weak(task: Task) -> list[str]:
    """Return the default's figure with weak vectors, and the weight that it gives them."""
    try:
        import wordllama
    except ImportError:
        return ["skipped, not installed: wordllama", ""]
    from nodekin.nodegraph import ROOT, Embedder, NodeGraph
    from nodekin.retrievers import DefaultRetriever, trace

    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    embedder = Embedder(lambda texts: model.embed(list(texts), norm=True), "wordllama")
    graph = NodeGraph(embed=embedder, progress=False)
    graph.add(task.documents)
    default = DefaultRetriever(graph, ROOT)
    value = figure(default, task)
    with trace() as traced:
        default.retrieve(task.questions[0][0])
    weights = traced.children[0].attributes["weights"]
    return [f"{value:.3f}", f"{weights[-1]:.1f}"]


def main() -> None:
    """Run what there is data for."""
    options = arguments(__doc__).parse_args()
    columns = ["words", "sentences", "both, 3:1", "words, links", "both, links", "default"]
    show("By default", ["set", *columns, "with weak vectors", "weight"], measured(options.data))


if __name__ == "__main__":
    main()
