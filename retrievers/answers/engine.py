"""Answer questions from the results of a retriever, with sources, whole or as a stream."""

from __future__ import annotations

import copy
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from ...nodegraph.errors import explain_names
from ...nodegraph.hashing import digest
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.model_objects import in_thread
from ...nodegraph.models.templates import language_of
from ...nodegraph.stored_answers import StaleAnswer, StoredAnswer, answer_key
from ..filters import Filters, parse_filters
from ..foreign.coercion import as_retriever
from ..plans.plan import Plan, arun, astream, run, stream
from ..plans.prompting import Prompt, PromptMixin, PromptReplacement, replace_prompts
from ..protocols import RetrieverLike, RetrieverProtocol
from ..restricted_retriever import restrict
from ..results import ScoredNode
from ..token_budget import TokenBudget
from ..validation import check_min_score, check_top_k, choice, is_score_of, whole
from .answer import Answer, Source
from .chat_history import Pair, parse_history
from .context import AnswerContext
from .pipeline import MODEL_FAILED, answer_question, answer_results, preset_answer
from .qa import QaRetriever
from .quotes import check_quotes
from .result_bounds import BoundedCheck
from .settings import (
    PROMPTS,
    AnswerCheck,
    AnswerMode,
    AnswerSettings,
    check_mode,
    check_prompts,
)
from .staleness import (
    STORED,
    CheckedAnswers,
    compared,
    conditions_of,
    depends_on_graph_alone,
    graph_of,
    no_model,
    restored_answer,
    search_of,
    setup_causes,
    setup_of,
    stored_answer,
    stored_min_scores,
    with_causes,
    with_current_causes,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class QueryEngine(PromptMixin):
    """Retrieve passages for a question, and let a model answer from them and cite them.

    Modes, by what they are good for:

    - ``"stuff"``: one call with all passages that fit. The choice for most questions.
    - ``"refine"``: the first passages that fit, then the answer is improved with the next ones.
      For answers that many long passages contribute to. One call after the other.
    - ``"map_reduce"``: a partial answer from each passage, all at once, reduced to one answer. The
      same for when time matters more than calls.
    - ``"map_rerank"``: an answer from each passage, all at once, of which the one with the highest
      confidence is chosen. For questions that one passage answers.

    Args:
        retriever: Any retriever, also a strategy.
        llm: The model, in any form that ``LLM`` takes.
        mode: How passages become an answer.
        qa: Question-answer pairs: a question that is one of theirs is answered without a model.
        prompts: Prompts that replace the built-in ones (``engine.prompts``), by name: ``"answer"``
            (stuff, the first call of refine), ``"refine"``, ``"partial"`` and ``"reduce"``
            (map_reduce), ``"rank"`` (map_rerank), ``"condense"``, and the texts for users,
            ``"not_found"`` and ``"extract"``. Each is a text, or texts by language. A prompt of
            yours should request the marks that ``Answer.answered`` is set by: NO_ANSWER, or 无答案.
        top_k: How many results to retrieve. None for the retriever's own number.
        max_tokens: How many tokens of passages the model gets at most; see ``BudgetResults``. None
            for 1,600 where the default search (a graph) is asked and no ``top_k`` is given, and
            for no limit but the context window otherwise.
        min_score: Leaves out results that score less; without any the answer says that nothing
            was found, and no model is asked. Scores of the default search are from 0 to 1, and
            0.5 is the place to begin with; see docs/scores.md. None takes all results.
        check: ``"quotes"`` to look up the quotations and cited sentences of each answer in its
            sources, without a model: ``Answer.quotes`` and ``Answer.notes``. See ``check_quotes``.
        settings: The context window, the language, limits of calls and seconds, and what happens
            on errors. See ``AnswerSettings``.

    Raises:
        TypeError: If the retriever, the model or a setting has the wrong type.
        ValueError: If a name is unknown, a number out of range, a prompt lacks a place, or the
            context window has no room for the prompts.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "It has 6,650 km [1].")
        >>> answer = engine.query("How long is the Nile?")
        >>> print(answer, [source.text for source in answer.cited])
        It has 6,650 km [1]. ['The Nile is 6,650 km long.']
        >>> engine.query("And the Rhine?").answered
        False
    """

    settings_type: ClassVar[type] = AnswerSettings

    @explain_names
    def __init__(
        self,
        retriever: RetrieverLike,
        llm: object,
        mode: AnswerMode = "stuff",
        *,
        qa: QaRetriever | None = None,
        prompts: Mapping[str, PromptReplacement] | None = None,
        top_k: int | None = None,
        max_tokens: int | None = None,
        min_score: float | None = None,
        check: AnswerCheck | None = None,
        settings: AnswerSettings | None = None,
    ) -> None:
        if qa is not None and not all(
            callable(getattr(qa, name, None)) for name in ("answer", "aanswer", "recommend")
        ):
            raise TypeError(f"qa is a QaRetriever, not {qa!r:.80}")
        if not isinstance(settings, AnswerSettings | None):
            raise TypeError(f"settings are AnswerSettings(...), not {settings!r:.80}")
        check_mode(mode)
        choice(check, "check", (None, *get_args(AnswerCheck)))
        self.retriever = as_retriever(retriever)
        self.llm: LLM = as_llm(llm)
        self.mode: AnswerMode = mode
        self.qa = qa
        self.top_k = None if top_k is None else check_top_k(top_k)
        self.max_tokens = None if max_tokens is None else whole(max_tokens, "max_tokens", 1)
        self.min_score = check_min_score(min_score, self.retriever)
        self.check: AnswerCheck | None = check
        self.settings = settings or AnswerSettings()
        self._prompts = replace_prompts(PROMPTS, {} if prompts is None else prompts)
        check_prompts(self.mode, self._prompts, self.settings)

    def __repr__(self) -> str:
        return f"QueryEngine({self.retriever!r}, {self.llm.name!r}, {self.mode!r})"

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        check_prompts(self.mode, prompts, self.settings)
        self._prompts = prompts

    def query(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
        keep: bool = False,
    ) -> Answer:
        """Return the answer to a question.

        Args:
            question: The question.
            history: The conversation so far, the oldest first: pairs ``(question, answer)``, or
                messages ``{"role": "user", "content": ...}``. The model rewrites the question
                so that it is understood without them.
            top_k: In place of the engine's own.
            filters: Conditions on metadata, for the retriever and for preset answers.
            keep: Whether the answer is stored in the graph (``graph.answers``). One that is
                stored and not out of date is returned at once, with a note.

        Raises:
            TypeError: If the question is no text, or the history none.
            ValueError: If the question leaves no room for a passage, or an answer is to be stored
                that has a history, or whose retriever searches several graphs.
            AnswerError: If the model fails or ``max_seconds`` are over, with ``on_error="raise"``.
        """
        if not keep:
            return run(self._plan(question, history, top_k, filters)[0])
        store = self._storing(question, history, top_k, filters)
        answer = self.stored_answer(question, top_k, filters)
        if answer is None:
            answer = run(self._plan(question, history, top_k, filters)[0])
            store(answer)
        return answer

    async def aquery(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
        keep: bool = False,
    ) -> Answer:
        """Async version of ``query``."""
        if not keep:
            return await arun(self._plan(question, history, top_k, filters)[0])
        store = await in_thread(self._storing, question, history, top_k, filters)
        answer = await in_thread(self.stored_answer, question, top_k, filters)
        if answer is None:
            answer = await arun(self._plan(question, history, top_k, filters)[0])
            await in_thread(store, answer)
        return answer

    def stream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
        keep: bool = False,
    ) -> AnswerStream:
        """Return the answer as the model writes it: iterate over its text.

        With ``keep`` it is stored when it was read to its end; ``stored_answer`` returns it. The
        last call of the model is streamed. An answer that is not from one call (a preset
        answer, the best of several) comes in one text. A model that breaks off raises, and
        ``answer`` has what there is.
        """
        store = self._storing(question, history, top_k, filters) if keep else None
        stream = AnswerStream(*self._plan(question, history, top_k, filters))
        if store is not None:
            stream.on_end(store)
        return stream

    def astream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AsyncAnswerStream:
        """Async version of ``stream``."""
        return AsyncAnswerStream(*self._plan(question, history, top_k, filters))

    def restricted(self, filters: Filters) -> Self:
        """Return a copy whose passages and preset answers meet conditions. See ``restrict``."""
        other = copy.copy(self)
        other.retriever = restrict(self.retriever, filters)
        other.qa = None if self.qa is None else restrict(self.qa, filters)
        return other

    # Stored answers

    def stored_answer(
        self, question: str, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer | None:
        """Return the answer to a question that is stored and not out of date; None without one.

        Only one that was made under the same conditions: filters, ``top_k`` and what the engine
        is restricted to.
        """
        answers = graph_of(self.retriever).answers
        setup = setup_of(self)
        stored = answers.get(answer_key(question, top_k, filters, self.conditions(), not setup))
        if stored is None:
            return None
        preset, results = self._retrieved_again(stored)
        if setup_causes(stored, setup) or self._changed(stored, preset, results) is not None:
            return None
        if preset is not None:
            return replace(preset, notes=(STORED, *preset.notes))
        answer = restored_answer(stored, results)
        return check_quotes(answer) if self.check == "quotes" else answer

    def conditions(self) -> str:
        """Return the conditions under which it answers, as text."""
        return conditions_of(*filter(None, (self.retriever, self.qa)))

    def setup(self) -> dict[str, str]:
        """Name what it answers with: its ``retriever``, its ``model``, its ``prompts``."""
        return setup_of(self)

    def stale_answers(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer]:
        """Return those that may be out of date, of some answers made under its conditions.

        ``graph.answers.stale(engine)`` asks it for all that the graph has.
        """
        setup = setup_of(self)
        check = self._bounded_check() or self._checked_now
        causes: dict[tuple[object, ...], list[str]] = {}  # most answers have the same set-up
        stale = []
        for answer, changed in zip(answers, check(answers), strict=True):
            own = answer.model, *answer.setup.items()
            if own not in causes:
                causes[own] = setup_causes(answer, setup)
            stale.append(with_causes(answer, causes[own], changed))
        return [item for item in stale if item is not None]

    def _checked_now(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer | None]:
        """Retrieve for all answers, but for those that were current if the graph is the same."""
        if self.qa is not None or not depends_on_graph_alone(self.retriever):
            return [*map(self._changed_now, answers)]
        search = digest(search_of(self), self.conditions())
        return CheckedAnswers.of(graph_of(self.retriever), search)(answers, self._changed_now)

    def _bounded_check(self) -> BoundedCheck | None:
        """Return what compares answers by bounds; None where each has to be retrieved for."""
        if self.qa is not None or (self.max_tokens, self.min_score) != (None, None):
            return None
        search = digest(search_of(self), self.conditions())
        return BoundedCheck.of(self.retriever, self.top_k, search)

    def answer_again(self, answer: StoredAnswer) -> bool:
        """Answer the question of a stored answer anew and store that.

        Returns:
            False where the engine has no model, and for the note of an agent.
        """
        if self.llm.model is no_model or not answer.setup:
            return False
        store = self._storing(answer.question, None, answer.top_k, answer.filters, answer)
        store(run(self._plan(answer.question, None, answer.top_k, answer.filters)[0]))
        return True

    def _retrieved_again(self, answer: StoredAnswer) -> tuple[Answer | None, Sequence[ScoredNode]]:
        """Return the preset answer that a question has now, or else what is retrieved for it.

        Nothing is retrieved where that asks a model.
        """
        _, context = self._plan(answer.question, None, answer.top_k, answer.filters)
        context.searched = answer.question
        preset = run(preset_answer(context, self.qa, answer.filters))
        if preset is not None:
            return preset, [source.result for source in preset.sources]
        if not self._retrieves_freely() or not answer.question.strip():
            return None, ()
        budget = TokenBudget(self.max_tokens, top_k=answer.top_k or self.top_k)
        return None, run(
            answer_results(context, self.retriever, budget, answer.filters, self.min_score)
        )

    def _retrieves_freely(self) -> bool:
        return bool(getattr(self.retriever, "is_free", False))

    def _changed_now(self, answer: StoredAnswer) -> StaleAnswer | None:
        return self._changed(answer, *self._retrieved_again(answer))

    def _changed(
        self, answer: StoredAnswer, preset: Answer | None, results: Sequence[ScoredNode]
    ) -> StaleAnswer | None:
        """Return what has changed for a stored answer, of which this is retrieved now."""
        graph = graph_of(self.retriever)
        causes = []
        if preset is not None or answer.preset:
            if preset is None or not answer.preset or preset.text != answer.text:
                causes.append("the preset answer is another one")
        elif not self._retrieves_freely():
            if graph.reader.state() != answer.state:
                causes.append("the graph has changed, and only a model could tell what is found")
            return with_causes(answer, causes, None)
        (changed,) = with_current_causes([compared(answer, results)], graph)
        return with_causes(answer, causes, changed)

    def _storing(
        self,
        question: str,
        history: Iterable[Any] | None,
        top_k: int | None,
        filters: Filters | None,
        replaced: StoredAnswer | None = None,
    ) -> Callable[[Answer], None]:
        """Return what stores the answer to a question that is asked now."""
        if history:
            raise ValueError(
                "keep=True stores the answer to a question that is understood by itself; leave "
                "out the history, or keep=True"
            )
        graph = graph_of(self.retriever)
        state, conditions = graph.reader.state(), self.conditions()
        answer_key(question, top_k, filters, conditions, is_note=False)  # raises for some filters

        def store(answer: Answer) -> None:
            if not any(note.startswith(MODEL_FAILED) for note in answer.notes):
                stored = stored_answer(self, answer, top_k, filters, state, conditions)
                graph.answers.put(stored, self, replaced)

        return store

    def conversation(self, history: Iterable[Any] | None = None) -> Conversation:
        """Return a conversation, which stores its questions and answers."""
        return Conversation(self, history)

    def recommend(
        self, question: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[str]:
        """Return questions close to this one that have preset answers.

        Raises:
            ValueError: If the engine has no question-answer pairs.
        """
        results = self._qa().recommend(question, top_k, filters=filters)
        return [result.node.text for result in results]

    async def arecommend(
        self, question: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[str]:
        """Async version of ``recommend``."""
        results = await self._qa().arecommend(question, top_k, filters=filters)
        return [result.node.text for result in results]

    def _qa(self) -> QaRetriever:
        if self.qa is None:
            raise ValueError("the engine has no question-answer pairs; set qa=QaRetriever(...)")
        return self.qa

    def _plan(
        self,
        question: str,
        history: Iterable[Any] | None,
        top_k: int | None,
        filters: Filters | None,
    ) -> tuple[Plan[Answer], AnswerContext]:
        """Return the answer as a plan, and its context. Wrong arguments are raised at once."""
        if not isinstance(question, str):
            raise TypeError(f"a question is a str, not {type(question).__name__} {question!r:.80}")
        if filters is not None:
            parse_filters(filters)
        limit = self.top_k if top_k is None else check_top_k(top_k)
        pairs, notes = ([], []) if history is None else parse_history(history)
        language = self.settings.language
        context = AnswerContext(
            self.llm,
            self.mode,
            self._prompts,
            self.settings,
            question,
            language_of(question) if language == "auto" else language,
            notes=notes,
            check=self.check,
        )
        budget = TokenBudget(self.max_tokens, top_k=limit)
        plan = answer_question(
            context, self.retriever, self.qa, pairs, budget, filters, self.min_score
        )
        return plan, context


def engines_by_strategy(
    retriever: RetrieverProtocol, llm: Any, min_score: float | None = None
) -> list[QueryEngine]:
    """Return an engine for each strategy, mode and ``min_score`` an answer was asked with.

    The one without a strategy comes first. Without a model (``no_model``) modes are the same.

    Args:
        retriever: What the answers were searched by.
        llm: The model.
        min_score: Of those that come first.
    """
    from ..strategies.strategy_registry import make_strategy, simple_strategies

    modes = ("stuff",) if llm is no_model else get_args(AnswerMode)
    made = [retriever, *(make_strategy(name, retriever, llm) for name in simple_strategies())]
    return [
        QueryEngine(searching, llm, mode, min_score=score)
        for score in dict.fromkeys([min_score, None, *stored_min_scores(graph_of(retriever))])
        for searching in made
        if score is None or is_score_of(searching, score)
        for mode in modes
    ]


class Conversation:
    """Ask a query engine one question after the other. A question may refer to those before it.

    The history is stored here and not in the engine: conversations of one engine are independent.
    Several threads may share a conversation. A question that is asked while another one is being
    answered does not see that one. An answer that fails, or is not read to its end, is not stored.

    Args:
        engine: The engine.
        history: Earlier questions and answers. See ``QueryEngine.query``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers import QueryEngine
        >>> graph = NodeGraph()
        >>> ids = graph.add("The Nile is 6,650 km long.")
        >>> def model(prompt):
        ...     return "How long is the Nile?" if "Conversation:" in prompt else "6,650 km [1]."
        >>> chat = QueryEngine(Retriever(graph, "ROOT"), model).conversation()
        >>> print(chat.query("Where is the Nile?"))
        6,650 km [1].
        >>> chat.query("And how long is it?").searched, len(chat.history)
        ('How long is the Nile?', 2)
    """

    def __init__(self, engine: QueryEngine, history: Iterable[Any] | None = None) -> None:
        self.engine = engine
        self._pairs = parse_history(history)[0]
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Conversation({self.engine!r}, {len(self.history)} pairs)"

    @property
    def history(self) -> tuple[Pair, ...]:
        """The pairs of question and answer so far, the oldest first."""
        with self._lock:
            return tuple(self._pairs)

    def clear(self) -> None:
        """Remove all pairs."""
        with self._lock:
            self._pairs.clear()

    def query(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer:
        """Return the answer to the next question. See ``QueryEngine.query``."""
        answer = self.engine.query(question, history=self.history, top_k=top_k, filters=filters)
        self._store(answer)
        return answer

    async def aquery(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Answer:
        """Async version of ``query``."""
        history = self.history
        answer = await self.engine.aquery(question, history=history, top_k=top_k, filters=filters)
        self._store(answer)
        return answer

    def stream(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> AnswerStream:
        """Return the answer to the next question as it comes. It is stored when it has ended."""
        stream = self.engine.stream(question, history=self.history, top_k=top_k, filters=filters)
        stream.on_end(self._store)
        return stream

    def astream(
        self, question: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> AsyncAnswerStream:
        """Async version of ``stream``."""
        stream = self.engine.astream(question, history=self.history, top_k=top_k, filters=filters)
        stream.on_end(self._store)
        return stream

    def _store(self, answer: Answer) -> None:
        with self._lock:
            self._pairs.append((answer.question, answer.text))


class _Stream:
    """Give both kinds of stream the answer as far as it is written."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context

    @property
    def answer(self) -> Answer:
        """The answer. Before the end, and if the model breaks off, what there is of it."""
        return self._context.current_answer()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, complete when the first text comes. What is cited is set at the end."""
        return self.answer.sources

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._context.answer is not None

    def on_end(self, callback: Callable[[Answer], None]) -> None:
        """Call a function with the answer once it is complete and was read to its end."""
        self._context.callbacks.append(callback)


class AnswerStream(_Stream, Iterator[str]):
    """Iterate over an answer's text as the model writes it.

    Nothing is done before the first text is read. ``with`` (or ``close``) ends the model's work
    when no more is needed.

    Attributes:
        answer: The complete answer at the end. Before, what there is.
        sources: The passages, complete when the first text comes.
        ended: Whether the answer is complete.
    """

    def __init__(self, plan: Plan[Answer], context: AnswerContext) -> None:
        super().__init__(context)
        self._texts = _texts(plan, context)

    def __next__(self) -> str:
        return next(self._texts)

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream, also in the middle."""
        self._texts.close()

    def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        for _ in self:
            pass
        return self.answer


class AsyncAnswerStream(_Stream, AsyncIterator[str]):
    """Iterate over an answer's text with ``async for``. See ``AnswerStream``."""

    def __init__(self, plan: Plan[Answer], context: AnswerContext) -> None:
        super().__init__(context)
        self._texts = _async_texts(plan, context)

    async def __anext__(self) -> str:
        return await self._texts.__anext__()

    async def __aenter__(self) -> AsyncAnswerStream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream, also in the middle."""
        await self._texts.aclose()

    async def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        async for _ in self:
            pass
        return self.answer


def _texts(plan: Plan[Answer], context: AnswerContext) -> Generator[str, None, None]:
    yield from stream(plan)
    yield from _end(context)


async def _async_texts(plan: Plan[Answer], context: AnswerContext) -> AsyncGenerator[str, None]:
    async with aclosing(astream(plan)) as texts:
        async for text in texts:
            yield text
    for text in _end(context):
        yield text


def _end(context: AnswerContext) -> Iterator[str]:
    """Yield the text of the answer that was not streamed. Report that it is complete."""
    if remaining := context.remaining_text():
        yield remaining
    for callback in context.callbacks:
        callback(context.current_answer())
