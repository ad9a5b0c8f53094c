"""Agents with the tools of a corpus, beside top_k passages: gold that was read, and tokens for it.

The agents are scripted and see only what the tools return. On MuSiQue one searches for the gold
sub-questions one after the other, with the gold answers of earlier ones; on HotpotQA, which has no
sub-questions, it searches for the question, and then for the title of a gold passage that stands
in what it has read; on CMRC 2018 (Chinese, files of some ten paragraphs) for the question. A search
returns up to ``--tokens``; the agent goes on with more of its results (``skip``, up to ``--pages``)
until the (sub-)question's answer, on HotpotQA a title or all gold, stands in what it has read, as a
reader would. Where only a part of a gold passage is shown it reads the rest. Gold counts when all
of it was returned: whole passages, on CMRC the place of the answer. Another agent knows the answers
alone, which are what it has to read. Beside them: the default retriever's first passages for the
question, text alone.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from comparing import graph_of
from datasets import cmrc_answers, every, multi_hop
from harness import arguments, show

from nodekin.nodegraph import Node, count_tokens
from nodekin.retrievers import DefaultRetriever
from nodekin.retrievers.corpus_tools.tool_output import ToolOutput
from nodekin.retrievers.corpus_tools.tool_session import ToolSession
from nodekin.retrievers.corpus_tools.toolset import CorpusTools
from nodekin.retrievers.evaluation import Dataset, GoldSpan, Question

Entries = Sequence[dict[str, Any]]

BUDGET = 4000
PLACES = (3, 5, 6, 10, 20, 40)  # six is what the default retriever returns


class Reading(NamedTuple):
    """Gold that was read, all there is, and the tokens that were read for it."""

    gold: int
    of: int
    tokens: int
    calls: int = 1


class Step(NamedTuple):
    """What an agent searches for, and the answer that it stops at."""

    query: str
    answer: str | None = None


class Agent:
    """Search with the tools, and remember what was read.

    Args:
        tools: The tools.
        max_tokens: The budget of a search.
        pages: How often it goes on with a search.
    """

    def __init__(self, tools: CorpusTools, max_tokens: int, pages: int) -> None:
        self.tools, self.max_tokens, self.pages = tools, max_tokens, pages

    def read(self, gold: Sequence[GoldSpan], steps: list[Step]) -> Reading:
        """Search for the steps, and for titles of gold passages that turn up where they lead to."""
        self.session, self.missing, self.seen = ToolSession(), list(gold), ""
        self.gold, self.steps, self.tokens, self.calls = gold, steps, 0, 0
        waiting, known = list(steps), {step.query for step in steps}
        while waiting and self.tokens < BUDGET:
            step, skip = waiting.pop(0), 0
            for _ in range(self.pages):
                output = self._call("search", {"query": step.query, "skip": skip}, self.max_tokens)
                skip += len(output.entries)
                self._look_at(output.entries, step)
                titles = set() if step.answer else self._titles() - known
                waiting += map(Step, sorted(titles))
                known |= titles
                done = not self.missing if step.answer is None else step.answer in self.seen
                if done or titles or not output.left_out or self.tokens >= BUDGET:
                    break
        count, of = self._reached()
        return Reading(count if self.tokens <= BUDGET else 0, of, self.tokens, self.calls)

    def _call(self, name: str, arguments: dict[str, Any], max_tokens: int) -> ToolOutput:
        output = self.tools.call(name, arguments, session=self.session, max_tokens=max_tokens)
        self.tokens, self.calls = self.tokens + output.tokens, self.calls + 1
        self.seen += "".join(entry["text"] or "" for entry in output.entries)
        self.missing = [
            span
            for span in self.missing
            if self.session.unseen(self._document(span), span.start, span.end)
        ]
        return output

    def _document(self, span: GoldSpan) -> Node:
        return self.tools.graph.node(span.document_id)

    def _look_at(self, entries: Entries, step: Step) -> None:
        """Read on where a passage looks like the right one, and is shown in part."""
        for entry in entries:
            place = {key: entry[key] for key in ("document", "start", "end")}
            if any(overlaps(span, *place.values()) for span in self.missing):
                self._call("read", place, 600)

    def _reached(self) -> tuple[int, int]:
        """Return how much gold was read, and how much there is."""
        return len(self.gold) - len(self.missing), len(self.gold)

    def _titles(self) -> set[str]:
        """Return the titles of gold passages that stand in what was read."""
        titles = (str(self._document(span).metadata.get("title", "")) for span in self.missing)
        return {
            t for title in titles if (t := re.sub(r"\s*\(.*?\)$", "", title)) in self.seen and t
        }


class Reader(Agent):
    """Know the answers of the steps and no gold: what counts is that they stand in what was read.

    As long as an answer does not, it reads on in the first passage of a page that is shown in part.
    """

    def _look_at(self, entries: Entries, step: Step) -> None:
        parts = [entry for entry in entries if entry["text"] and not entry["whole"]]
        if parts and str(step.answer) not in self.seen:
            self._call("read", {key: parts[0][key] for key in ("document", "start", "end")}, 600)

    def _reached(self) -> tuple[int, int]:
        return sum(str(step.answer) in self.seen for step in self.steps), len(self.steps)


def overlaps(span: GoldSpan, document_id: str, start: int, end: int) -> bool:
    """Return whether a part of a document has some of a gold span."""
    return span.document_id == document_id and span.start < end and start < span.end


def decompositions(data: Path) -> list[list[Step]]:
    """Return the gold sub-questions of MuSiQue's questions, with earlier answers put in."""
    file = data / "musique" / "musique_train.json"
    result = []
    for row in json.loads(file.read_text(encoding="utf-8")):
        steps = list[Step]()
        for part in row["question_decomposition"]:
            text = re.sub(r"#(\d)", lambda m: steps[int(m[1]) - 1].answer or "", part["question"])  # noqa: B023
            steps.append(Step(text.replace(" >> ", ", "), part["answer"]))
        result.append(steps)
    return result


