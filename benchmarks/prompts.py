"""Compare two versions of the built-in prompts, using a language model behind OPENAI_BASE_URL.

``--write FILE`` saves the current prompts, without calling a model. After the prompts were changed,
``--before FILE`` sends the saved and the current prompts of each role to the model, with the same
questions, and parses the replies of both with the current parsers. Unusable replies are not
repeated. The replies are cached in ``--cache``, so that the next run continues where the last run
ended.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import arguments, cmrc, every, graph_of, musique, show, with_cache
from model_strategies import QUESTIONS, CountedModel, nodekin_search, served
from prompt_cases import (
    FILTERS,
    Case,
    cases_of,
    chains,
    conditions,
    musique_facts,
    records,
    routed,
    title_chains,
)

from nodekin.nodegraph import ROOT, ModelError, NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    QueryEngine,
    Retriever,
    SelfQueryRetriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.evaluation import Dataset
from nodekin.retrievers.prompts.answer_prompts import AnswerMode
from nodekin.retrievers.strategies.query_decomposition import QueryDecomposition
from nodekin.retrievers.strategies.router import QueryRouter
from nodekin.retrievers.strategies.strategy_registry import make_strategy

TOP_K = 5
PASSAGES = 2  # in a prompt for an answer
BLOCK = 10  # The first version gets so many questions in a row, since servers cache prefixes.
STRATEGIES = ("rewrite", "multi_query", "sub_question", "hyde")
ANSWERS: Mapping[str, AnswerMode] = {
    "answer": "stuff",
    "refine": "refine",
    "reduce": "map_reduce",
    "rank": "map_rerank",
}
Model = Callable[[str], str]
NOTE = (
    "Prompts at 2930af77 / today, with Qwen2.5-Coder-1.5B-Instruct in 4 bit, the same questions "
    "and parsers, and no second call. Readable: replies that could be used. Right: recall@5, the "
    "right route or tools, the name in the condensed question, an answer that contains the gold "
    "answer, results that meet the conditions. Difference of right with the 95 % interval of a "
    "paired bootstrap. Prompts that were repaired were chosen with these questions."
)


class Outcome(NamedTuple):
    """Whether the replies to a question were usable, and how right the result is, from 0 to 1."""

    is_readable: bool
    score: float
    cites: bool = False


class Role(NamedTuple):
    """A use of prompts on one data set.

    Attributes:
        name: The name of the role.
        dataset: The name of the data set.
        holder: The object with the prompts.
        ask: A function that asks one question with such an object.
        cases: The questions.
    """

    name: str
    dataset: str
    holder: Any
    ask: Callable[[Any, Case], Outcome]
    cases: Sequence[Case]


# Asking


def search(strategy: Any, case: Case) -> Outcome:
    """Search with a strategy, and measure recall@5."""
    found = nodekin_search(strategy)(case.question)
    recall = len(case.gold & {*found.ids[:TOP_K]}) / len(case.gold)
    return Outcome(not found.is_degraded, recall)


def filtered(strategy: Any, case: Case) -> Outcome:
    """Search with filters from the question, and measure the share of correct results."""
    found = nodekin_search(strategy)(case.question)
    share = len(case.gold & {*found.ids}) / max(1, len(found.ids))
    return Outcome(not found.is_degraded, share)


def choose(router: QueryRouter, case: Case) -> Outcome:
    """Choose one of the routes of a case."""
    chooser = QueryRouter(
        router.llm, case.routes, retries=0, prompt=router.prompts["route"], on_error="raise"
    )
    return _share_of_tools(chooser, case)


def split(decomposition: QueryDecomposition, case: Case) -> Outcome:
    """Split a question into questions for the tools of a case."""
    return _share_of_tools(decomposition.with_tools(case.routes), case)


def _share_of_tools(transform: Any, case: Case) -> Outcome:
    try:
        chosen = transform(case.question)
    except ModelError:
        return Outcome(False, 0.0)
    tools = {text.partition(": ")[0] for text in chosen}
    return Outcome(True, len(tools & case.gold) / len(case.gold))


def answered(engine: QueryEngine, case: Case) -> Outcome:
    """Answer a question, and look for a correct answer in the text."""
    try:
        answer = engine.query(case.question)
    except ModelError:
        return Outcome(False, 0.0)
    is_right = any(gold.casefold() in answer.text.casefold() for gold in case.answers)
    is_readable = not any("failed" in note for note in answer.notes)
    return Outcome(is_readable, float(is_right), bool(answer.cited))


def condensed(engine: QueryEngine, case: Case) -> Outcome:
    """Condense a question, and look for the name that it refers to."""
    answer = engine.query(case.question, history=case.history)
    is_right = any(name.casefold() in answer.searched.casefold() for name in case.answers)
    return Outcome(not any("failed" in note for note in answer.notes), float(is_right))


class FixedParts:
    """A model that is given the sub-questions, and passes all other prompts to another model.

    Args:
        model: The other model.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.parts: Sequence[str] = ()

    def __call__(self, prompt: str) -> str:
        """Return the sub-questions, or the reply of the other model."""
        if self.parts:
            reply = "\n".join(self.parts)
            self.parts = ()
            return reply
        return self._model(prompt)


