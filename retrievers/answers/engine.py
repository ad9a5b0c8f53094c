"""A query engine, which answers questions from retrieved passages, completely or as a stream."""

from __future__ import annotations

import copy
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...nodegraph.errors import explain_names
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.model_objects import attribute
from ...nodegraph.models.templates import Language, language_of
from ...nodegraph.splitters.chunking import count_tokens
from ..filters import Filters, parse_filters
from ..foreign.foreign_retriever import as_retriever
from ..plans.plan import Part, arun, run, work
from ..plans.prompting import Prompt, PromptMixin, PromptReplacement, replace_prompts
from ..prompts.answer_prompts import PASSAGE_PROMPTS, PROMPTS, AnswerMode
from ..protocols import RetrieverLike
from ..restricted_retriever import restrict
from ..results import ScoredNode
from ..validation import check_min_score, check_top_k, choice, seconds, whole
from .answer import Answer
from .chat_history import parse_history
from .context import AnswerContext
from .current_check import SourceChanges, compare_sources, without_strategies
from .pipeline import answer_question, answer_results
from .qa import QaRetriever
from .stream import AnswerStream

if TYPE_CHECKING:
    from typing_extensions import Self


DEFAULT_WINDOW = 16_000
"""The number of tokens that a prompt and its answer may have if the context window is unknown."""


def window_of(llm: LLM) -> int:
    """Return the context window of a model in tokens.

    The size is read from LlamaIndex models (``metadata``), LangChain models (``profile``) and
    objects with a ``context_window``. For other models, a default is returned.
    """
    model = llm.model
    metadata = attribute(model, "metadata")
    profile = attribute(model, "profile")
    windows = (
        attribute(model, "context_window"),
        attribute(metadata, "context_window"),
        profile.get("max_input_tokens") if isinstance(profile, Mapping) else None,
    )
    known = (window for window in windows if type(window) is int and window > 0)
    return next(known, DEFAULT_WINDOW)


def _checked_top_k(top_k: int | None) -> int | None:
    if top_k is None:
        return None
    return check_top_k(top_k)


def _checked_length(length: Callable[[str], int]) -> Callable[[str], int]:
    if not callable(length):
        raise TypeError(f"length must be a function, got {length!r:.80}")
    return length