def tasks(data: Path) -> Iterator[tuple[Dataset, list[list[Step]]]]:
    """Yield the sets that are there, and the steps of each of their questions."""
    for dataset in multi_hop(data):
        is_musique = dataset.name == "MuSiQue"
        yield (
            dataset,
            decompositions(data) if is_musique else [[Step(one.text)] for one in dataset.questions],
        )
    dataset = every(cmrc_answers(data), 200)
    yield dataset, [[Step(one.text, one.answers[0])] for one in dataset.questions]


def spans_of(question: Question, lengths: dict[str, int]) -> list[GoldSpan]:
    """Return the gold of a question as parts of documents."""
    return [
        gold
        if isinstance(gold, GoldSpan)
        else GoldSpan(gold.document_id, 0, lengths[gold.document_id])
        for gold in question.gold
    ]


def rows(data: Path, max_tokens: int, pages: int) -> Iterator[list[str]]:
    """Yield a row for each system on each set."""
    for dataset, steps in tasks(data):
        graph = graph_of(dataset)
        lengths = {document.id: len(document.text) for document in dataset.documents}
        gold_of = [spans_of(question, lengths) for question in dataset.questions]
        agent = Agent(CorpusTools(graph), max_tokens, pages)
        readings = [agent.read(gold, parts) for gold, parts in zip(gold_of, steps, strict=True)]
        ours = per_token(readings)
        yield row(dataset.name, "agent, search and read", readings, ours)
        if steps[0][0].answer:
            reader = Reader(agent.tools, max_tokens, pages)
            readings = [
                reader.read(gold, parts) for gold, parts in zip(gold_of, steps, strict=True)
            ]
            yield row(dataset.name, "agent that knows no gold: answers", readings, ours)
        retriever = DefaultRetriever(graph)
        for place in PLACES:
            readings = []
            for question, gold in zip(dataset.questions, gold_of, strict=True):
                nodes = [one.node for one in retriever.retrieve(question.text, top_k=place)]
                tokens = sum(count_tokens(node.text) for node in nodes)
                places = [(node.document_id, node.start, node.end) for node in nodes]
                count = sum(any(overlaps(span, *one) for one in places) for span in gold)
                readings.append(Reading(count, len(gold), tokens))
            yield row(dataset.name, f"top_k={place}", readings, ours)
        texts = {document.id: document.text for document in dataset.documents}
        ideal = [
            Reading(
                len(gold),
                len(gold),
                sum(count_tokens(texts[s.document_id][s.start : s.end]) for s in gold),
            )
            for gold in gold_of
        ]
        yield row(dataset.name, "the gold and nothing else", ideal, ours)


def per_token(readings: list[Reading]) -> float:
    """Return how many gold passages, or places, were read for 1,000 tokens."""
    tokens = sum(reading.tokens for reading in readings)
    return 1000 * sum(reading.gold for reading in readings) / tokens


def row(name: str, system: str, readings: list[Reading], ours: float) -> list[str]:
    """Return what a system reached, and how many times its gold per token the agent's is."""
    whole = statistics.mean(reading.gold == reading.of for reading in readings)
    return [
        name,
        system,
        f"{whole:.2f}",
        f"{sum(reading.gold for reading in readings) / sum(r.of for r in readings):.2f}",
        f"{statistics.mean(reading.tokens for reading in readings):,.0f}",
        f"{statistics.mean(reading.calls for reading in readings):.1f}",
        f"{per_token(readings):.2f}",
        f"{ours / per_token(readings):.2f}",
    ]


def main() -> None:
    """Run what there is data for."""
    parser = arguments(__doc__)
    parser.add_argument("--tokens", type=int, default=80, help="of one search")
    parser.add_argument("--pages", type=int, default=10, help="of one search")
    options = parser.parse_args()
    columns = ["set", "system", f"all gold within {BUDGET:,} tokens", "gold", "tokens", "calls"]
    columns += ["gold per 1,000 tokens", "the agent's is ... times that"]
    show("Agents", columns, rows(options.data, options.tokens, options.pages))


if __name__ == "__main__":
    main()
