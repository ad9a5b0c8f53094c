"""Answer questions from the results of a retriever, with sources, complete or streamed."""

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
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, get_args

from ...nodegraph.errors import explain_names
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.templates import Language, language_of
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import count_tokens
from ..filters import Filters, parse_filters
from ..foreign.coercion import as_retriever
from ..plans.plan import Do, Part, arun, astream, run, stream
from ..plans.prompting import (
    Prompt,
    PromptMixin,
    PromptReplacement,
    passage_title,
    replace_prompts,
)
from ..protocols import RetrieverLike
from ..restricted_retriever import restrict
from ..results import ScoredNode
from ..validation import check_min_score, check_top_k, choice, seconds, whole
from .answer import Answer, Source
from .chat_history import Pair, parse_history
from .context import AnswerContext
from .current_check import SourceChanges, compare_sources, without_strategies
from .pipeline import answer_question, answer_results
from .qa import QaRetriever
from .settings import (
    PROMPTS,
    AnswerCheck,
    AnswerMode,
    OnError,
    check_prompts,
    window_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class QueryEngine(PromptMixin):
    """A retriever and a model that answers questions from the retrieved passages and cites them.

    Modes:

    - ``"stuff"``: one call with all passages that fit. The choice for most questions.
    - ``"refine"``: the first passages that fit, then the next ones improve the answer. For answers
      from many long passages. Calls run one after the other.
    - ``"map_reduce"``: a partial answer from each passage, in parallel, then one answer from all.
      Faster than ``"refine"``, with more calls.
    - ``"map_rerank"``: an answer from each passage, in parallel; the most confident is chosen. For
      questions that one passage answers.

    Args:
        retriever: Any retriever, including strategies.
        llm: The model, in any form that ``LLM`` takes.
        mode: The way from passages to an answer.
        qa: Question-answer pairs. Their questions are answered without a model.
        prompts: Prompts that replace the built-in ones (``engine.prompts``), by name: ``"answer"``
            (stuff, the first call of refine), ``"refine"``, ``"partial"`` and ``"reduce"``
            (map_reduce), ``"rank"`` (map_rerank), ``"condense"``, and the texts for users,
            ``"not_found"`` and ``"extract"``. Each is a text, or texts by language. A custom prompt
            should request the marker that sets ``Answer.answered``: NO_ANSWER, or 无答案.
        top_k: The number of results. None: the retriever's own.
        max_tokens: The tokens of passages in a prompt at most; see ``BudgetResults``. None: 1,600
            for the default search (a graph) without ``top_k``, otherwise only the context window
            is a limit.
        min_score: Results below this score are left out. If none is left, the answer says that
            nothing was found, and the model is not called. Scores of the default search are from
            0 to 1; 0.5 is a good start, see docs/scores.md. None: all results.
        check: ``"quotes"`` looks up the quotations and cited sentences of each answer in its
            sources, without a model: ``Answer.quotes`` and ``Answer.notes``. See ``check_quotes``.
        context_window: Maximum length of a prompt and its answer, in the unit of ``length``. None:
            the model's context window if it is known, otherwise 16,000 tokens. Results without
            space are in ``Answer.omitted``, and their number in ``Answer.notes``.
        num_output: The part of the context window that is reserved for the answer.
        history_window: Maximum length of a conversation in the prompt that condenses a question.
            The newest pairs are kept.
        length: Measures texts: ``count_tokens`` (an estimate), or the model's own counter.
        language: Language of the prompts, ``"zh"`` or ``"en"``. None: the question's language.
        title: Returns the line above a passage from its node.
        on_error: Reaction to a model that fails before any text was streamed: ``"raise"`` an
            ``AnswerError``, or ``"extract"`` the best passages as the answer, with a note.
        max_calls: Maximum number of model calls per answer. Further results are omitted.
        timeout: Seconds per model call, streamed or not. None: the model's client decides.
        total_timeout: Seconds per question, including the search. For a stream the time starts
            with the first text. At the end, the answer so far is returned with a note. Without an
            answer so far, ``on_error`` decides; a search that takes longer is an ``AnswerError``.

    Raises:
        TypeError: If the retriever, the model or a setting has the wrong type.
        ValueError: If a name is unknown, a number out of range, a prompt lacks a place, or the
            context window has no space for the prompts.

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
        context_window: int | None = None,
        num_output: int = 512,
        history_window: int = 1024,
        length: Callable[[str], int] = count_tokens,
        language: Language | None = None,
        title: Callable[[Node], str] = passage_title,
        on_error: OnError = "raise",
        max_calls: int = 64,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> None:
        if qa is not None and not all(
            callable(getattr(qa, name, None)) for name in ("answer", "aanswer", "recommend")
        ):
            raise TypeError(f"qa must be a QaRetriever, got {qa!r:.80}")
        self.mode: AnswerMode = choice(mode, "mode", get_args(AnswerMode))
        self.check: AnswerCheck | None = choice(check, "check", (None, *get_args(AnswerCheck)))
        self.retriever = as_retriever(retriever)
        self.llm: LLM = as_llm(llm)
        self.qa = qa
        self.top_k = None if top_k is None else check_top_k(top_k)
        self.max_tokens = None if max_tokens is None else whole(max_tokens, "max_tokens", 1)
        self.min_score = check_min_score(min_score, self.retriever)
        window = window_of(self.llm) if context_window is None else context_window
        self.context_window = whole(window, "context_window", 1)
        self.num_output = whole(num_output, "num_output", 0)
        self.history_window = whole(history_window, "history_window", 0)
        self.max_calls = whole(max_calls, "max_calls", 1)
        self.language: Language | None = choice(language, "language", (None, *get_args(Language)))
        self.on_error: OnError = choice(on_error, "on_error", get_args(OnError))
        for name, function in (("length", length), ("title", title)):
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {function!r:.80}")
        self.length, self.title = length, title
        self.timeout = seconds(timeout, "timeout")
        self.total_timeout = seconds(total_timeout, "total_timeout")
        self._prompts = replace_prompts(PROMPTS, {} if prompts is None else prompts)
        check_prompts(self, self._prompts)

    @property
    def prompt_limit(self) -> int:
        """The maximum length of a prompt."""
        return self.context_window - self.num_output

    def __repr__(self) -> str:
        return f"QueryEngine({self.retriever!r}, {self.llm.name!r}, {self.mode!r})"

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        check_prompts(self, prompts)
        self._prompts = prompts

    def query(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Return the answer to a question.

        Args:
            question: The question.
            history: The conversation so far, oldest first: pairs ``(question, answer)``, or
                messages ``{"role": "user", "content": ...}``. The model rewrites the question
                into one that makes sense without the conversation.
            top_k: The number of results. None for the engine's own.
            filters: Conditions on metadata, for the retriever and for preset answers.

        Raises:
            TypeError: If the question is not a string, or the history is invalid.
            ValueError: If the question leaves no space for a passage.
            AnswerError: If the model fails or ``total_timeout`` is over, with ``on_error="raise"``.
        """
        return run(self._plan(question, history, top_k, filters)[0])

    async def aquery(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Async version of ``query``."""
        return await arun(self._plan(question, history, top_k, filters)[0])

    def stream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AnswerStream:
        """Stream the answer: iterate over the parts of its text.

        The last call of the model is streamed. A preset answer and the best of several answers
        come in one part. If the model fails in the middle, the stream raises, and ``answer`` has
        the text up to the failure.
        """
        return AnswerStream(*self._plan(question, history, top_k, filters))

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
        """Return a copy that is restricted to passages and preset answers. See ``restrict``."""
        other = copy.copy(self)
        other.retriever = restrict(self.retriever, filters)
        other.qa = None if self.qa is None else restrict(self.qa, filters)
        return other

    def check_current(self, answer: Answer) -> SourceChanges:
        """Report the changes of an answer's sources, without a language model.

        Cited texts are compared with their documents; a text that only moved is unchanged. One
        search with the answer's query, ``top_k``, ``filters`` and ``min_score`` finds new results.
        A strategy is replaced by its inner retriever in this search. Preset answers need no
        search.

        Args:
            answer: An answer of this engine, also one from ``Answer.from_dict``.

        Raises:
            ValueError: If the retriever searches no graph, or needs a language model.

        Example:
            >>> from nodekin.nodegraph import Document, NodeGraph
            >>> graph = NodeGraph()
            >>> ids = graph.add(Document("The Nile is 6,650 km long.", id="nile"))
            >>> engine = QueryEngine(graph, lambda prompt: "6,650 km [1].")
            >>> answer = engine.query("How long is the Nile?")
            >>> engine.check_current(answer).is_current
            True
            >>> ids = graph.add(Document("The Nile is 6,853 km long.", id="nile"))
            >>> changes = engine.check_current(answer)
            >>> [source.text for source in changes.changed], [new.text for new in changes.new]
            (['The Nile is 6,650 km long.'], ['The Nile is 6,853 km long.'])
        """
        return run(partial(self._check_plan, answer))

    async def acheck_current(self, answer: Answer) -> SourceChanges:
        """Async version of ``check_current``."""
        return await arun(partial(self._check_plan, answer))

    async def _check_plan(self, answer: Answer) -> SourceChanges:
        context = self._context(answer.question, answer.top_k, answer.filters)
        context.min_score, context.searched = answer.min_score, answer.searched
        results: Sequence[ScoredNode] = []
        if answer.preset is None and answer.searched.strip():
            results = await answer_results(context, without_strategies(self.retriever))
        retrievers = [item for item in (self.retriever, self.qa) if item is not None]
        return await Do(partial(compare_sources, answer, results, retrievers), kind="work")

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
    ) -> tuple[Part[Answer], AnswerContext]:
        """Return a function that answers, and its context. Invalid arguments raise immediately."""
        if not isinstance(question, str):
            raise TypeError(f"a question is a str, not {type(question).__name__} {question!r:.80}")
        if filters is not None:
            parse_filters(filters)
        limit = self.top_k if top_k is None else check_top_k(top_k)
        context = self._context(question, limit, filters)
        pairs: Sequence[Pair] = []
        if history is not None:
            pairs, context.notes = parse_history(history)
        return partial(answer_question, context, self.retriever, self.qa, pairs), context

    def _context(self, question: str, top_k: int | None, filters: Filters | None) -> AnswerContext:
        return AnswerContext(
            *(self, self._prompts, question, self.language or language_of(question)),
            top_k=top_k,
            max_tokens=self.max_tokens,
            filters=filters,
            min_score=self.min_score,
        )


class Conversation:
    """A conversation with a query engine. A question may refer to earlier questions.

    Conversations of one engine are independent. Several threads may share a conversation; the
    history contains only completed answers. An answer that fails, or whose stream is not read to
    its end, is not stored.

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
    """The properties of both kinds of stream."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context

    @property
    def answer(self) -> Answer:
        """The answer. Before the end, and if the model fails, the part so far."""
        return self._context.current_answer()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, complete at the first text. ``cited`` is set at the end."""
        return self.answer.sources

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._context.answer is not None

    def on_end(self, callback: Callable[[Answer], None]) -> None:
        """Call a function with the answer after the stream was read to its end."""
        self._context.callbacks.append(callback)


class AnswerStream(_Stream, Iterator[str]):
    """An iterator over an answer's text as the model writes it.

    Work starts when the first text is read. ``with`` (or ``close``) stops the model early.

    Attributes:
        answer: The complete answer at the end. Before, the part so far.
        sources: The passages, complete at the first text.
        ended: Whether the answer is complete.
    """

    def __init__(self, answer: Part[Answer], context: AnswerContext) -> None:
        super().__init__(context)
        self._texts = _texts(answer, context)

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
        """Stop the stream."""
        self._texts.close()

    def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        for _ in self:
            pass
        return self.answer


class AsyncAnswerStream(_Stream, AsyncIterator[str]):
    """An async iterator over an answer's text. See ``AnswerStream``."""

    def __init__(self, answer: Part[Answer], context: AnswerContext) -> None:
        super().__init__(context)
        self._texts = _async_texts(answer, context)

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
        """Stop the stream."""
        await self._texts.aclose()

    async def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        async for _ in self:
            pass
        return self.answer


def _texts(answer: Part[Answer], context: AnswerContext) -> Generator[str, None, None]:
    yield from stream(answer, context.emit)
    yield from _end(context)


async def _async_texts(answer: Part[Answer], context: AnswerContext) -> AsyncGenerator[str, None]:
    async with aclosing(astream(answer, context.emit)) as texts:
        async for text in texts:
            yield text
    for text in _end(context):
        yield text


def _end(context: AnswerContext) -> Iterator[str]:
    """Yield the remaining text of the answer, then call the callbacks."""
    if remaining := context.remaining_text():
        yield remaining
    for callback in context.callbacks:
        callback(context.current_answer())
