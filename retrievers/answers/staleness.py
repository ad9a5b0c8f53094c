"""Store answers of a query engine, and tell which of them are out of date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.metadata import version
from typing import Any, Protocol, cast

import numpy as np

from ...nodegraph.errors import ModelError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest, fingerprint, full_digest
from ...nodegraph.models.llm import LLM
from ...nodegraph.node import ROOT, Node
from ...nodegraph.stored_answers import (
    StaleAnswer,
    StoredAnswer,
    StoredOmission,
    StoredResult,
    StoredSource,
)
from ..base_retriever import (
    check_takes_filters,
    current_restriction,
    inner_retrievers,
    with_all_inner,
)
from ..indexes.array_files import load_arrays, save_arrays
from ..plans.prompting import Prompt, PromptMixin
from ..protocols import RetrieverProtocol
from ..results import ScoredNode
from .answer import Answer, OmissionReason, OmittedResult, Source
from .settings import AnswerCheck, AnswerMode, AnswerSettings


class Engine(Protocol):
    """What is read of a query engine: what it answers with."""

    retriever: RetrieverProtocol
    llm: LLM
    mode: AnswerMode
    top_k: int | None
    max_tokens: int | None
    min_score: float | None
    check: AnswerCheck | None
    settings: AnswerSettings

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """Its prompts by name."""


def no_model(prompt: str) -> str:
    """Stand for the model of an engine that only tells which answers are out of date.

    Raises:
        ModelError: Always.
    """
    raise ModelError("there is no model to answer with; name one")


@dataclass(frozen=True, slots=True)
class AgentNote:
    """Stand for the model of an engine that stores what an agent says.

    Attributes:
        text: What it says.
        model: What the model of the stored answer is called.
    """

    text: str
    model: str = "agent"

    def __call__(self, prompt: str) -> str:
        """Return the text."""
        return self.text


def graph_of(retriever: RetrieverProtocol) -> NodeGraph:
    """Return the graph that a retriever searches, whose store has its answers.

    Raises:
        ValueError: If there is none, or several.
    """
    graphs: dict[int, NodeGraph] = {}
    for item in with_all_inner(retriever):
        for graph in (*getattr(item, "graphs", ()), getattr(item, "graph", None)):
            if isinstance(graph, NodeGraph):
                graphs[id(graph)] = graph
    if len(graphs) != 1:
        raise ValueError(
            f"answers are stored in the graph that was searched, and {retriever!r:.80} searches "
            f"{len(graphs)} graphs; leave out keep=True"
        )
    return next(iter(graphs.values()))


def conditions_of(*retrievers: object) -> str:
    """Return all conditions that retrievers have, and the restriction that holds now, as text.

    Raises:
        ValueError: If one may have conditions that can't be read.
    """
    conditions: list[Any] = [current_restriction()]
    for retriever in retrievers:
        check_takes_filters(retriever, "an answer that is shown under its conditions only")
        for item in with_all_inner(retriever):
            filters = getattr(item, "filters", None)
            conditions.append(filters() if callable(filters) else filters)
            conditions.append(getattr(item, "_restriction", None))
    return " ".join(full_digest({"conditions": item}) for item in conditions if item)


def setup_of(engine: Engine) -> dict[str, str]:
    """Return what an engine answers with: its retriever, its model, its prompts, its search."""
    if isinstance(engine.llm.model, AgentNote):
        return {}
    parts = _Within()
    setup = {"retriever": digest(_described(engine.retriever, parts, outermost=True))}
    setup["min_score"] = "" if engine.min_score is None else repr(engine.min_score)
    if engine.llm.model is not no_model:
        settings = engine.settings, engine.mode, engine.check, engine.max_tokens
        prompts = [engine.prompts[name] for name in sorted(engine.prompts)]
        setup["model"] = digest(model_of(engine.llm), *sorted(parts.models))
        setup["prompts"] = digest(_described((prompts, *settings), _Within()))
    return setup | {"search": _class_names(engine.retriever)}


def search_of(engine: Engine) -> str:
    """Name all that the results of an engine depend on, beside the graph and its conditions."""
    prompts = [engine.prompts[name] for name in sorted(engine.prompts)]  # leave room for results
    limits = engine.top_k, engine.max_tokens, engine.min_score, engine.mode, engine.settings
    return digest(_described((engine.retriever, limits, prompts), _Within()))


_KIND = "checked answers"

_OWN = tuple(f"nodekin.retrievers.{name}" for name in ("retriever", "composite.", "restricted_"))


def depends_on_graph_alone(retriever: object) -> bool:
    """Return whether a retriever has the same results as long as its graph is the same.

    A user's class or function may look elsewhere, and so may a model, a reranker or a service.
    """
    parts = _Within()
    _described(retriever, parts)
    modules = [type(item).__module__ for item in with_all_inner(retriever)]
    return not parts.others and all(module.startswith(_OWN) for module in modules)


class CheckedAnswers:
    """Know which stored answers a search would find the same results for, in one state of a graph.

    That lasts in a file, where the graph has a folder for indexes: a process that only asks what
    is out of date retrieves nothing as long as nothing has changed.

    Args:
        graph: The graph.
        search: Names all that the results depend on, beside the graph and the question.
    """

    def __init__(self, graph: NodeGraph, search: str) -> None:
        self._graph = graph
        self._header = {"kind": _KIND, "search": search, "nodekin": version("nodekin")}
        self._path = graph.reader.index_file(f"answers-{search}")
        stored = None if self._path is None else load_arrays(self._path)
        header, arrays = stored or ({}, {})
        self._current: tuple[list[int], Any] = [], np.zeros(0, np.int64)
        if {name: header.get(name) for name in self._header} == self._header:
            self._current = header["state"], arrays["marks"]

    @classmethod
    def of(cls, graph: NodeGraph, search: str) -> CheckedAnswers:
        """Return what is known of a search, shared by all engines that have it."""
        return graph.reader.shared((_KIND, search), lambda: cls(graph, search))

    def __call__(
        self,
        answers: Sequence[StoredAnswer],
        check: Callable[[StoredAnswer], StaleAnswer | None],
    ) -> list[StaleAnswer | None]:
        """Return for each answer what has changed, by a function where that is not known."""
        state = self._state()
        known, marks = self._current
        of_answers = np.array(self._graph.answers.marks(answers), np.int64)
        are_known = np.isin(of_answers, marks) & (known == state)
        found = [
            None if is_known else check(answer)
            for answer, is_known in zip(answers, are_known.tolist(), strict=True)
        ]
        if not are_known.all() and self._state() == state:
            current = of_answers[[stale is None for stale in found]]
            self._record(np.setdiff1d(current, 0), state)
        return found

    def _state(self) -> list[int]:
        """Return what stands for the graph's state, and for none of another graph at its path."""
        return [self._graph.reader.state(), self._graph.reader.revision(ROOT)]

    def _record(self, marks: Any, state: list[int]) -> None:
        """Remember what is current in a state, as other answers are that were in it."""
        known, before = self._current
        if known == state:
            marks = np.union1d(before, marks)
            if len(marks) == len(before):
                return
        self._current = state, marks
        if self._path is not None:
            save_arrays(self._path, {**self._header, "state": state}, {"marks": marks})


