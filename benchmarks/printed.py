"""Answers in what is printed: the share of printed results that show the answer.

Counted are questions whose first passage contains the answer, by the default search without a
model. ``print(result)`` may take three lines of 80 columns, a result of the command line five lines
below its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness import arguments, cmrc, show, xquad

from nodekin import NodeGraph
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.evaluation import Dataset
from nodekin.retrievers.excerpt import columns_of

QUESTIONS = 298

NOTE = (
    "Questions whose first passage has the answer, by words. Share of results that show the "
    "answer, in three lines by `print(result)` and in five lines by the command line, 80 columns."
)

COLUMNS = 80

INDENT = 4  # columns before a line of the command line


def rows(dataset: Dataset) -> Iterator[list[str]]:
    """Yield the row of a data set."""
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
    """Return the lines of a result in the command line."""
    return " ".join(result.snippet(query, columns=COLUMNS - INDENT, rows=5))


def has_answer(text: str, answers: tuple[str, ...]) -> bool:
    """Return whether a text contains an answer. White space may differ."""
    flat = " ".join(text.split())
    return any(" ".join(answer.split()) in flat for answer in answers)


def lines_of(text: str) -> int:
    """Return the number of lines in a terminal."""
    return sum(-(-columns_of(line) // COLUMNS) for line in text.split("\n"))


def main() -> None:
    """Print the table."""
    options = arguments(__doc__).parse_args()
    header = ["questions about", "counted", "print(result)", "command line"]
    sets = [*xquad(options.data), cmrc(options.data)]
    table = (row for dataset in sets for row in rows(dataset))
    show("Printed answers", header, table, NOTE)


if __name__ == "__main__":
    main()
