"""What a small model's judge is worth: planted statements on passages, judged with their passage.

For each of ``--passages`` questions of CMRC 2018's development set, and as many first hops of
MuSiQue, there are four answers: the sentence of the passage that has the right answer, the same
sentence with the answer to another question in its place, and each of the two answers in a short
sentence that stands nowhere. The gate supports what stands in the passage word for word. The model
says yes or no to each. ``groundedness`` asks the gate first, then the model. ``--llm`` is a model
of the server at ``OPENAI_BASE_URL``. What it decides is kept in ``--cache``, so that a run that was
interrupted goes on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness import arguments, cmrc_dev, show, with_cache

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import split_sentences
from nodekin.retrievers.evaluation import GoldPassage, Judge, Matching, Question, judges
from nodekin.retrievers.evaluation.matching import RetrievalCase, RetrievedItem

SUPPORTED = {"its sentence": True, "its sentence, another answer in it": False,
             "the answer in other words": True, "another answer in other words": False}  # fmt: skip


class Planted(NamedTuple):
    """A statement on a passage.

    Attributes:
        kind: How it was made.
        passage: The passage.
        question: The question that it answers.
        statement: The statement.
    """

    kind: str
    passage: str
    question: str
    statement: str


def chinese(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield short passages with a question and its answer each."""
    seen = set()
    for question in cmrc_dev(data).questions:
        (gold,) = question.gold
        answer = question.answers[0].rstrip("。")
        if isinstance(gold, GoldPassage) and gold.text not in seen and len(gold.text) < 400:
            seen.add(gold.text)
            yield gold.text, question.text, answer


def english(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the passages of first hops that are questions in words."""
    rows = json.loads((data / "musique" / "musique_train.json").read_text(encoding="utf-8"))
    for row in rows:
        hop = row["question_decomposition"][0]
        if hop["question"].endswith("?"):
            passage = row["paragraphs"][hop["paragraph_support_idx"]]["paragraph_text"]
            if len(passage) < 600:
                yield passage, hop["question"], hop["answer"]


def planted(cases: list[tuple[str, str, str]], count: int, short: str) -> Iterator[Planted]:
    """Yield four statements on each of so many passages."""
    for at, (passage, question, answer) in enumerate(cases):
        other = next(
            a for p, _, a in cases[at + 1 :] + cases[:at] if a not in passage and len(a) < 40
        )
        sentence = next((s for s in split_sentences(passage) if answer in s), None)
        if sentence is None or len(answer) > 40 or sentence.strip() == answer:
            continue
        statements = [sentence, sentence.replace(answer, other),
                      short.format(answer), short.format(other)]  # fmt: skip
        for kind, statement in zip(SUPPORTED, statements, strict=True):
            yield Planted(kind, passage, question, statement)
        count -= 1
        if not count:
            return


def grounded(judge: Judge, one: Planted, *, gate: bool) -> float | None:
    """Return the groundedness of a statement, by the gate and the model or the model alone."""
    before = judges.MIN_QUOTED_TOKENS
    if not gate:
        judges.MIN_QUOTED_TOKENS = math.inf  # type: ignore[assignment]  # nothing is so long
    try:
        item = RetrievedItem("1", one.passage, 1.0)
        case = RetrievalCase(Question("1", one.question), (item,), Matching(), one.statement)
        return judge.metric("groundedness").judge(case).value
    finally:
        judges.MIN_QUOTED_TOKENS = before


def refuse(prompt: str) -> str:
    """Say no to any statement."""
    return json.dumps({"verdicts": [{"number": n, "quote": "", "verdict": "no"} for n in (1,)]})


def main() -> None:
    """Judge all, and print the shares that are right."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--llm", metavar="NAME", required=True, help="model that judges")
    parser.add_argument("--passages", type=int, default=5, help="in each language")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    chat = OpenAIChat(options.llm, timeout=1800)
    judge, gate = Judge(chat, store=options.cache / "judge.db"), Judge(refuse)
    sets = {"zh": (chinese, "答案是{}。"), "en": (english, "The answer is {}.")}
    rows = []
    for language, (read, short) in sets.items():
        said: dict[str, list[tuple[bool, ...]]] = {kind: [] for kind in SUPPORTED}
        for one in planted([*read(options.data)], options.passages, short):
            values = (
                grounded(gate, one, gate=True),
                grounded(judge, one, gate=False),
                grounded(judge, one, gate=True),
            )
            print(one.kind, one.statement, *values, sep="\t", flush=True)
            if None not in values:
                said[one.kind].append(tuple(value == 1 for value in values))
        for kind, supported in SUPPORTED.items():
            judged = said[kind]
            right = [
                sum(yes == supported for yes in column) for column in zip(*judged, strict=True)
            ]
            agree = sum(by_gate == by_model for by_gate, by_model, _ in judged)
            rows.append([f"{language}, {kind}", "yes" if supported else "no",
                         *(f"{n} of {len(judged)}" for n in (*right, agree))])  # fmt: skip
    columns = ["the gate is right", "the model is right", "`groundedness` is right"]
    header = ["statement", "supported", *columns, "gate and model agree"]
    show("What a model's judge is worth", header, rows)


if __name__ == "__main__":
    main()