def _class_names(retriever: object) -> str:
    """Return a retriever's class, and of a strategy the class of what it searches by."""
    inner = [_class_names(item) for _, item in inner_retrievers(retriever)]
    name = type(retriever).__name__
    return f"{name}({inner[0]})" if len(inner) == 1 else name


def model_of(llm: LLM) -> str:
    """Return the name of a model, as its server calls it where it has one."""
    name = getattr(llm.model, "model", None)
    return name if isinstance(name, str) else llm.name


@dataclass(frozen=True, slots=True)
class _Within:
    """Collect what is within something described.

    Attributes:
        models: The names of language models, which are no part of the description.
        others: What is not of this package, as a user's function: it may do something else at any
            time. Conditions are not looked at: an answer is only compared under its own.
    """

    models: list[str] = field(default_factory=list)
    others: list[object] = field(default_factory=list)


def _described(value: Any, parts: _Within, *, outermost: bool = False) -> str:
    """Describe settings as text; graphs by the names of their models, not by what they hold."""
    if isinstance(value, NodeGraph):
        return repr({key: embedder.name for key, embedder in value.embeddings.embedders.items()})
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        own = {key: _Within() if key == "filters" else parts for key in value}
        return repr(sorted((repr(key), _described(value[key], own[key])) for key in value))
    if isinstance(value, list | tuple):
        return repr([_described(item, parts) for item in value])
    if isinstance(value, set | frozenset):
        return repr(sorted(_described(item, parts) for item in value))
    if isinstance(value, LLM):
        parts.models.append(model_of(value))
        return LLM.__name__
    kind = type(value).__qualname__
    if not (getattr(value, "__module__", None) or "").startswith("nodekin."):
        parts.others.append(value)
    if is_dataclass(value) and not isinstance(value, type):
        return repr((kind, [_described(getattr(value, f.name), parts) for f in fields(value)]))
    if isinstance(value, PromptMixin) or callable(getattr(value, "retrieve", None)):
        # How many results are returned is stored with the question.
        omitted = {"top_k"} if outermost else set()
        settings = {k: v for k, v in vars(value).items() if k[0] != "_" and k not in omitted}
        settings["prompts"] = getattr(value, "prompts", None)
        inner = [_described(item, parts) for _, item in inner_retrievers(value)]
        return repr((kind, _described(settings, parts), inner))
    return fingerprint(value) if callable(value) else kind


