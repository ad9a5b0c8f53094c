"""Let a model write questions about one's own documents, and keep those that pass checks."""

from __future__ import annotations

import logging
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from ...nodegraph.concurrency import run_in_threads
from ...nodegraph.document import Document
from ...nodegraph.errors import ModelError, check_integer, nearest_names
from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.answer_cache import CachedLLM
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.output.extractions import PARSERS
from ...nodegraph.models.output.free_text import parse_partial_answer
from ...nodegraph.models.output.lines import normalize
from ...nodegraph.models.templates import json_instruction, language_of, schema_of
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import UNSPACED, count_tokens
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from ...nodegraph.store import NodeStore
from ..plans.plan import run
from ..plans.prompting import ask_and_parse, passage_title
from ..retriever import Retriever
from ..tracing import trace
from .dataset import Dataset, Gold, GoldPassage, GoldSpan, Question
from .judges import model_cost
from .matching import has_words
from .model_prompts import QUESTION, QUESTION_AND_ANSWER, WRITER_PROMPTS

_logger = logging.getLogger("nodekin")

QuestionKind = Literal["single", "linked", "unanswerable"]
"""By one passage, by two that are linked, or by none."""


MODEL_FAILED = "the model failed, or what it wrote can't be read"
"""A reason of ``RejectedQuestion``."""


@dataclass(frozen=True, slots=True)
class RejectedQuestion:
    """Hold a question that was not taken.

    Attributes:
        kind: What it was to be.
        question: What the model wrote. Empty where that can't be read.
        reason: Why it was not taken: one of few, to be counted.
        detail: The same of this question.
        node_ids: Of the passages.
    """

    kind: QuestionKind
    question: str
    reason: str
    detail: str
    node_ids: tuple[str, ...]


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
            roots = graph.nodes("ROOT")
            passages.add([Document(n.text, dict(n.metadata), id=n.id) for n in roots])
            passages.create_node_group("passage", PassageSplitter())
            searched, group = passages, "passage"
        else:
            searched = graph
        nodes = [
            node
            for node in searched.nodes(group)
            if count_tokens(node.text) >= _LEAST_TOKENS and re.search(r"\w", node.text)
        ]
        if not nodes:
            raise ValueError(
                f"no passage of the group {group!r} has {_LEAST_TOKENS} tokens or more; add "
                "documents, or name a group with longer texts"
            )
        writer = QuestionWriter(
            as_llm(cached), Retriever(searched, group, top_k=_PROBED), max_overlap
        )
        return _generated(writer, nodes, seed, requested, max_workers, progress)