def partly_answered(model: FixedParts, retriever: SubQuestionRetriever, case: Case) -> Outcome:
    """Answer the only sub-question, and look for a correct answer in the text."""
    model.parts = [case.question]
    found = retriever.grouped(f"Answer briefly: {case.question}", top_k=PASSAGES)
    text = (found[-1].answer or "").casefold()
    is_right = any(gold.casefold() in text for gold in case.answers)
    return Outcome(found[-1].error is None, float(is_right))


# Roles


class Corpora(NamedTuple):
    """The data sets by name, with their retrievers and questions.

    Attributes:
        datasets: The data sets.
        retrievers: The default retriever of each data set.
        questions: The questions of each data set.
        facts: Questions of each data set that need one passage.
        follow_ups: Follow-up questions with their conversations.
    """

    datasets: Mapping[str, Dataset]
    retrievers: Mapping[str, DefaultRetriever]
    questions: Mapping[str, Sequence[Case]]
    facts: Mapping[str, Sequence[Case]]
    follow_ups: Mapping[str, Sequence[Case]]


def corpora(data: Path, count: int) -> Corpora:
    """Read the data sets, with at most ``count`` questions of each kind."""
    datasets = {"MuSiQue": musique(data), "CMRC 2018": every(cmrc(data), QUESTIONS)}
    retrievers = {}
    questions = {}
    for name, dataset in datasets.items():
        retrievers[name] = DefaultRetriever(graph_of(dataset), ROOT, top_k=TOP_K)
        questions[name] = cases_of(dataset, count)
    facts = {**questions, "MuSiQue": musique_facts(data, datasets["MuSiQue"], count)}
    follow_ups = {"MuSiQue": chains(data, count), "CMRC 2018": title_chains(data, count)}
    return Corpora(datasets, retrievers, questions, facts, follow_ups)


def strategy_roles(found: Corpora, model: Model, names: Sequence[str]) -> Iterator[Role]:
    """Yield the roles of search strategies."""
    for strategy in names:
        for name, inner in found.retrievers.items():
            retriever = make_strategy(strategy, inner, model, retries=0)
            yield Role(strategy, name, retriever, search, found.questions[name])


def choice_roles(found: Corpora, model: Model, count: int) -> Iterator[Role]:
    """Yield the roles that choose routes, tools and filters, or condense a conversation."""
    router = QueryRouter(model, {"-": ""})
    tools = QueryDecomposition(model, tools={"-": ""}, retries=0, on_error="raise")
    empty = QueryEngine(Retriever(NodeGraph(), ROOT), model)
    catalog = NodeGraph(progress=False)
    catalog.add(records())
    filters = SelfQueryRetriever(Retriever(catalog, ROOT), model, retries=0, top_k=TOP_K)
    for name, dataset in found.datasets.items():
        yield Role("route", name, router, choose, routed(dataset, found.facts[name]))
        yield Role("condense", name, empty, condensed, found.follow_ups[name])
        yield Role("tools", name, tools, split, routed(dataset, found.questions[name]))
    for language in FILTERS:
        yield Role("self_query", language, filters, filtered, conditions(language, count))


def part_roles(found: Corpora, model: Model) -> Iterator[Role]:
    """Yield the roles that answer one sub-question, which is given."""
    fixed = FixedParts(model)
    for name, inner in found.retrievers.items():
        retriever = SubQuestionRetriever(
            inner, fixed, answers=True, include_query=False, retries=0, top_k=PASSAGES
        )
        ask = partial(partly_answered, fixed)
        yield Role("partial answer", name, retriever, ask, found.facts[name])


