"""Tune on one half of the questions of four data sets, report on the other; what measuring costs.

CMRC 2018's development set (400 questions, evenly chosen, over 848 paragraphs), HotpotQA (100 over
994 passages), MuSiQue (100 over 1,890), and functions of the standard library by their
documentation (400 of 1,200), without a model, five minutes at most each. Gold are documents. The
second table has what ``evaluate`` takes beside the retrievals themselves, over 1,000 questions of
CMRC, in seconds of the processor, each time in a process of its own.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from harness import arguments, hotpotqa, musique, show
from languages import functions

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate, load_squad
from nodekin.retrievers.evaluation.tuning import tune

METRIC = "ndcg@5"


def cmrc_questions(data: Path, count: int) -> tuple[list[Any], Dataset]:
    """Read paragraphs and some questions of the development set, evenly chosen."""
    squad = load_squad(data / "cmrc2018" / "dev.json", "documents")
    step = max(1, len(squad) // count)
    return list(squad.documents), Dataset(squad.questions[::step][:count], name="CMRC 2018 dev")


def hop_questions(dataset: Dataset) -> tuple[list[Any], Dataset]:
    """Return passages, and the questions with their ids as gold."""
    return list(dataset.documents), Dataset(dataset.questions, name=dataset.name)


def code_questions(count: int) -> tuple[list[Any], Dataset]:
    """Return functions as documents, and the first lines of their documentation as questions."""
    chosen = functions(count)
    docs = [Document(one.source, id=str(number)) for number, one in enumerate(chosen)]
    questions = [
        Question(str(number), one.question, (GoldDocument(str(number)),))
        for number, one in enumerate(chosen)
    ]
    return docs, Dataset(questions[::3], name="functions")


def tuned(options: Namespace) -> Iterator[list[str]]:
    """Tune on each data set that is there."""
    sources: list[Callable[[], tuple[list[Any], Dataset]]] = [
        lambda: cmrc_questions(options.data, 400),
        lambda: hop_questions(hotpotqa(options.data)),
        lambda: hop_questions(musique(options.data)),
        lambda: code_questions(1200),
    ]
    for read in sources:
        try:
            docs, dataset = read()
        except FileNotFoundError as error:
            yield [f"skipped: no {error.filename}", *[""] * 7]
            continue
        start = time.process_time()
        result = tune(docs, dataset, metric=METRIC, seconds=options.seconds, progress=False)
        figure, tried = (
            {name: metrics[METRIC].value or 0.0 for name, metrics in of.figures.items()}
            for of in (result.evaluation, result.trials)
        )
        yield [
            dataset.name,
            f"{len(tried)}",
            f"{result.seconds:.0f}",
            f"{time.process_time() - start:.0f}",
            f"{tried['default']:.4f}",
            f"{max(tried.values()):.4f}",
            f"{figure['default']:.4f}",
            f"{figure[result.setups.default]:.4f}" if result.changed else "the default stays",
        ]


RETRIEVERS: dict[str, Callable[[NodeGraph], Any]] = {
    "words of paragraphs": lambda graph: Retriever(graph, "ROOT"),
    "the default": DefaultRetriever,
}


def costs(options: Namespace) -> Iterator[list[str]]:
    """Time the retrievals of 1,000 questions, alone, in an evaluation, and with a file of it."""
    for name in RETRIEVERS:
        rounds = []
        for _ in range(3):
            with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
                ways = [fresh.submit(cost, options.data, name, way) for way in range(3)]
                rounds.append([way.result() for way in ways])
        alone, *more = map(median, zip(*rounds, strict=True))
        yield [name, f"{alone:.3f}", *(f"{each:.3f} ({each / alone:.2f})" for each in more)]


def cost(data: Path, name: str, way: int) -> float:
    """Return the processor's seconds of 1,000 questions."""
    docs, dataset = cmrc_questions(data, 1000)
    graph = NodeGraph(progress=False)
    graph.add(docs)
    retriever = RETRIEVERS[name](graph)
    str(evaluate({"one": retriever}, Dataset([Question("", "all is loaded")]), progress=False))
    with TemporaryDirectory() as folder:
        path = Path(folder, "results.jsonl") if way == 2 else None
        start = time.process_time()
        if way:
            str(evaluate({"one": retriever}, dataset, progress=False, path=path))
        else:
            for question in dataset.questions:
                retriever.retrieve(question.text, top_k=5)
        return time.process_time() - start


def main() -> None:
    """Run both."""
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each data set")
    options = parser.parse_args()
    header = ["data", "set-ups", "seconds", "of the processor", "default", "best tried", "default"]
    header.append("tuned")
    show(f"{METRIC}: on the half that chooses, and held back", header, tuned(options))
    columns = ["1,000 questions", "retrievals, s", "evaluated (times)", "with a file (times)"]
    show("What measuring costs", columns, costs(options))


if __name__ == "__main__":
    main()
