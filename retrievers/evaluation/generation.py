"""Let a model write questions about one's own documents, and keep those that pass checks."""

from __future__ import annotations

import logging
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from ...nodegraph.concurrency import run_in_threads
from ...nodegraph.document import Document
from ...nodegraph.errors import ModelError, check_integer, nearest_names
from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.answer_cache import CachedLLM
from ...nodegraph.models.llm import as_llm
from ...nodegraph.node import Node
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.tokens import count_tokens
from ...nodegraph.store import NodeStore
from ..retriever import Retriever
from .dataset import Dataset, Question
from .question_checks import same_question
from .question_writer import MODEL_FAILED, QuestionKind, QuestionWriter, RejectedQuestion

_logger = logging.getLogger("nodekin")

SHARES: Mapping[QuestionKind, float] = MappingProxyType(
    {"single": 3, "linked": 1, "unanswerable": 1}
)
"""How the kinds are shared out unless told otherwise."""

TRIES = 4
"""How many passages are tried for a question, at most."""

_LEAST_TOKENS = 20
"""Passages with fewer have nothing to ask for."""

_PROBED = 5
"""Passages of the corpus from which an unanswerable question must not be answered."""

_GIVE_UP = 5
"""So many failures at the beginning, and nothing else, are a model that is not there."""


class NoQuestionsError(ValueError):
    """No question passed the checks. The message counts the reasons."""


@dataclass(frozen=True, slots=True)
class GeneratedQuestions:
    """Hold the questions that a model wrote.

    Attributes:
        dataset: The questions that passed all checks. The kind is in their ids.
        rejected: Those that did not.
        requested: How many of each kind were requested.
        model_calls: How many answers of the model it took, kept ones too.
        tokens: Of their prompts and answers, by ``count_tokens``.
    """

    dataset: Dataset
    rejected: tuple[RejectedQuestion, ...]
    requested: Mapping[QuestionKind, int]
    model_calls: int
    tokens: int

    @property
    def counts(self) -> dict[QuestionKind, int]:
        """How many questions there are of each kind."""
        kinds = Counter(question.id.partition("-")[0] for question in self.dataset.questions)
        return {kind: kinds[kind] for kind in self.requested}

    @property
    def reasons(self) -> dict[str, int]:
        """How many questions were rejected, by the reason, most first."""
        return dict(Counter(entry.reason for entry in self.rejected).most_common())

    def __str__(self) -> str:
        counts = self.counts
        kinds = ", ".join(
            f"{counts[kind]} of {n} {kind}" for kind, n in self.requested.items() if n
        )
        reasons = "; ".join(f"{n} {reason}" for reason, n in self.reasons.items())
        index = len(self.dataset)
        return (
            f"{index} question{'s' * (index != 1)}: {kinds}; {len(self.rejected)} rejected"
            + (f": {reasons}" if reasons else "")
            + f"; {self.model_calls} model calls, {self.tokens} tokens"
        )