def stored_answer(
    engine: Engine,
    answer: Answer,
    top_k: int | None,
    filters: Mapping[str, Any] | None,
    state: int,
    conditions: str,
) -> StoredAnswer:
    """Return an answer as it is stored."""
    results: list[ScoredNode] = []
    sources = []
    for source in answer.sources:
        first = len(results)
        results += [source.result, *source.merged]
        positions = tuple(range(first, len(results)))
        sources.append(
            StoredSource(
                *(source.number, source.text, source.title, source.cited, source.complete),
                positions,
            )
        )
    first = len(results)
    results += [omission.result for omission in answer.omitted]
    at = {id(result): position for position, result in enumerate(results)}
    matches = [match for result in results for match in result.evidence]
    variants = [v.query for match in matches for v in match.variants]
    return StoredAnswer(
        answer.question,
        answer.text,
        tuple(map(stored_result, results)),
        tuple(sources),
        answered=answer.answered,
        preset=answer.preset is not None,
        notes=answer.notes,
        searched=answer.searched,
        variants=tuple(dict.fromkeys([*variants, *(match.query for match in matches)])),
        top_k=top_k,
        filters=filters,
        conditions=conditions,
        setup=setup_of(engine),
        model=model_of(engine.llm),
        state=state,
        omitted=tuple(
            StoredOmission(position, omission.reason, at.get(id(omission.of)))
            for position, omission in enumerate(answer.omitted, first)
        ),
        confidence=answer.confidence,
    )


def stored_result(result: ScoredNode) -> StoredResult:
    """Return a result as it is stored."""
    node = result.node
    return StoredResult(
        document_id=node.document_id,
        text=str(node.content),
        score=result.score,
        node_id=node.id,
        group=node.group,
        start=node.start,
        end=node.end,
    )


STORED = "stored before, and its sources have not changed"
"""The first note of an answer that was stored."""


def restored_answer(stored: StoredAnswer, results: Sequence[ScoredNode]) -> Answer:
    """Return a stored answer with the nodes that its sources are now.

    It equals the one that was stored, but for its ``calls``, which are 0, and ``quotes``, which
    are looked up again. Results that no retrieval without a model finds have no evidence.
    """
    by_key: dict[tuple[str, str], list[ScoredNode]] = {}
    for result in results:
        by_key.setdefault(stored_result(result).key, []).append(result)
    nodes = [_restored(result, by_key.get(result.key, ())) for result in stored.results]
    sources = [
        Source(
            *(source.number, nodes[source.results[0]], source.text, source.cited, source.title),
            tuple(nodes[at] for at in source.results[1:]),
            source.complete,
        )
        for source in stored.sources
    ]
    return Answer(
        *(stored.text, stored.question, tuple(sources), stored.answered),
        omitted=tuple(
            OmittedResult(
                nodes[omission.result],
                cast("OmissionReason", omission.reason),
                None if omission.of is None else nodes[omission.of],
            )
            for omission in stored.omitted
        ),
        notes=(STORED, *stored.notes),
        searched=stored.searched,
        confidence=stored.confidence,
    )


