"""Metrics by a judge: a language model that decides what no formula can.

Each is made of yes-or-no decisions, which models agree on more than on grades, and which can be
read. What a judge decides is kept by its name and the prompt, so that set-ups which retrieve the
same passages are judged alike, and for the price of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...nodegraph.errors import ModelError, nearest_names
from ...nodegraph.models.answer_cache import AnswerCache, answer_key
from ...nodegraph.models.language import Language, language_of
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.output.verdicts import Verdict, parse_numbers, parse_verdicts
from ...nodegraph.store import NodeStore
from ..plans.plan import run
from ..plans.prompting import PromptMixin, ask_and_parse, json_instruction
from ..tracing import trace
from ..validation import whole
from .judge_prompts import (
    NUMBERS_FORM,
    NUMBERS_SCHEMA,
    PROMPTS,
    VERDICT_FORM,
    VERDICT_SCHEMA,
    VERDICTS_FORM,
    VERDICTS_SCHEMA,
)
from .judged_measures import JUDGED_MEASURES, FailedJudgeError, numbered
from .judging import model_cost
from .metrics import Metric


class Judge(PromptMixin):
    """Let a language model judge results and answers.

    ``metric`` and ``metrics`` return what ``evaluate`` takes. A judge that fails, or whose answer
    can't be read when it was asked twice, gives "not judged" with the reason. Passages are fenced:
    nothing in them closes the place they are quoted in.

    Args:
        llm: The model: a function, a model of LangChain or LlamaIndex, ``OpenAIChat``, an ``LLM``.
        store: Where decisions are kept: the path of a file, or a store; None for memory. With a
            file the same evaluation costs nothing the next time. Failures are not kept.
        max_characters: How many characters of passages one prompt takes. A question with more is
            not judged: a judge that sees a part of the passages would blame the retriever.
        timeout: Seconds to wait for an answer; None leaves it to the model's client.

    Attributes:
        calls: How many answers the model has given.
        tokens: How many tokens their prompts and answers had, by ``count_tokens``.
        reused: How many decisions were there already.

    Raises:
        TypeError: If it is no language model.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers.evaluation import Dataset, Question, evaluate
        >>> graph = NodeGraph(progress=False)
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is."])
        >>> judge = Judge(lambda prompt: '{"quote": "not fermented", "verdict": "yes"}')
        >>> data = Dataset([Question("1", "Which tea is green?")])
        >>> name = "judged_context_relevance@1"
        >>> setups = {"words": Retriever(graph, "ROOT")}
        >>> evaluate(setups, data, [judge.metric(name)]).figure("words", name)
        Figure(value=1.0, low=0.0, high=1.0, judged=1, not_judged=0)
    """

    def __init__(
        self,
        llm: object,
        *,
        store: str | Path | NodeStore | None = None,
        max_characters: int = 24_000,
        timeout: float | None = None,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self.max_characters = whole(max_characters, "max_characters", 1)
        self.timeout = timeout
        self.calls = self.tokens = self.reused = 0
        self._answers = AnswerCache(store)
        self._lock = threading.Lock()
        self._prompts = PROMPTS

    def __repr__(self) -> str:
        spent = f"{self.calls} calls, {self.tokens} tokens, {self.reused} reused"
        return f"Judge({self.llm.name!r}, {spent})"

    def metrics(self, *names: str) -> list[Metric]:
        """Return metrics by their names; all of ``JUDGED_METRICS`` without.

        Raises:
            ValueError: If there is none of a name.
        """
        return [self.metric(name) for name in names or JUDGED_METRICS]

    def metric(self, name: str) -> Metric:
        """Return a metric by its name.

        - ``judged_context_recall``: the share of the statements of the right answer that the
          results support (context recall of Ragas: Es et al., 2024). Statements are sentences, of
          the first answer where a question has several.
        - ``judged_context_relevance``: the share of results that help to answer, each judged by
          itself (ARES: Saad-Falcon et al., 2024).
        - ``judged_sentence_relevance``: the share of the sentences of the results that are needed
          to answer (context relevance of Es et al., 2024).
        - ``groundedness``: the share of the statements of the answer that its sources support
          (faithfulness of Es et al., 2024; groundedness in TruLens' triad). An answer that says
          that the sources don't tell states nothing, and is not judged.
        - ``answer_relevance``: whether the answer is one to the question (ARES); of an answer that
          says that it is unknown 0, as in Ragas, without a call.
        - ``answer_correctness``: whether the answer says what one of the right answers says.

        Without any results the first three are 0, without a call.

        Args:
            name: One of these, for those of results with ``@`` and how many count.

        Raises:
            ValueError: If there is none of this name, or the number is below 1.
        """
        base, at, number = name.partition("@")
        if base not in JUDGED_MEASURES:
            raise ValueError(
                f"there is no metric {base!r} by a judge; there are "
                f"{nearest_names(base, JUDGED_METRICS)}"
            )
        measure, of_results = JUDGED_MEASURES[base]
        if at and not (of_results and number.isascii() and number.isdigit() and int(number)):
            ways = f"as in '{base}@5'" if of_results else f"it is {base!r} without"
            raise ValueError(f"{name!r} lets no number of results count; {ways}")
        k = int(number) if at else None
        return Metric(name, partial(measure, self, k=k), k, asks_model=True)

    def close(self) -> None:
        """Close the file of decisions, if there is one; the next use opens it again."""
        self._answers.close()

    def decide(
        self, kind: str, query: str, count: int | None = None, **values: str
    ) -> tuple[list[Verdict], int, int]:
        """Return the verdicts on a filled prompt, and what calls and tokens they took when made.

        Args:
            kind: The name of the prompt.
            query: The question, which decides the language.
            count: How many numbered items there are; None for the one thing asked.
            **values: What else the prompt takes.

        Raises:
            FailedJudgeError: If the model fails, or its answers can't be read.
        """
        form, schema = (
            (VERDICT_FORM, VERDICT_SCHEMA) if count is None else (VERDICTS_FORM, VERDICTS_SCHEMA)
        )
        parse = partial(parse_verdicts, count=count or 1)
        entry = self._decided(_Request(kind, form, schema, parse), query, values)
        return [Verdict(*verdict) for verdict in entry["value"]], entry["calls"], entry["tokens"]

    def select(self, query: str, sentences: Sequence[str]) -> tuple[list[int], int, int]:
        """Return which numbered sentences are needed, and the calls and tokens.

        Raises:
            FailedJudgeError: If the model fails, or its answers can't be read.
        """
        parse = partial(parse_numbers, count=len(sentences))
        request = _Request("sentences", NUMBERS_FORM, NUMBERS_SCHEMA, parse)
        entry = self._decided(request, query, {"sentences": numbered(sentences)})
        return entry["value"], entry["calls"], entry["tokens"]

    def _decided(self, request: _Request, query: str, values: Mapping[str, str]) -> dict[str, Any]:
        language: Language = language_of(query)
        prompt = self._prompts[request.kind].fill(language, query=query, **values)
        prompt += json_instruction(request.form, language)
        new = []

        def ask() -> dict[str, Any]:
            new.append(True)
            failure: ModelError | None = None
            value: Any = None
            with trace() as span:
                try:
                    value = run(
                        ask_and_parse(
                            self.llm,
                            prompt,
                            request.parse,
                            language,
                            schema=request.schema,
                            timeout=self.timeout,
                        )
                    )
                except ModelError as error:
                    failure = error
            calls, tokens = model_cost(span)
            with self._lock:
                self.calls += calls
                self.tokens += tokens
            if failure is not None:
                raise FailedJudgeError(failure, calls, tokens) from failure
            return {"value": value, "calls": calls, "tokens": tokens}

        key = answer_key(self.llm.name, prompt, {"judged": request.kind})
        entry: dict[str, Any] = self._answers.ask(key, ask)
        if not new:
            with self._lock:
                self.reused += 1
        return entry


class _Request(NamedTuple):
    """What a judge is asked, by the name of the prompt, and how its answer is read."""

    kind: str
    form: str
    schema: Mapping[str, Any]
    parse: Callable[[str], Any]


JUDGED_METRICS = tuple(JUDGED_MEASURES)
"""The names of the metrics of a ``Judge``; the last three are of answers of query engines."""