def generate_questions(
    graph: NodeGraph,
    llm: object,
    count: int = 40,
    *,
    group: str | None = None,
    shares: Mapping[QuestionKind, float] = SHARES,
    max_overlap: float = 0.6,
    seed: int = 0,
    store: str | Path | NodeStore | None = None,
    max_workers: int = 1,
    progress: bool | None = None,
) -> GeneratedQuestions:
    """Let a model write questions about passages of a graph, and take those that pass checks.

    A question is taken if it does not speak of "the passage", copies no long run of words from it,
    and its answer is in the passage. The model, given the passage and not the answer, must give
    the same answer. One about two passages that share a name must not be answered from either
    alone. One that can't be answered must not be answered from the five passages that are nearest
    to it. Gold is the place of the answer in its document, of two passages also the other passage.

    Passages are drawn from as many documents as there are, by a seed: the same graph, model and
    seed give the same questions.

    Args:
        graph: The documents.
        llm: The model: a function, a model of LangChain or LlamaIndex, ``OpenAIChat``, an ``LLM``.
        count: How many questions.
        group: The passages. None to cut documents to some 250 tokens (``PassageSplitter``).
        shares: How the kinds are shared out, as weights.
        max_overlap: The greatest share of a question that may be copied in one run, names
            included. See ``copied_share``.
        seed: Draws the passages.
        store: Where the model's answers are kept, so that what was interrupted goes on for
            nothing: the path of a file, or a store. None for memory.
        max_workers: How many passages are tried at once.
        progress: True draws a bar in any case, False never, None where a person can see it.

    Raises:
        TypeError: If the model or a number has the wrong type.
        NoQuestionsError: If no question passes, or no two passages are linked.
        ValueError: If a number is out of range, a kind is unknown, or there are no passages.
        ModelError: If the model fails on all of the first passages.

    Example:
        >>> graph = NodeGraph(progress=False)
        >>> alps = "The Rhine rises in the Alps of Switzerland, and runs north to Holland. "
        >>> ids = graph.add([Document(alps + "It passes Cologne and Bonn.", id="rhine")])
        >>> def model(prompt):
        ...     if prompt.startswith("Answer"):
        ...         return "Cologne and Bonn"
        ...     return "Question: Which German cities lie on the Rhine?\\nAnswer: Cologne and Bonn"
        >>> generated = generate_questions(graph, model, 1, shares={"single": 1}, progress=False)
        >>> generated.dataset.questions[0].gold
        (GoldSpan(document_id='rhine', start=81, end=97, text='Cologne and Bonn', grade=1.0),)
    """
    check_integer(count, "count", 1)
    check_integer(max_workers, "max_workers", 1)
    if isinstance(max_overlap, bool) or not 0 < max_overlap <= 1:
        raise ValueError(f"max_overlap is a number above 0 and up to 1, not {max_overlap!r}")
    requested = _requested(count, shares)
    with ExitStack() as stack:
        cached = CachedLLM(as_llm(llm), store)
        stack.callback(cached.close)
        if group is None:
            passages = stack.enter_context(NodeGraph(progress=False))
            passages.add([_copy(node) for node in graph.nodes("ROOT")])
            passages.create_node_group("passage", PassageSplitter())
            searched, group = passages, "passage"
        else:
            searched = graph
        nodes = [node for node in searched.nodes(group) if _is_full(node)]
        if not nodes:
            raise ValueError(
                f"no passage of the group {group!r} has {_LEAST_TOKENS} tokens or more; add "
                "documents, or name a group with longer texts"
            )
        writer = QuestionWriter(
            as_llm(cached), Retriever(searched, group, top_k=_PROBED), max_overlap
        )
        drawn = PassageDrawing(nodes, seed)
        return _generated(writer, drawn, requested, max_workers, progress)


def _generated(
    writer: QuestionWriter,
    drawing: PassageDrawing,
    requested: Mapping[QuestionKind, int],
    max_workers: int,
    progress: bool | None,
) -> GeneratedQuestions:
    from tqdm import tqdm

    questions: list[Question] = []
    rejected: list[RejectedQuestion] = []
    calls = tokens = 0
    hidden = None if progress is None else not progress
    bar = tqdm(None, "generate", sum(requested.values()), unit="question", disable=hidden)
    with bar:
        for kind, index in requested.items():
            tries = [partial(writer.attempt, kind, *entry) for entry in drawing.of(kind)]
            tries = tries[: TRIES * index]
            accepted = 0
            for start in range(0, len(tries), max_workers):
                if accepted == index:
                    break
                for outcome in run_in_threads(tries[start : start + max_workers], max_workers):
                    if accepted == index:
                        break  # tried beside one that was taken
                    calls += outcome.calls
                    tokens += outcome.tokens
                    result = outcome.result
                    if isinstance(result, Question) and _is_duplicate(result, questions):
                        ids = outcome.node_ids
                        result = RejectedQuestion(kind, result.text, "asked before", "", ids)
                    if isinstance(result, RejectedQuestion):
                        rejected.append(result)
                        _give_up(questions, rejected, outcome.error)
                        continue
                    accepted += 1
                    questions.append(replace(result, id=f"{kind}-{accepted:03d}"))
                    bar.update()
    if not questions:
        if not rejected:
            raise NoQuestionsError(
                "no two passages share a name, so that nothing can be asked about two; add "
                "documents, or ask for questions of another kind"
            )
        reasons = Counter(entry.reason for entry in rejected).most_common()
        tried = "; ".join(f"{n} {reason}" for reason, n in reasons)
        raise NoQuestionsError(f"no question passed the checks: {tried}; try a stronger model")
    generated = GeneratedQuestions(
        Dataset(questions, name="generated"), tuple(rejected), requested, calls, tokens
    )
    if len(questions) < sum(requested.values()):
        _logger.warning("fewer questions than requested passed the checks: %s", generated)
    return generated