def answer_roles(found: Corpora, model: Model) -> Iterator[Role]:
    """Yield the roles that answer questions in each mode."""
    for role, mode in ANSWERS.items():
        # A small window leaves one passage for each call, so that answers are improved.
        window = 1000 if mode == "refine" else None
        for name, inner in found.retrievers.items():
            engine = QueryEngine(inner, model, mode, top_k=PASSAGES, context_window=window)
            yield Role(role, name, engine, answered, found.facts[name])


def roles(data: Path, model: Model, count: int) -> Iterator[Role]:
    """Yield the roles on both data sets. Roles with short prompts are first."""
    found = corpora(data, count)
    yield from strategy_roles(found, model, STRATEGIES)
    yield from choice_roles(found, model, count)
    yield from part_roles(found, model)
    yield from answer_roles(found, model)
    yield from strategy_roles(found, model, ["multi_step"])


# Measuring


def interval(differences: Sequence[float]) -> str:
    """Format the mean of paired differences with its 95 % bootstrap interval."""
    values = np.asarray(differences)
    drawn = np.random.default_rng(2018).integers(0, len(values), (10_000, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), (2.5, 97.5))
    return f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


class Figures(NamedTuple):
    """The measurements of one version of the prompts."""

    readable: int
    right: float
    cites: int


def figures_of(outcomes: Sequence[Outcome]) -> Figures:
    """Sum up the outcomes of one version of the prompts."""
    readable = sum(outcome.is_readable for outcome in outcomes)
    right = sum(outcome.score for outcome in outcomes) / len(outcomes)
    return Figures(readable, right, sum(outcome.cites for outcome in outcomes))


def row(role: Role, before: Sequence[Outcome], after: Sequence[Outcome]) -> list[str]:
    """Format the outcomes of a role with both versions of its prompts."""
    first = figures_of(before)
    second = figures_of(after)
    differences = [new.score - old.score for old, new in zip(before, after, strict=True)]
    cites = f"{first.cites} / {second.cites}" if role.ask is answered else ""
    return [
        role.name,
        role.dataset,
        str(len(after)),
        f"{first.readable} / {second.readable}",
        f"{first.right:.3f} / {second.right:.3f}",
        interval(differences),
        cites,
    ]


def rows(
    found: Iterator[Role], saved: Mapping[str, Mapping[str, Any]], seconds: float | None
) -> Iterator[list[str]]:
    """Ask all questions with both versions, and yield the row of each role.

    No further block of questions is started after the time limit.
    """
    end = None if seconds is None else time.monotonic() + seconds
    for role in found:
        if role.name not in saved:
            raise SystemExit(f"the file of --before has no prompts of the role {role.name!r}")
        old = saved[role.name]
        changed = {name: old[name] for name in role.holder.prompts if name in old}
        earlier = role.holder.with_prompts(changed)
        before: list[Outcome] = []
        after: list[Outcome] = []
        for start in range(0, len(role.cases), BLOCK):
            if end is not None and time.monotonic() > end:
                break
            block = role.cases[start : start + BLOCK]
            before += [role.ask(earlier, case) for case in block]
            after += [role.ask(role.holder, case) for case in block]
        if after:
            yield row(role, before, after)


def current(found: Iterator[Role]) -> dict[str, dict[str, Any]]:
    """Return the current prompts of each role, by name and language."""
    return {
        role.name: {name: {"zh": one.zh, "en": one.en} for name, one in role.holder.prompts.items()}
        for role in found
    }


def main() -> None:
    """Run the benchmark, or save the current prompts."""
    logging.getLogger("nodekin").setLevel(logging.CRITICAL)
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--model", default="local", help="a model behind OPENAI_BASE_URL")
    parser.add_argument("--questions", type=int, default=30, help="of each role and set")
    parser.add_argument("--seconds", type=float, help="time limit of the whole run")
    parser.add_argument("--only", action="append", help="only this role; may be repeated")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--before", type=Path, help="JSON file with the prompts before the change")
    what.add_argument("--write", type=Path, help="save the current prompts to this JSON file")
    options = parser.parse_args()
    if options.write:
        text = json.dumps(current(roles(options.data, str.strip, 1)), ensure_ascii=False, indent=1)
        options.write.write_text(text + "\n", encoding="utf-8")
        return
    model = CountedModel(served(options.model), options.cache, options.model)
    found = roles(options.data, model, options.questions)
    if options.only:
        found = (role for role in found if role.name in options.only)
    saved = json.loads(options.before.read_text(encoding="utf-8"))
    columns = ["role", "set", "questions", "readable", "right", "difference of right", "cites"]
    show("Prompts", columns, rows(found, saved, options.seconds), NOTE)


if __name__ == "__main__":
    main()
