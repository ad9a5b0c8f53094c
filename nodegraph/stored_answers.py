"""Answers that a graph stores, with what they rest on, until that is out of date."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from .codec import decode, encode
from .errors import nearest_names
from .hashing import digest
from .locking import end_left_transaction, mutex
from .node import Node
from .store import NodeStore

_KIND = "answers"  # the kind of the values that hold them, by key

_SETUP_PARTS = ("retriever", "min_score", "model", "prompts")

_VERSION = "answers version"  # kind and key of a value that is another one after every change


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result that an answer rests on, as it was.

    Attributes:
        document_id: Its document.
        text: Its content.
        score: Its score.
        node_id: The node's id.
        group: The node's group.
        start: Where it began in its document.
        end: Where it ended.
    """

    document_id: str
    text: str
    score: float
    node_id: str = ""
    group: str = ""
    start: int | None = None
    end: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same where it is moved, but not where its text changes."""
        return self.document_id, digest(self.text)


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A numbered source of an answer.

    Attributes:
        number: The number that the answer cites it by.
        text: What the model saw of it.
        title: The line above it.
        cited: Whether the answer cites it.
        complete: Whether the model saw all of it.
        results: The positions of its results in ``StoredAnswer.results``, its main one first.
    """

    number: int
    text: str
    title: str = ""
    cited: bool = False
    complete: bool = True
    results: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredOmission:
    """A result that the model did not get.

    Attributes:
        result: Its position in ``StoredAnswer.results``.
        reason: Why, as in ``OmittedResult``.
        of: The position of the result that has its text, if one has.
    """

    result: int
    reason: str
    of: int | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Hold an answer, what it rests on, and under which conditions it was made.

    Attributes:
        question: The question.
        text: The answer.
        results: All results of its retrieval.
        sources: The numbered ones.
        answered: Whether it answers the question.
        preset: Whether it is the preset answer of a question-answer pair.
        notes: Its notes.
        searched: What was searched for.
        variants: What strategies searched for besides.
        top_k: How many results the question asked for; None for the engine's number.
        filters: The filters of the question.
        conditions: The conditions of the engine that made it, restrictions included, as text.
            Under others the answer is not shown.
        setup: Names the ``retriever``, the ``model`` and the ``prompts`` that it was made with, by
            digests, the ``min_score``, and the ``search``, by its classes. A note of an agent has
            none.
        model: The name of the model.
        state: The graph's state when its retrieval began.
        omitted: The results that the model did not get.
        confidence: How sure the model said it was.
        key: What it is stored by: question, filters, ``top_k``, conditions, and whose it is.
    """

    question: str
    text: str
    results: tuple[StoredResult, ...] = ()
    sources: tuple[StoredSource, ...] = ()
    answered: bool = True
    preset: bool = False
    notes: tuple[str, ...] = ()
    searched: str = ""
    variants: tuple[str, ...] = ()
    top_k: int | None = None
    filters: Mapping[str, Any] | None = None
    conditions: str = ""
    setup: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    state: int = 0
    omitted: tuple[StoredOmission, ...] = ()
    confidence: float | None = None
    key: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        is_note = not self.setup
        key = answer_key(self.question, self.top_k, self.filters, self.conditions, is_note)
        object.__setattr__(self, "key", key)


def answer_key(
    question: str,
    top_k: int | None,
    filters: Mapping[str, Any] | None,
    conditions: str,
    is_note: bool,
) -> str:
    """Return the key of an answer, or of the note of an agent, which never stands for one.

    Raises:
        TypeError: If the filters have a value that can't be stored.
    """
    return digest(" ".join(question.split()), encode([top_k, filters or None, is_note]), conditions)


@dataclass(frozen=True, slots=True)
class StaleAnswer:
    """Name an answer that may be out of date.

    Attributes:
        answer: The stored answer.
        causes: Why, one sentence each.
        removed: The results that it rests on and that would not be retrieved any more.
        added: The nodes that would be retrieved now, and were not.
    """

    answer: StoredAnswer
    causes: tuple[str, ...]
    removed: tuple[StoredResult, ...] = ()
    added: tuple[Node, ...] = ()


class AnswerChecker(Protocol):
    """What can tell whether answers are out of date: a ``QueryEngine``."""

    def conditions(self) -> str:
        """Return the conditions under which it answers, as text."""

    def setup(self) -> Mapping[str, str]:
        """Name what it answers with, as ``StoredAnswer.setup`` does."""

    def stale_answers(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer]:
        """Return those that may be out of date, of some answers made under its conditions."""

    def answer_again(self, answer: StoredAnswer) -> bool:
        """Answer the question anew and store that; return False where it has no model."""


class AnswerStore:
    """The answers that a graph stores; ``graph.answers`` is the one of a graph.

    They stand in the graph's store, and last as long. All processes see what one of them stores.

    Args:
        store: The graph's store.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._lock = mutex()
        self._cached: tuple[bytes, dict[str, tuple[int, StoredAnswer]]] = b"", {}
        self._checkers: WeakKeyDictionary[Any, None] = WeakKeyDictionary()  # in order

    def __repr__(self) -> str:
        return f"AnswerStore({len(self)} answers)"

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self) -> Iterator[StoredAnswer]:
        """Yield the answers, those of one question next to each other."""
        answers = (answer for _, answer in self._rows().values())
        return iter(sorted(answers, key=lambda a: (a.question, a.key)))

    def get(self, key: str) -> StoredAnswer | None:
        """Return the answer of a key, None if there is none."""
        value = self._store.get_values(_KIND, [key]).get(key)
        return None if value is None else _read(value)

    def put(
        self,
        answer: StoredAnswer,
        checker: AnswerChecker | None = None,
        replaced: StoredAnswer | None = None,
    ) -> None:
        """Store an answer, over the one of the same question and conditions.

        Args:
            answer: The answer.
            checker: What made it, which ``stale`` and ``refresh`` use in this process.
            replaced: What it stands for. If that was removed or answered again in the meantime,
                nothing is stored.

        Raises:
            TypeError: If the filters have a value that can't be stored.
        """
        *row, _ = astuple(replace(answer, setup=dict(answer.setup)))
        value = encode(row).encode("utf-8", "surrogatepass")
        end_left_transaction(self._store)
        with self._store.transaction():
            if replaced is None or self.get(replaced.key) == replaced:
                self._change({answer.key: value})
        if checker is not None:
            with self._lock:
                self._checkers[checker] = None

    def remove(self, answers: StoredAnswer | Iterable[StoredAnswer]) -> None:
        """Remove answers; those that are not there are skipped."""
        several = [answers] if isinstance(answers, StoredAnswer) else list(answers)
        end_left_transaction(self._store)
        self._change({}, [answer.key for answer in several])

    def _change(self, values: Mapping[str, bytes], removed: Sequence[str] = ()) -> None:
        version = os.urandom(8)
        with self._store.transaction():
            self._store.put_values(_VERSION, {_VERSION: version})
            self._store.put_values(_KIND, values)
            if removed:
                self._store.delete_values(_KIND, removed)

    def marks(self, answers: Iterable[StoredAnswer]) -> list[int]:
        """Return a hash of each answer as it is stored; 0 for one that is stored no longer."""
        rows = self._rows()
        stored = ((a, *rows.get(a.key, (0, None))) for a in answers)
        return [mark if other is a or other == a else 0 for a, mark, other in stored]

    def _rows(self) -> dict[str, tuple[int, StoredAnswer]]:
        """Return all answers by key, each with a hash; read again where one has changed."""
        version = self._store.get_values(_VERSION, [_VERSION]).get(_VERSION, b"")
        with self._lock:
            cached, rows = self._cached
        if cached != version:
            before, rows = rows, {}
            for key, value in self._store.get_values(_KIND).items():
                mark = int.from_bytes(blake2b(value, digest_size=8).digest(), "big", signed=True)
                known = before.get(key)
                rows[key] = known if known and known[0] == mark else (mark, _read(value))
            with self._lock:
                self._cached = version, rows
        return rows

    def stale(self, *checkers: AnswerChecker) -> list[StaleAnswer]:
        """Return the answers that may be out of date, and why.

        An answer is named if a retrieval would now have other results (a text that was changed,
        removed, or is outranked by something new; one that only moved is the same), or if the
        set-up, the prompts, the model or the preset answer is another one.

        Args:
            checkers: The query engines that made them, or engines like them. None for those that
                have stored an answer in this process.

        Raises:
            LookupError: If there is no engine.

        Example:
            >>> from nodekin.nodegraph import Document, NodeGraph
            >>> from nodekin.retrievers import QueryEngine, Retriever
            >>> graph = NodeGraph()
            >>> ids = graph.add(Document("The Nile is 6,650 km long.", id="nile"))
            >>> engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "6,650 km [1].")
            >>> answer = engine.query("How long is the Nile?", keep=True)
            >>> graph.answers.stale()
            []
            >>> ids = graph.add(Document("The Nile is 6,853 km long.", id="nile"))
            >>> graph.answers.stale()[0].causes
            ('a source was changed: nile', 'a new result: nile')
        """
        stale: list[StaleAnswer] = []
        for engine, answers in self.by_engine(self._engines(checkers), self):
            if engine is None:
                cause = "no engine has the conditions that it was made under, so it was not checked"
                stale += [StaleAnswer(answer, (cause,)) for answer in answers]
            else:
                stale += engine.stale_answers(answers)
        return sorted(stale, key=lambda item: (item.answer.question, item.answer.key))

    def refresh(self, *checkers: AnswerChecker) -> list[StaleAnswer]:
        """Answer the questions of stale answers again; return what was stale.

        Where the engine has no model, and for the notes of agents, nothing is answered: the list
        says which sources have changed.

        Args:
            checkers: As for ``stale``.

        Raises:
            LookupError: If there is no engine.
        """
        engines = self._engines(checkers)
        stale = self.stale(*engines)
        outdated = [item.answer for item in stale]
        for engine, answers in self.by_engine(engines, outdated):
            for answer in answers:
                is_current = self.get(answer.key) == answer
                if engine is not None and is_current:  # no other process was faster
                    engine.answer_again(answer)
        return stale

    def by_engine(
        self, engines: Sequence[AnswerChecker], answers: Iterable[StoredAnswer]
    ) -> list[tuple[AnswerChecker | None, list[StoredAnswer]]]:
        """Return the answers that each engine checks: the one of its conditions most like its own.

        The retriever counts first, then the model. None for those under the conditions of none.
        """
        conditions = [engine.conditions() for engine in engines]
        setups = [dict(engine.setup()) for engine in engines]
        groups: list[list[StoredAnswer]] = [[] for _ in range(len(engines) + 1)]
        chosen: dict[tuple[str | None, ...], int] = {}
        for answer in answers:
            wanted = answer.conditions, *map(answer.setup.get, _SETUP_PARTS)
            if wanted not in chosen:
                checking = [at for at, text in enumerate(conditions) if text == answer.conditions]
                same = [
                    [setup.get(part) == answer.setup.get(part) for part in _SETUP_PARTS]
                    for setup in setups
                ]
                chosen[wanted] = max(checking, key=same.__getitem__, default=len(engines))
            groups[chosen[wanted]].append(answer)
        return list(zip([*engines, None], groups, strict=True))

    def _engines(self, checkers: Sequence[AnswerChecker]) -> list[AnswerChecker]:
        for checker in checkers:
            if not callable(getattr(checker, "stale_answers", None)):
                raise TypeError(f"answers are checked by a QueryEngine, not by {checker!r:.80}")
        with self._lock:
            engines = list(checkers) or list(self._checkers)
        if not engines and len(self):
            names = nearest_names("", [answer.question for answer in self])
            raise LookupError(
                f"no engine has stored an answer in this process to check these by: {names}; "
                "name one: graph.answers.stale(QueryEngine(retriever, llm))"
            )
        return engines


def _read(value: bytes) -> StoredAnswer:
    row = decode(value.decode("utf-8", "surrogatepass"))
    values = dict(zip(_FIELDS, row, strict=False))
    for name, kind in _PARTS.items():
        values[name] = tuple(kind(*part) for part in values.get(name, ()))
    return StoredAnswer(**values)


_FIELDS = [item.name for item in fields(StoredAnswer) if item.init]

_PARTS: dict[str, type] = {
    "results": StoredResult,
    "sources": StoredSource,
    "omitted": StoredOmission,
}