def _requested(count: int, shares: Mapping[QuestionKind, float]) -> dict[QuestionKind, int]:
    """Return how many questions of each kind, by largest remainders."""
    kinds = get_args(QuestionKind)
    for kind, share in shares.items():
        if kind not in kinds:
            raise ValueError(
                f"there are no {kind!r} questions; there are {nearest_names(str(kind), kinds)}"
            )
        if isinstance(share, bool) or not share >= 0:
            raise ValueError(f"the share of {kind} questions is 0 or more, not {share!r}")
    total = sum(shares.values())
    if not total:
        raise ValueError('every share is 0; give one, as in {"single": 1}')
    exact = {kind: count * share / total for kind, share in shares.items()}
    requested = {kind: int(index) for kind, index in exact.items()}
    remainder = sorted(exact, key=lambda kind: requested[kind] - exact[kind])
    for kind in remainder[: count - sum(requested.values())]:
        requested[kind] += 1
    return requested


def _is_duplicate(question: Question, questions: Sequence[Question]) -> bool:
    return any(same_question(question, other) for other in questions)


def _give_up(
    questions: Sequence[Question], rejected: Sequence[RejectedQuestion], error: ModelError | None
) -> None:
    failed = all(entry.reason == MODEL_FAILED for entry in rejected)
    if error is not None and failed and not questions and len(rejected) == _GIVE_UP:
        raise error


def _is_full(node: Node) -> bool:
    return count_tokens(node.text) >= _LEAST_TOKENS and re.search(r"\w", node.text) is not None


def _copy(node: Node) -> Document:
    return Document(node.text, dict(node.metadata), id=node.id)


class PassageDrawing:
    """Draw passages from as many documents as there are.

    Args:
        nodes: The passages, in the order of the graph.
        seed: Draws the order.
    """

    def __init__(self, nodes: Sequence[Node], seed: int) -> None:
        self.nodes = nodes
        self.seed = seed

    def of(self, kind: QuestionKind) -> Iterator[tuple[Sequence[Node], str]]:
        """Yield passages to ask about, with the name that links two."""
        chance = random.Random(f"{self.seed} {kind}")
        if kind != "linked":
            for node in self._spread(chance):
                yield [node], ""
            return
        related = EntityExtractor(max_passages=5)(self.nodes)
        entities = [entity for entity in related if len(_apart(entity.to)) == 2]
        chance.shuffle(entities)
        used: set[str] = set()
        for entity in entities:
            pair = _apart(entity.to)
            if not used & {node.id for node in pair}:
                used |= {node.id for node in pair}
                yield pair, entity.item.text

    def _spread(self, chance: random.Random) -> Iterator[Node]:
        """Yield one passage of every document, then a second one, and so on."""
        by_document: dict[str, list[Node]] = {}
        for node in self.nodes:
            by_document.setdefault(node.document_id or node.id, []).append(node)
        rows = [*by_document.values()]
        chance.shuffle(rows)
        for row in rows:
            chance.shuffle(row)
        for turn in range(max(map(len, rows))):
            yield from (row[turn] for row in rows if turn < len(row))


def _apart(nodes: Sequence[Node]) -> list[Node]:
    """Return the first two passages, of different documents where there are some."""
    first = nodes[0]
    others = [node for node in nodes[1:] if node.document_id != first.document_id]
    return [first, *(others or nodes[1:])[:1]]
