"""Measure how often the printed form of a search result shows the answer.

Only questions for which the first passage contains the answer are counted. The default search
without a model is used. ``print(result)`` may print three lines of 80 columns, and the command line
may print five lines below the position of a result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness import arguments, cmrc, show, xquad

from nodekin import NodeGraph
from nodekin.adapters.cli.output import snippet
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.evaluation import Dataset
from nodekin.retrievers.excerpt import columns_of

QUESTIONS = 298

NOTE = (
    "Questions whose first passage has the answer, by words. Share of results that show the "
    "answer, in three lines by `print(result)` and in five lines by the command line, 80 columns."
)

COLUMNS = 80


def rows(dataset: Dataset) -> Iterator[list[str]]:
    """Measure a data set and yield its row of the table."""
    graph = NodeGraph(progress=False)
    graph.add(dataset.documents)
    step = max(1, len(dataset.questions) // QUESTIONS)
    printed = []
    listed = []
    for question in dataset.questions[::step][:QUESTIONS]:
        results = graph.search(question.text, 1)
        if not results or not has_answer(results[0].text, question.answers):
            continue
        text = str(results[0])
        assert lines_of(text) <= 3, text
        printed.append(has_answer(text, question.answers))
        listed.append(has_answer(command_line(results[0], question.text), question.answers))
    share = [f"{sum(found) / len(found):.3f}" for found in (printed, listed)]
    yield [dataset.name, str(len(printed)), *share]


def command_line(result: ScoredNode, query: str) -> str:
    """Return the wrapped lines that the command line prints for a result."""
    lines = snippet(result, query)
    assert len(lines) <= 5, lines
    return "\n".join(line.plain for line in lines)


def has_answer(text: str, answers: tuple[str, ...]) -> bool:
    """Return whether a text contains one of the answers. Differences in whitespace are ignored."""
    flat = "".join(text.split())
    return any("".join(answer.split()) in flat for answer in answers)


def lines_of(text: str) -> int:
    """Return the number of lines that a text occupies in a terminal."""
    return sum(-(-columns_of(line) // COLUMNS) for line in text.split("\n"))


def main() -> None:
    """Run the benchmark and print the table."""
    options = arguments(__doc__).parse_args()
    os.environ["COLUMNS"] = str(COLUMNS)
    header = ["questions about", "counted", "print(result)", "command line"]
    sets = [*xquad(options.data), cmrc(options.data)]
    table = (row for dataset in sets for row in rows(dataset))
    show("Printed answers", header, table, NOTE)


if __name__ == "__main__":
    main()