def _generated(
    writer: QuestionWriter,
    nodes: Sequence[Node],
    seed: int,
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
            drawn = islice(_drawn(nodes, kind, seed), TRIES * index)
            tries = [partial(writer.attempt, kind, *entry) for entry in drawn]
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
                    if isinstance(result, Question) and any(
                        same_question(result, other) for other in questions
                    ):
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


def _give_up(
    questions: Sequence[Question], rejected: Sequence[RejectedQuestion], error: ModelError | None
) -> None:
    failed = all(entry.reason == MODEL_FAILED for entry in rejected)
    if error is not None and failed and not questions and len(rejected) == _GIVE_UP:
        raise error


def _drawn(
    nodes: Sequence[Node], kind: QuestionKind, seed: int
) -> Iterator[tuple[Sequence[Node], str]]:
    """Yield passages to ask about, with the name that links two.

    One passage of every document comes first, then a second one of each, and so on.
    """
    chance = random.Random(f"{seed} {kind}")
    if kind == "linked":
        related = EntityExtractor(max_passages=5)(nodes)
        entities = [entity for entity in related if len(_apart(entity.to)) == 2]
        chance.shuffle(entities)
        used: set[str] = set()
        for entity in entities:
            pair = _apart(entity.to)
            if not used & {node.id for node in pair}:
                used |= {node.id for node in pair}
                yield pair, entity.item.text
        return
    by_document: dict[str, list[Node]] = {}
    for node in nodes:
        by_document.setdefault(node.document_id or node.id, []).append(node)
    rows = [*by_document.values()]
    chance.shuffle(rows)
    for row in rows:
        chance.shuffle(row)
    for turn in zip_longest(*rows):
        yield from (([node], "") for node in turn if node is not None)


def _apart(nodes: Sequence[Node]) -> list[Node]:
    """Return the first two passages, of different documents where there are some."""
    first = nodes[0]
    others = [node for node in nodes[1:] if node.document_id != first.document_id]
    return [first, *(others or nodes[1:])[:1]]


class WrittenQuestion(NamedTuple):
    """What came of a passage."""

    result: Question | RejectedQuestion
    node_ids: tuple[str, ...]
    calls: int
    tokens: int
    error: ModelError | None


class _RejectedError(Exception):
    """A question is not taken. The message says why."""

    def __init__(self, question: str, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.question = question
        self.reason = reason
        self.detail = detail


class QuestionWriter:
    """Write a question about passages, and check it.

    Args:
        llm: The model.
        retriever: Finds the passages that an unanswerable question must not be answered from.
        max_overlap: How much of a question may be copied.
    """

    def __init__(self, llm: LLM, retriever: Retriever, max_overlap: float) -> None:
        self.llm = llm
        self.retriever = retriever
        self.max_overlap = max_overlap

    def attempt(self, kind: QuestionKind, nodes: Sequence[Node], link: str) -> WrittenQuestion:
        """Return the question about some passages, or why there is none."""
        ids = tuple(node.id for node in nodes)
        result: Question | RejectedQuestion
        failure: ModelError | None = None
        with trace() as span:
            try:
                if kind == "unanswerable":
                    result = self._unanswerable(nodes[0])
                else:
                    result = self._answered(kind, nodes, link)
            except _RejectedError as error:
                result = RejectedQuestion(kind, error.question, error.reason, error.detail, ids)
            except ModelError as error:
                failure = error
                result = RejectedQuestion(kind, "", MODEL_FAILED, str(error), ids)
        return WrittenQuestion(result, ids, *model_cost(span), failure)

    def _answered(self, kind: QuestionKind, nodes: Sequence[Node], link: str) -> Question:
        texts = [_titled(node) for node in nodes]
        values = {"passage": texts[0]} | ({"other": texts[1], "link": link} if link else {})
        question, answer = self._written(kind, values, QUESTION_AND_ANSWER, "qa")
        self._check_words(question, nodes)
        if link and normalize(link) in normalize(question):
            raise _RejectedError(question, "names what links the passages", link)
        if gives_away(question, answer):
            raise _RejectedError(question, "has its answer in it", answer)
        positions = [answer_position(answer, node.text, question) for node in nodes]
        if not any(positions):
            raise _RejectedError(question, "the answer is not in the passage", answer)
        if link:
            for text in texts:
                reply = self._answer(question, [text])
                if reply is not None and agree(reply, answer):
                    raise _RejectedError(question, "one passage is enough", reply)
        reply = self._answer(question, texts)
        if reply is None or not agree(reply, answer):
            detail = f"{answer!r} in the passage, {reply!r} when asked"
            raise _RejectedError(question, "is answered otherwise from the passage", detail)
        holder = next(index for index, position in enumerate(positions) if position is not None)
        gold = [
            gold_at(node, positions[index] if index == holder else None)
            for index, node in enumerate(nodes)
        ]
        return Question("", question, tuple(gold), (answer.strip(),))

    def _unanswerable(self, node: Node) -> Question:
        text = _titled(node)
        question = self._written("unanswerable", {"passage": text}, QUESTION, "questions")
        self._check_words(question, [])
        nearest = [_titled(result.node) for result in self.retriever.retrieve(question)]
        reply = self._answer(question, list(dict.fromkeys([text, *nearest])))
        if reply is not None:
            raise _RejectedError(question, "can be answered", reply)
        return Question("", question, answerable=False)

    def _check_words(self, question: str, nodes: Sequence[Node]) -> None:
        if names_passage(question):
            raise _RejectedError(question, "speaks of the passage")
        for node in nodes:
            copied = copied_share(question, node.text)
            if copied > self.max_overlap:
                raise _RejectedError(question, "copies the passage's words", f"{copied:.0%} of it")

    def _written(
        self, kind: QuestionKind, values: Mapping[str, str], form: str, reader: str
    ) -> Any:
        """Return a question, with its answer where that is asked for."""
        language = language_of(values["passage"])
        prompt = WRITER_PROMPTS[kind].fill(language, **values) + json_instruction(form, language)

        def parse(answer: str) -> Any:
            if not (values := PARSERS[reader](answer)):
                raise ValueError("there is no question in the answer")
            return values[0]

        return run(ask_and_parse(self.llm, prompt, parse, language, schema=schema_of(form)))

    def _answer(self, question: str, texts: Sequence[str]) -> str | None:
        """Return what the model answers from passages alone, None where they don't say."""
        passages = "\n\n".join(f"[{index}] {text}" for index, text in enumerate(texts, 1))
        language = language_of(question)
        prompt = WRITER_PROMPTS["answer"].fill(language, passages=passages, query=question)
        return run(ask_and_parse(self.llm, prompt, parse_partial_answer, language))


def _titled(node: Node) -> str:
    title = passage_title(node)
    return f"{title}\n{node.text.strip()}" if title else node.text.strip()


_UNIT = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")

_OF_THE_PASSAGE = re.compile(
    r"""\b(?:this|these|the|above|given|following|provided|first|second|both)\s+
    (?:two\s+)?(?:passage|text|article|paragraph|document|excerpt|context|author|
    (?:code\s+)?snippet)s?\b
    |\b(?:above|given|following|provided)\s+code\b
    |[本该上此这](?:文|段|篇|短文|材料|资料|文本)|文中|段落|(?:上述|以上|下列|以下)(?:文|内容|材料)""",
    re.I | re.X,
)

_PUNCTUATION = re.compile(r"[\W_]+")


def copied_share(question: str, passage: str) -> float:
    """Return how much of a question is its longest run of words that stands in a passage.

    Words, and characters of scripts without spaces, are counted. Case does not count. Of 100 to
    300 questions that people wrote, on CMRC 2018, HotpotQA and the German XQuAD, the median is
    0.42, 0.26 and 0.25, and nine of ten are below 0.68, 0.47 and 0.46.

    Example:
        >>> copied_share("Which tea is not fermented?", "Green tea is not fermented.")
        0.8
    """
    expected, text = _units(question), _units(passage)
    best, row = 0, [0] * (len(text) + 1)
    for unit in expected:
        after = [0] * (len(text) + 1)
        for position, other in enumerate(text, 1):
            if unit == other:
                after[position] = row[position - 1] + 1
                best = max(best, after[position])
        row = after
    return best / len(expected) if expected else 0.0


def names_passage(question: str) -> bool:
    """Return whether a question speaks of the passage, so that it isn't understood by itself.

    Example:
        >>> names_passage("What does the passage say of tea?"), names_passage("What is tea?")
        (True, False)
    """
    return _OF_THE_PASSAGE.search(question) is not None


def agree(answer: str, other: str) -> bool:
    """Return whether two short answers say the same: one has the other in it, or half its words.

    Half by the F1 of words (SQuAD's: Rajpurkar et al., 2016).

    Example:
        >>> agree("in 1828", "1828."), agree("in Skien", "in Oslo in 1828")
        (True, False)
    """
    item, two = _plain(answer), _plain(other)
    if not item or not two:
        return False
    return has_words(item, two) or has_words(two, item) or _overlap(answer, other) >= 0.5


def same_question(item: Question, other: Question) -> bool:
    """Return whether two questions are one: equal words, or nine of ten and the same answer.

    Example:
        >>> one = Question("1", "Which tea is from Hangzhou?", answers=("Longjing",))
        >>> same_question(one, Question("2", "which tea is from Hangzhou")), same_question(
        ...     one, Question("3", "Which tea is from Fujian?", answers=("Wuyi",))
        ... )
        (True, False)
    """
    if _plain(item.text) == _plain(other.text):
        return True
    answers = [{_plain(answer) for answer in question.answers} for question in (item, other)]
    return bool(answers[0] & answers[1]) and _overlap(item.text, other.text) >= 0.9


def _overlap(item: str, other: str) -> float:
    """Return the F1 of two texts' words."""
    words, others = _units(item), _units(other)
    common = sum(min(words.count(word), others.count(word)) for word in set(words))
    return 2 * common / (len(words) + len(others) or 1)


def gives_away(question: str, answer: str) -> bool:
    """Return whether a question has its answer in it, as whole words where words have spaces.

    Example:
        >>> gives_away("What is the Rhine called?", "The Rhine"), gives_away("In 1880?", "188")
        (True, False)
    """
    plain = _plain(answer)
    return bool(plain) and has_words(_plain(question), plain)


def answer_position(answer: str, text: str, question: str) -> tuple[int, int] | None:
    """Return where an answer is in a text, None where it isn't. Letter case and width apart.

    Of several places it is that in whose sentence most of the question's words are.
    """
    pattern = r"\s+".join(map(re.escape, answer.strip(" .。\"'“”").split()))
    if not pattern:
        return None
    positions = [match.span() for match in re.finditer(pattern, text, re.I)]
    if len(positions) < 2:
        return positions[0] if positions else None
    words = set(_units(question))

    def shared(position: tuple[int, int]) -> int:
        return len(words & set(_units(_sentence_at(text, position[0]))))

    return max(positions, key=shared)


def gold_at(node: Node, position: tuple[int, int] | None = None) -> Gold:
    """Return the span of a node's document that is gold, the whole node without a place.

    A node that was not cut from its document is a gold passage.
    """
    if node.start is None or node.end is None:
        return GoldPassage(node.text)
    start, stop = position or (0, len(node.text))
    return GoldSpan(
        node.document_id or node.id, node.start + start, node.start + stop, node.text[start:stop]
    )


def _units(text: str) -> list[str]:
    return _UNIT.findall(unicodedata.normalize("NFKC", text).casefold())


def _plain(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text).casefold()
    return _PUNCTUATION.sub(" ", normal).strip()


def _sentence_at(text: str, position: int) -> str:
    start = 0
    for sentence in split_sentences(text):
        at = text.find(sentence, start)
        if at <= position < at + len(sentence):
            return sentence
        start = max(start, at)
    return text