class QueryEngine(PromptMixin):
    """A query engine that answers questions with a language model and cites the retrieved passages.

    The following modes are supported:

    - ``"stuff"``: One call with all passages that fit into the context window. This mode is
      suitable for most questions.
    - ``"refine"``: One call with the first passages, followed by calls that improve the answer with
      the next passages. This mode is suitable for answers that are based on many long passages.
    - ``"map_reduce"``: One call per passage in parallel, followed by a call that combines the
      partial answers. This mode is faster than ``"refine"``, but it needs more calls.
    - ``"map_rerank"``: One call per passage in parallel. The answer with the highest confidence is
      returned. This mode is suitable for questions that a single passage answers.

    Args:
        retriever: A retriever, which may be a strategy, or a graph. For a graph, the default search
            is used.
        llm: The language model, in any form that ``LLM`` accepts.
        mode: The mode.
        qa: Question-answer pairs. A question that is equal to the question of a pair, or similar
            enough, is answered without calling the model.
        prompts: Prompts by name that replace the prompts in ``engine.prompts``. The names are
            ``"answer"`` (for ``"stuff"``, and for the first call of ``"refine"``), ``"refine"``,
            ``"partial"`` and ``"reduce"`` (for ``"map_reduce"``), ``"rank"`` (for ``"map_rerank"``)
            and ``"condense"``. ``"not_found"`` is the text that users see if nothing is found. Each
            value is a text, or a mapping of texts by language. A custom prompt should ask for the
            marker NO_ANSWER (or 无答案), which determines ``Answer.answered``.
        top_k: The number of results. Defaults to the ``top_k`` of the retriever.
        max_tokens: The maximum number of tokens of the passages in a prompt; see ``BudgetResults``.
            Defaults to 1,600 tokens for the default search without ``top_k``, and otherwise to the
            space in the context window.
        min_score: The minimum score. Results with a lower score are ignored. If no result remains,
            the model is not called, and the answer states that nothing was found. Scores of the
            default search are between 0 and 1, and 0.4 is a good initial value (docs/scores.md). If
            None, all results are used.
        check: If ``"quotes"``, the quotations and cited sentences of each answer are checked
            without a model call, and the results are stored in ``Answer.quotes`` and
            ``Answer.notes``. See ``check_quotes``.
        context_window: The maximum length of a prompt together with its answer, in the unit of
            ``length``. Defaults to the context window of the model, or to 16,000 tokens if the
            window is unknown. Results that do not fit are stored in ``Answer.omitted``, and
            ``Answer.notes`` states their number.
        num_output: The part of the context window that is reserved for the answer.
        history_window: The maximum length of the conversation in the prompt that rewrites a
            question. The oldest pairs are omitted.
        length: A function that returns the length of a text, such as the model's tokenizer.
            Defaults to ``count_tokens``, which estimates the number of tokens.
        language: The language of the prompts, ``"zh"`` or ``"en"``. If None, it is the language of
            the question.
        timeout: The timeout of each model call in seconds. If None, the timeout of the model's
            client applies.
        total_timeout: The time limit per question in seconds, including the search. For a stream,
            the time is measured from the moment when the first text is read. When the time is over,
            the answer so far is returned with a note. If no part of the answer exists yet, or if
            the search takes longer, ``AnswerError`` is raised.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a name is unknown, a number is out of range, a prompt lacks a placeholder,
            or the context window has no space for the prompts.

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
        check: Literal["quotes"] | None = None,
        context_window: int | None = None,
        num_output: int = 512,
        history_window: int = 1024,
        length: Callable[[str], int] = count_tokens,
        language: Language | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> None:
        if not isinstance(qa, QaRetriever | None):
            raise TypeError(f"qa must be a QaRetriever, got {qa!r:.80}")
        self.mode: AnswerMode = choice(mode, "mode", get_args(AnswerMode))
        self.check: Literal["quotes"] | None = choice(check, "check", (None, "quotes"))
        self.retriever = as_retriever(retriever)
        self.llm: LLM = as_llm(llm)
        self.qa = qa
        self.top_k = _checked_top_k(top_k)
        self.max_tokens = None if max_tokens is None else whole(max_tokens, "max_tokens", 1)
        self.min_score = check_min_score(min_score, self.retriever)
        if context_window is None:
            context_window = window_of(self.llm)
        self.context_window = whole(context_window, "context_window", 1)
        self.num_output = whole(num_output, "num_output", 0)
        self.history_window = whole(history_window, "history_window", 0)
        self.language: Language | None = choice(language, "language", (None, *get_args(Language)))
        self.length = _checked_length(length)
        self.timeout = seconds(timeout, "timeout")
        self.total_timeout = seconds(total_timeout, "total_timeout")
        self._replace_prompts(replace_prompts(PROMPTS, {} if prompts is None else prompts))

    @property
    def prompt_limit(self) -> int:
        """The maximum length of a prompt."""
        return self.context_window - self.num_output

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        """Set the prompts of the engine.

        Raises:
            ValueError: If a prompt that the mode uses leaves no space for passages.
        """
        names = [*PASSAGE_PROMPTS[self.mode], "condense"]
        if self.mode == "map_reduce":
            names.append("reduce")
        languages = get_args(Language) if self.language is None else (self.language,)
        for name in names:
            for language in languages:
                length = self.length(prompts[name].fill(language))
                if length >= self.prompt_limit:
                    raise ValueError(
                        f"context_window={self.context_window!r} less "
                        f"num_output={self.num_output!r} leaves {self.prompt_limit}, and the "
                        f"prompt {name!r} alone measures {length}; raise context_window, or "
                        "shorten the prompt"
                    )
        self._prompts = prompts

    def __repr__(self) -> str:
        return f"QueryEngine({self.retriever!r}, {self.llm.name!r}, {self.mode!r})"

    @explain_names
    def query(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Answer a question.

        Args:
            question: The question.
            history: The earlier conversation, oldest first, as pairs ``(question, answer)`` or as
                messages ``{"role": "user", "content": ...}``. If given, the model rewrites the
                question so that it can be understood without the conversation.
            top_k: The number of results. Defaults to the ``top_k`` of the engine.
            filters: Conditions on metadata, which apply to the retriever and to preset answers.

        Raises:
            TypeError: If the question is not a string, or the history is invalid.
            ValueError: If the question leaves no space for a passage.
            AnswerError: If the model fails or ``total_timeout`` is exceeded.
        """
        return run(self._plan(question, history, top_k, filters)[0])

    @explain_names
    async def aquery(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> Answer:
        """Asynchronous version of ``query``."""
        return await arun(self._plan(question, history, top_k, filters)[0])

    def stream(
        self,
        question: str,
        *,
        history: Iterable[Any] | None = None,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> AnswerStream:
        """Return an iterator over the text of the answer. It takes the arguments of ``query``.

        ``astream`` is the same method, for use with ``async for``. Only the last model call is
        streamed. A preset answer, or an answer in the mode ``"map_rerank"``, arrives in one piece.
        If the model fails while it answers, the stream raises ``AnswerError``, and
        ``stream.answer`` contains the text up to the failure.
        """
        return AnswerStream(*self._plan(question, history, top_k, filters))

    astream = stream

    def restricted(self, filters: Filters) -> Self:
        """Return a copy whose passages and preset answers match the filters. See ``restrict``."""
        other = copy.copy(self)
        other.retriever = restrict(self.retriever, filters)
        other.qa = None if self.qa is None else restrict(self.qa, filters)
        return other

    def check_current(self, answer: Answer) -> SourceChanges:
        """Check whether the sources of an answer have changed, without calling a model.

        The cited texts are compared with their documents. A text that was only moved within its
        document is treated as unchanged. In addition, the search is repeated with the query,
        ``top_k``, ``filters`` and ``min_score`` of the answer to find new results. If the retriever
        is a strategy, its inner retriever is used. For a preset answer, nothing is searched.

        Args:
            answer: An answer of this engine, which may have been restored with
                ``Answer.from_dict``.

        Raises:
            ValueError: If the retriever does not search a graph, or needs a language model.

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
        return run(self._check_plan, answer)

    async def acheck_current(self, answer: Answer) -> SourceChanges:
        """Asynchronous version of ``check_current``."""
        return await arun(self._check_plan, answer)

    async def _check_plan(self, answer: Answer) -> SourceChanges:
        context = self._context(answer.question, answer.top_k, answer.filters)
        context.min_score = answer.min_score
        context.searched = answer.searched
        results: Sequence[ScoredNode] = []
        if answer.preset is None and answer.searched.strip():
            results = await answer_results(context, without_strategies(self.retriever))
        retrievers = [item for item in (self.retriever, self.qa) if item is not None]
        return await work(compare_sources, answer, results, retrievers)

    def _plan(
        self,
        question: str,
        history: Iterable[Any] | None,
        top_k: int | None,
        filters: Filters | None,
    ) -> tuple[Part[Answer], AnswerContext]:
        """Validate the arguments, and return a function that answers, with the context it uses."""
        if not isinstance(question, str):
            raise TypeError(f"a question must be a string, got {question!r:.80}")
        if filters is not None:
            parse_filters(filters)
        limit = _checked_top_k(top_k) or self.top_k
        context = self._context(question, limit, filters)
        return partial(answer_question, context, parse_history(history)), context

    def _context(self, question: str, top_k: int | None, filters: Filters | None) -> AnswerContext:
        language = self.language or language_of(question)
        return AnswerContext(self, question, language, top_k, filters, self.min_score)