def _restored(result: StoredResult, current: Sequence[ScoredNode]) -> ScoredNode:
    """Return a result as it is now, where it is, or else as it was."""
    if current:
        return next((item for item in current if item.node.id == result.node_id), current[0])
    node = Node(
        result.text,
        start=result.start,
        end=result.end,
        id=result.node_id,
        group=result.group,
        document_id=result.document_id,
    )
    return ScoredNode(node, result.score)


def compared(answer: StoredAnswer, results: Sequence[ScoredNode]) -> StaleAnswer | None:
    """Compare what an answer rests on with what is retrieved now; None if it is the same.

    The order of results and their places in their documents don't count. The causes are not
    named yet.
    """
    old, new = [r.key for r in answer.results], [stored_result(r).key for r in results]
    before, now = Counter(old), Counter(new)
    if before == now:
        return None
    gone, entered = before - now, now - before
    removed = [r for r, key in zip(answer.results, old, strict=True) if key in gone]
    added = [r.node for r, key in zip(results, new, strict=True) if key in entered]
    return StaleAnswer(answer, (), tuple(removed), tuple(added))


def with_current_causes(
    compared: Sequence[StaleAnswer | None], graph: NodeGraph
) -> list[StaleAnswer | None]:
    """Return what has changed with the causes that the documents show now."""
    ids = {result.document_id for stale in compared if stale for result in stale.removed}
    texts = {node.id: node.text for node in graph.reader.existing_nodes([*ids])}
    return [stale and replace(stale, causes=_causes(stale, texts)) for stale in compared]


def _causes(stale: StaleAnswer, texts: Mapping[str, str]) -> tuple[str, ...]:
    causes = [_cause(result, texts) for result in stale.removed]
    causes += [f"a new result: {node.place or node.document_id}" for node in stale.added]
    return tuple(dict.fromkeys(causes))


def _cause(result: StoredResult, texts: Mapping[str, str]) -> str:
    if result.document_id not in texts:
        return f"the document of a source was removed: {result.document_id}"
    text = texts[result.document_id]
    changed = result.text != text if result.group == ROOT else result.text not in text
    if result.start is not None and changed:
        return f"a source was changed: {result.document_id}"
    return f"a source is no longer among the results: {result.document_id}"


_SETUP_CAUSES = {
    "retriever": "it was made with another retriever",
    "min_score": "it was made with another min_score",
    "model": "it was made with another model",
    "prompts": "it was made with other prompts or settings",
}


def stored_min_scores(graph: NodeGraph) -> list[float]:
    """Return the ``min_score`` of the stored answers, each once."""
    texts = {answer.setup.get("min_score") for answer in graph.answers}
    return sorted(float(text) for text in texts if text)


def setup_causes(answer: StoredAnswer, setup: Mapping[str, str]) -> list[str]:
    """Return in what an engine differs from the one that made an answer."""
    names = {
        "retriever": answer.setup.get("search"),
        "min_score": answer.setup.get("min_score") or "none",
        "model": answer.model,
    }
    return [
        f"{cause}: {name}" if (name := names.get(part)) else cause
        for part, cause in _SETUP_CAUSES.items()
        if answer.setup.get(part, setup.get(part)) != setup.get(part, answer.setup.get(part))
    ]


def with_causes(
    answer: StoredAnswer, causes: Sequence[str], changed: StaleAnswer | None
) -> StaleAnswer | None:
    """Return what has changed for an answer, with further causes before it; None for nothing."""
    if not causes:
        return changed
    changed = changed or StaleAnswer(answer, ())
    return replace(changed, causes=(*causes, *changed.causes))
