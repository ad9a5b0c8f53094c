"""Agents with the tools of a corpus, beside top_k passages: gold passages read, and tokens for it.

The agents are scripted and see only what the tools return. On MuSiQue one searches for the gold
sub-questions one after the other, with the gold answers of earlier ones; on HotpotQA, which has no
sub-questions, it searches for the question, and then for the title of a gold passage that stands
in what it has read. Of each search it sees results up to ``--tokens``. A gold passage counts when
all of its text was returned. Beside it: the default retriever's first passages for the question.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from comparing import graph_of
from datasets import multi_hop
from harness import arguments, show

from nodekin.nodegraph import count_tokens
from nodekin.retrievers import DefaultRetriever
from nodekin.retrievers.corpus_tools import CorpusTools, ToolSession
from nodekin.retrievers.evaluation import Dataset

BUDGET = 4000
PLACES = (5, 10, 20, 40)


class Reading(NamedTuple):
    """Gold passages that were read, all there are, and the tokens that were read for them."""

    gold: int
    of: int
    tokens: int
    calls: int = 1


class Agent:
    """Search with the tools, and remember what was read.

    Args:
        tools: The tools.
        dataset: The passages and questions.
        max_tokens: The budget of a search.
    """

    def __init__(self, tools: Any, dataset: Dataset, max_tokens: int) -> None:
        self.tools, self.max_tokens = tools, max_tokens
        self.titles = {one.id: one.metadata["title"] for one in dataset.documents}

    def read(self, question: str, gold: set[str], steps: list[str]) -> Reading:
        """Search for the steps, or follow the titles of gold passages where there are none."""
        session, read, tokens, calls, seen = ToolSession(), set[str](), 0, 0, ""
        waiting, asked = list(steps) or [question], set[str]()
        while waiting and tokens < BUDGET:
            query = waiting.pop(0)
            asked.add(query)
            output = self.tools.call(
                "search", {"query": query}, session=session, max_tokens=self.max_tokens
            )
            tokens, calls = tokens + output.tokens, calls + 1
            for entry in output.entries:
                text = entry["text"] or ""
                seen += text
                if entry.get("whole"):
                    read.add(entry["document"])
                elif not entry.get("shown_before") and entry["document"] in gold:
                    # an agent reads on where the excerpt is what it looks for
                    part = {key: entry[key] for key in ("document", "start", "end")}
                    rest = self.tools.call("read", part, session=session, max_tokens=600)
                    tokens, calls = tokens + rest.tokens, calls + 1
                    read.add(entry["document"])
            if not steps:
                titles = (self.titles[i] for i in sorted(gold - read))
                names = (re.sub(r"\s*\(.*?\)$", "", title) for title in titles)
                waiting += [n for n in names if n in seen and n not in asked and n not in waiting]
        return Reading(len(gold & read) if tokens <= BUDGET else 0, len(gold), tokens, calls)


def decompositions(data: Path) -> list[list[str]]:
    """Return the gold sub-questions of MuSiQue's questions, with earlier answers put in."""
    file = data / "musique" / "musique_train.json"
    result = []
    for row in json.loads(file.read_text(encoding="utf-8")):
        steps, answers = [], list[str]()
        for step in row["question_decomposition"]:
            text = re.sub(r"#(\d)", lambda m: answers[int(m[1]) - 1], step["question"])  # noqa: B023
            steps.append(text.replace(" >> ", ", "))
            answers.append(step["answer"])
        result.append(steps)
    return result


def rows(data: Path, max_tokens: int) -> Iterator[list[str]]:
    """Yield a row for each system on each set."""
    for dataset in multi_hop(data):
        graph = graph_of(dataset)
        is_musique = dataset.name == "MuSiQue"
        steps = decompositions(data) if is_musique else [[] for _ in dataset.questions]
        gold_of = [{gold.document_id for gold in one.gold} for one in dataset.questions]
        agent = Agent(CorpusTools(graph), dataset, max_tokens)
        readings = [
            agent.read(question.text, gold, parts)
            for question, gold, parts in zip(dataset.questions, gold_of, steps, strict=True)
        ]
        yield row(dataset.name, "agent, search and read", readings)
        retriever = DefaultRetriever(graph)
        for place in PLACES:
            readings = []
            for question, gold in zip(dataset.questions, gold_of, strict=True):
                results = retriever.retrieve(question.text, top_k=place)
                tokens = sum(count_tokens(result.node.text) for result in results)
                found = gold & {result.node.document_id for result in results}
                readings.append(Reading(len(found), len(gold), tokens))
            yield row(dataset.name, f"top_k={place}", readings)


def row(name: str, system: str, readings: list[Reading]) -> list[str]:
    """Return what a system reached."""
    whole = statistics.mean(reading.gold == reading.of for reading in readings)
    tokens = sum(reading.tokens for reading in readings)
    gold = sum(reading.gold for reading in readings)
    return [
        name,
        system,
        f"{whole:.2f}",
        f"{tokens / len(readings):,.0f}",
        f"{statistics.mean(reading.calls for reading in readings):.1f}",
        f"{1000 * gold / tokens:.2f}",
    ]


def main() -> None:
    """Run what there is data for."""
    parser = arguments(__doc__)
    parser.add_argument("--tokens", type=int, default=500, help="of one search")
    options = parser.parse_args()
    columns = ["set", "system", f"all gold within {BUDGET:,} tokens", "tokens", "calls"]
    show("Agents", [*columns, "gold per 1,000 tokens"], rows(options.data, options.tokens))


if __name__ == "__main__":
    main()
