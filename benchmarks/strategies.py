"""Query strategies on questions that need several passages: are all gold passages found?

Models are scripted, so that what is measured is the machinery and not a model's wit:

- *oracle*, MuSiQue: writes the gold questions of the decomposition one after the other, and gives
  the gold answer to each, whatever was found. For sub-questions, which are written before anything
  is answered, the references to earlier answers are left out.
- *reading oracle*, MuSiQue: the same, but gives an answer, and goes on, only where the gold passage
  of the question is among the passages that it is shown.
- *reading oracle*, HotpotQA, which has no decompositions: asks about the title of a gold passage,
  if that title stands in the question or in the other gold passage, which it must have been shown.
  It knows which entity is worth following, and no more: what a model that reads well could do.
- *wandering*: asks about names that it happens to read, answers with others, and is never content:
  the worst that a model does which keeps to the form.
- *garbage*: empty, refusals, nonsense, JSON of something else. Must be the same as plain.

``--model NAME`` adds a real one behind OPENAI_BASE_URL.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from comparing import cells, compare, graph_of
from datasets import multi_hop, size
from harness import arguments, show
from quality_peers import titled

from nodekin.nodegraph import ROOT, EntityExtractor
from nodekin.retrievers import (
    FusionRetriever,
    LinkRetriever,
    MultiStepRetriever,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.evaluation import Dataset

METRICS = ("all_gold@5", "all_gold@10")
DEPTH = 10
Model = Callable[[str], str]
GARBAGE = (
    *("", "asdf qwer zxcv", "I'm sorry, but I can't help with that."),
    *('{"a": 1}', "抱歉", "```"),
)


class Gold(NamedTuple):
    """The gold steps of a question: what to ask, the passage, the answer."""

    question: str
    passage: str
    answer: str


def musique_steps(data: Path) -> dict[str, list[Gold]]:
    """Return the gold steps by question, the answers to earlier ones filled in."""
    path = data / "musique" / "musique_train.json"
    steps = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        passages = {p["idx"]: p["paragraph_text"] for p in row["paragraphs"]}
        answers: dict[str, str] = {}
        golds = []
        for number, step in enumerate(row["question_decomposition"], 1):
            question = step["question"]
            for mark, answer in answers.items():
                question = question.replace(mark, answer)
            answers[f"#{number}"] = step["answer"]
            passage = passages[step["paragraph_support_idx"]]
            golds.append(Gold(question, passage, step["answer"]))
        steps[row["question"]] = golds
    return steps


def asked_in(prompt: str, questions: Mapping[str, Any]) -> str:
    """Return the question that a prompt is about: of those that stand in it the longest."""
    return max((q for q in questions if f": {q}\n" in prompt), key=len)


def oracle(steps: Mapping[str, list[Gold]], *, reads: bool) -> Model:
    """Return the model that takes the gold steps."""

    def model(prompt: str) -> str:
        golds = steps[asked_in(prompt, steps)]
        done = sum(f". {gold.question} -> " in prompt for gold in golds)
        answer = golds[done - 1].answer if done else "unknown"
        if reads and done and golds[done - 1].passage.strip() not in prompt:
            return "Answer: unknown\nAnswered: no\nNext question: NONE"
        if done == len(golds):
            return f"Answer: {answer}\nAnswered: yes\nNext question: NONE"
        return f"Answer: {answer}\nAnswered: no\nNext question: {golds[done].question}"

    return model


def decomposing(data: Path) -> Model:
    """Return the model that takes a question apart before anything is answered."""
    path = data / "musique" / "musique_train.json"
    parts = {
        row["question"]: [
            re.sub(r"\s*#\d|>>", "", step["question"]).strip(" ?") + "?"
            for step in row["question_decomposition"]
        ]
        for row in json.loads(path.read_text(encoding="utf-8"))
    }

    def model(prompt: str) -> str:
        return json.dumps({"questions": parts[asked_in(prompt, parts)]})

    return model


def hotpotqa_reader(data: Path, dataset: Dataset) -> Model:
    """Return the model that knows which of the entities that it reads to follow."""
    path = data / "hotpotqa" / "hotpotqa_train.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    answers = {row["question"]: row["answer"] for row in rows}
    titles = {row["question"]: sorted({t for t, _ in row["supporting_facts"]}) for row in rows}
    passages = {document.id: document.text for document in dataset.documents}
    below_titles = titled(dataset)

    def model(prompt: str) -> str:
        question = asked_in(prompt, answers)
        texts = {title: passages[title].strip() for title in titles[question]}
        shown = [title for title, text in texts.items() if text in prompt]
        if len(shown) == len(titles[question]):
            return f"Answer: {answers[question]}\nAnswered: yes\nNext question: NONE"
        read = " ".join([question, *(below_titles[title] for title in shown)])
        for title in titles[question]:
            name = re.sub(r" \(.*\)$", "", title)
            if title not in shown and name in read and f"is {name}? -> " not in prompt:
                return f"Answer: unknown\nAnswered: no\nNext question: Who or what is {name}?"
        return "Answer: unknown\nAnswered: no\nNext question: NONE"

    return model


def real_model(name: str) -> Model:
    """Return a model behind OPENAI_BASE_URL."""
    from nodekin.adapters.openai_chat import OpenAIChat

    return OpenAIChat(name, max_tokens=200).complete


def strategies(models: Mapping[str, Model], plain: Any) -> Iterator[tuple[str, Any]]:
    """Yield each strategy around a retriever."""
    for name, model in models.items():
        if name in ("decompositions", "garbage", "model"):
            yield f"sub-questions, {name}", SubQuestionRetriever(plain, model)
        if name != "decompositions":
            yield f"multi-step, {name}", MultiStepRetriever(plain, model)


def setups(dataset: Dataset, models: Mapping[str, Model]) -> Iterator[tuple[str, Any]]:
    """Yield plain, links, and each strategy around either and fused with either."""
    graph = graph_of(dataset)
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    plain = Retriever(graph, ROOT, "bm25", top_k=DEPTH)
    links = LinkRetriever(plain, graph, via="entity", top_k=DEPTH)
    bases = {"bm25": plain, "bm25, following links": links}
    yield from bases.items()
    for base, inner in bases.items():
        for name, strategy in strategies(models, inner):
            yield f"{name} (around {base})", strategy
    for name, strategy in strategies(models, plain):
        for base, other in bases.items():
            yield f"{name}, fused with {base}", FusionRetriever([strategy, other], top_k=DEPTH)


def rows(dataset: Dataset, models: Mapping[str, Model]) -> Iterator[list[str]]:
    """Measure each set-up, with the calls of the model for a question."""
    for name, retriever in setups(dataset, models):
        evaluation = compare(dataset, {name: retriever}, METRICS)
        calls = evaluation.costs(name)["model_calls"] / len(dataset)
        yield [name, *cells(evaluation, name, 2), f"{calls:.1f}" if calls else ""]


def garbage() -> Model:
    """Return a model that says something else each time, and nothing that can be used."""
    said = itertools.cycle(GARBAGE)
    return lambda prompt: next(said)


def wandering() -> Model:
    """Return a model that follows whatever it reads, and answers with it."""
    chance = random.Random(2018)

    def model(prompt: str) -> str:
        found = prompt.partition("<passages>")[2].partition("</passages>")[0]
        names = re.findall(r"[A-Z]\w+(?: [A-Z]\w+)+", found) or ["Nobody"]
        asked, answer = chance.choice(names), chance.choice(names)
        return f"Answer: {answer}\nAnswered: no\nNext question: Who or what is {asked}?"

    return model


def main() -> None:
    """Run each set that is there."""
    logging.getLogger("nodekin").setLevel(logging.ERROR)  # garbage is said to be that each time
    parser = arguments(__doc__)
    parser.add_argument("--model", help="a model behind OPENAI_BASE_URL, for rows of its own")
    parser.add_argument("--questions", type=int, help="only so many questions of each set")
    options = parser.parse_args()
    real = {} if options.model is None else {"model": real_model(options.model)}
    for whole in multi_hop(options.data):
        some = whole.questions[: options.questions]
        dataset = Dataset(some, whole.documents, whole.name)
        models: dict[str, Model] = {"garbage": garbage(), "wandering": wandering(), **real}
        if dataset.name == "MuSiQue":
            steps = musique_steps(options.data)
            models["decompositions"] = decomposing(options.data)
            models["oracle"] = oracle(steps, reads=False)
            models["reading oracle"] = oracle(steps, reads=True)
        else:
            models["reading oracle"] = hotpotqa_reader(options.data, dataset)
        header = ["system", *METRICS, "calls a question"]
        show(size(dataset), header, rows(dataset, models))


if __name__ == "__main__":
    main()
