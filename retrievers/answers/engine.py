"""Answer questions from what a retriever finds, with sources."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Literal

from ...nodegraph import LLM, Node, count_tokens
from ...nodegraph.models import Language, as_llm
from ..filters import Filters, parse_filters
from ..plans import Plan, Prompt, arun, astream, run, stream
from ..protocols import RetrieverProtocol
from ..validation import check_retriever, check_top_k
from .answer import Answer
from .context import title_of
from .conversation import Conversation, pairs_of
from .pipeline import answering
from .prompts import Given, prompts_with
from .qa import QaRetriever
from .settings import AnswerMode, OnError, Settings
from .stream import AnswerStream, AsyncAnswerStream, Progress


class QueryEngine:
    """Retrieve passages for a question, and let a model answer from them and cite them.

    Modes, by what they are good for:

    - ``"stuff"``: one call with all passages that fit; the choice for most questions.
    - ``"refine"``: the first passages that fit, then the answer is improved with the next ones;
      for answers that many long passages contribute to. One call after the other.
    - ``"map_reduce"``: a partial answer from each passage, all at once, made into one answer; the
      same for when time matters more than calls.
    - ``"map_rerank"``: an answer from each passage, all at once, of which the model's surest is
      taken; for questions that one passage answers.

    Args:
        retriever: Any retriever, also a strategy.
        llm: The model, in any form that ``LLM`` takes.
        mode: How passages become an answer.
        qa: Question-answer pairs: a question that is one of theirs is answered without a model.
        prompts: Prompts in place of the built-in ones (``engine.prompts``), by name: ``"answer"``
            (stuff, the first call of refine), ``"refine"``, ``"partial"`` and ``"reduce"``
            (map_reduce), ``"rank"`` (map_rerank), ``"condense"``; and what users are told,
            ``"not_found"`` and ``"extract"``. Each is a text, or texts by language. A prompt of
            yours should ask for the marks that ``found`` is known by: NO_ANSWER, or 无答案.
        budget: How long a prompt and the answer to it may be together, in what ``length``
            counts: the model's context window.
        reserve: What of that is kept for the answer.
        history_window: How much of a conversation is shown to the model, from its newest pair on.
        length: Measures a text; ``count_tokens`` is an estimate, the model's own counter exact.
        top_k: How many results to retrieve; None for the retriever's own number.
        language: Of the prompts: ``"zh"``, ``"en"``, or ``"auto"`` for the question's.
        title: What stands above a passage, made from its node.
        on_error: Where the model fails and nothing was told yet: ``"raise"`` an ``AnswerError``,
            or ``"extract"``: answer with the best passages themselves, and say so in the notes.
        max_calls: How often the model is asked for one answer at most; passages that would need
            more are left out, and that is told.
        timeout: Seconds to wait for each answer of the model; what is streamed has no such limit.

    Raises:
        TypeError: If the retriever or model is none, or a setting of the wrong type.
        ValueError: If a name is unknown, a number out of range, a prompt lacks a place, or the
            budget has no room for the prompts.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "It has 6,650 km [1].")
        >>> answer = engine.query("How long is the Nile?")
        >>> print(answer, [source.text for source in answer.cited])
        It has 6,650 km [1]. ['The Nile is 6,650 km long.']
        >>> engine.query("And the Rhine?").found
        False
    """

    def __init__(
        self,
        retriever: RetrieverProtocol,
        llm: object,
        mode: AnswerMode = "stuff",
        *,
        qa: QaRetriever | None = None,
        prompts: Mapping[str, Given] | None = None,
        budget: int = 4096,
        reserve: int = 512,
        history_window: int = 1024,
        length: Callable[[str], int] = count_tokens,
        top_k: int | None = None,
        language: Language | Literal["auto"] = "auto",
        title: Callable[[Node], str] = title_of,
        on_error: OnError = "raise",
        max_calls: int = 64,
        timeout: float | None = None,
    ) -> None:
        if qa is not None and not all(
            callable(getattr(qa, name, None)) for name in ("answer", "aanswer", "recommend")
        ):
            raise TypeError(f"qa is a QaRetriever, not {qa!r:.80}")
        self.top_k = None if top_k is None else check_top_k(top_k)
        self.settings = Settings(
            check_retriever(retriever),
            as_llm(llm),
            mode,
            prompts_with(prompts),
            qa=qa,
            budget=budget,
            reserve=reserve,
            history_window=history_window,
            length=length,
            language=language,
            title=title,
            on_error=on_error,
            max_calls=max_calls,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"QueryEngine({self.retriever!r}, {self.llm.name!r}, {self.mode!r})"

    @property
    def retriever(self) -> RetrieverProtocol:
        """What passages are retrieved with."""
        return self.settings.retriever

    @property
    def llm(self) -> LLM:
        """The model."""
        return self.settings.llm

    @property
    def qa(self) -> QaRetriever | None:
        """The question-answer pairs that are answered from without a model."""
        return self.settings.qa

    @property
    def mode(self) -> AnswerMode:
        """How passages become an answer."""
        return self.settings.mode

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by name, to read; others are given when an engine is made."""
        return MappingProxyType(dict(self.settings.prompts))

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
            question: What is asked.
            history: The conversation so far, the oldest first: pairs ``(question, answer)``, or
                messages ``{"role": "user", "content": ...}``. The model makes a question of it
                that is understood without it.
            top_k: In place of the engine's own.
            filters: Conditions on metadata, for the retriever and for preset answers.

        Raises:
            TypeError: If the question is no text, or the history none.
            ValueError: If the question leaves no room for a passage.
            AnswerError: If the model fails, with ``on_error="raise"``.
        """
        return run(self._plan(question, history, top_k, filters, Progress(question)))

    async def aquery(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Return the same without blocking the event loop."""
        return await arun(self._plan(question, history, top_k, filters, Progress(question)))

    def stream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AnswerStream:
        """Return the answer as the model writes it: iterate over the pieces of its text.

        The last call of the model is what is streamed; what is not made by one call (a preset
        answer, the surest of several) comes as one piece. A model that breaks off raises, and
        ``answer`` has what there is.
        """
        return self._stream(question, history, top_k, filters)

    def astream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AsyncAnswerStream:
        """Return the same, for ``async for``."""
        return self._astream(question, history, top_k, filters)

    def conversation(self, history: Iterable[Any] | None = None) -> Conversation:
        """Return a conversation, which keeps what was said."""
        return Conversation(self, history)

    def recommend(
        self, question: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[str]:
        """Return questions close to this one that have preset answers.

        Raises:
            ValueError: If the engine has no question-answer pairs.
        """
        found = self._pairs().recommend(question, top_k, filters=filters)
        return [result.node.text for result in found]

    async def arecommend(
        self, question: str, top_k: int = 3, *, filters: Filters | None = None
    ) -> list[str]:
        """Return the same without blocking the event loop."""
        found = await self._pairs().arecommend(question, top_k, filters=filters)
        return [result.node.text for result in found]

    def _pairs(self) -> QaRetriever:
        if self.qa is None:
            raise ValueError("the engine has no question-answer pairs; give it qa=QaRetriever(...)")
        return self.qa

    def _stream(
        self,
        question: str,
        history: Iterable[Any] | None,
        top_k: int | None,
        filters: Filters | None,
        keep: Callable[[Answer], None] | None = None,
    ) -> AnswerStream:
        progress = Progress(question)
        plan = self._plan(question, history, top_k, filters, progress)

        def pieces() -> Generator[str, None, None]:
            yield from stream(plan)
            if rest := progress.untold():
                yield rest
            if keep is not None:
                keep(progress.answer())

        return AnswerStream(pieces(), progress)

    def _astream(
        self,
        question: str,
        history: Iterable[Any] | None,
        top_k: int | None,
        filters: Filters | None,
        keep: Callable[[Answer], None] | None = None,
    ) -> AsyncAnswerStream:
        progress = Progress(question)
        plan = self._plan(question, history, top_k, filters, progress)

        async def pieces() -> AsyncGenerator[str, None]:
            async with aclosing(astream(plan)) as told:
                async for piece in told:
                    yield piece
            if rest := progress.untold():
                yield rest
            if keep is not None:
                keep(progress.answer())

        return AsyncAnswerStream(pieces(), progress)

    def _plan(
        self,
        question: str,
        history: Iterable[Any] | None,
        top_k: int | None,
        filters: Filters | None,
        progress: Progress,
    ) -> Plan[Answer]:
        """Return the answer as a plan; what is wrong with the arguments is raised at once."""
        if not isinstance(question, str):
            raise TypeError(f"a question is a str, not {type(question).__name__} {question!r:.80}")
        if filters is not None:
            parse_filters(filters)
        limit = self.top_k if top_k is None else check_top_k(top_k)
        pairs, notes = pairs_of(history) if history is not None else ([], [])
        progress.notes += notes
        return answering(self.settings, question, pairs, limit, filters, progress)
