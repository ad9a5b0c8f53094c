"""The state of a query engine while it answers one question."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from ...nodegraph.errors import ModelError
from ...nodegraph.models.output.free_text import FinalAnswer, FinalAnswerParser, parse_final_answer
from ...nodegraph.models.templates import Language, QuotedText
from ...nodegraph.models.usage import Usage
from ..filters import Filters
from ..plans.effects import ask
from ..plans.limits import CallLimits
from ..plans.plan import All, work
from ..strategies.outcome import SubResults, answer_texts
from ..strategies.passages import neutralize
from .answer import Answer, OmittedResult, Source
from .citations import only_cites
from .settings import AnswerSettings
from .sources import fitting_parts, format_sources

T = TypeVar("T")

_SUB_ANSWER_FIELDS = {"answer": "passages", "reduce": "partials"}
"""The placeholder in each prompt that is filled with the answers to sub-questions."""

_SUB_ANSWER_HEADING: Mapping[Language, str] = {
    "zh": "下面是事先根据资料对问题各部分作出的简短回答，供参考（引用时仍标资料编号）：",
    "en": "Parts of the question were answered from the passages before. Use these answers, check "
    "them, and cite the passages, not them:",
}


@dataclass(slots=True)
class AnswerContext:
    """The state of a query engine while it answers one question.

    All steps of the engine share this object and add to it.

    Attributes:
        engine: The settings of the engine.
        question: The question of the user.
        language: The language of the prompts.
        top_k: The number of search results. If None, the ``top_k`` of the retriever is used.
        filters: The filters of the search and of the preset answers.
        min_score: The minimum score. Results with a lower score are ignored.
        notes: The notes of the answer.
        searched: The search query. It is the question, or the standalone question derived from a
            conversation.
        candidates: The sources before they are numbered, best first.
        sources: The numbered passages in the prompts.
        omitted: The results that are not included in the prompts.
        streamed: The texts that were streamed so far.
        parser: The parser that separates the answer from other parts of the model's output.
        certain: The numbers of sources that the answer uses even if it does not cite them.
        confidence: The confidence of the model in the answer.
        limits: The object that counts the model calls and limits their time.
        answer: The complete answer, or None while the question is being answered.
        sub_answers: The answers to sub-questions, formatted for a prompt.
        strategy_usage: The number and the tokens of model calls by retrieval strategies.
    """

    engine: AnswerSettings
    question: str
    language: Language
    top_k: int | None
    filters: Filters | None
    min_score: float | None
    notes: list[str] = field(default_factory=list)
    searched: str = ""
    candidates: list[Source] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    omitted: list[OmittedResult] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    parser: FinalAnswerParser = field(default_factory=FinalAnswerParser)
    certain: tuple[int, ...] = ()
    confidence: float | None = None
    limits: CallLimits = field(default_factory=CallLimits)
    answer: Answer | None = None
    sub_answers: str = ""
    strategy_usage: Usage = field(default_factory=Usage)

    def prompt(self, name: str, **values: object) -> str:
        """Fill a prompt with the search query and other values."""
        prompt = self.engine.prompts[name]
        field = _SUB_ANSWER_FIELDS.get(name)
        if field and self.sub_answers:
            values[field] = QuotedText(f"{self.sub_answers}\n{values.get(field, '')}")
        return prompt.fill(self.language, question=self.searched, **values)

    def use_sub_answers(self, parts: Sequence[SubResults]) -> None:
        """Insert the answers to sub-questions before the passages, in up to a quarter of the
        prompt.

        The answers are not numbered, because only passages can be cited.
        """
        answers = answer_texts(parts, self.language)
        heading = _SUB_ANSWER_HEADING[self.language]
        omitted = 0
        while omitted < len(answers):
            lines = neutralize("\n".join(answers[: len(answers) - omitted]))
            text = f"{heading}\n<partial>\n{lines}\n</partial>\n"
            if self.engine.length(text) <= self.engine.prompt_limit // 4:
                self.sub_answers = text
                break
            omitted += 1
        if omitted:
            self.notes.append(f"no space for {omitted} of {len(answers)} answers to sub-questions")

    def passages_prompt(self, name: str, sources: Iterable[Source], **values: object) -> str:
        """Fill a prompt with passages."""
        return self.prompt(name, passages=format_sources(sources), **values)

    def has_space(self, name: str, sources: Iterable[Source], **values: object) -> bool:
        """Return whether a prompt with these passages fits into the context window."""
        return self.is_short(self.passages_prompt(name, sources, **values))

    def is_short(self, prompt: str) -> bool:
        """Return whether a prompt fits into the context window."""
        return self.engine.length(prompt) <= self.engine.prompt_limit

    def space(self, name: str) -> int:
        """Return the space for passages in a prompt.

        A negative number means that no passage fits.
        """
        empty = self.passages_prompt(name, (), answer="")
        return self.engine.prompt_limit - self.engine.length(empty)

    def added_length(self, name: str, source: Source, **values: object) -> int:
        """Return the length that a passage adds to a prompt, without the line break before it."""
        filled = self.passages_prompt(name, [source], **values)
        empty = self.passages_prompt(name, [], **values)
        return self.engine.length(filled) - self.engine.length(empty)

    def check_space(self, name: str) -> None:
        """Check that a prompt has space for at least one passage.

        Raises:
            ValueError: If the prompt and the question leave no space for a passage.
        """
        if self.candidates and not self.sources:
            limit = self.engine.prompt_limit
            raise ValueError(
                f"no space for a passage: the prompt {name!r} and the question measure "
                f"{limit - self.space(name)} of {limit}; raise context_window, or shorten the "
                f"question {self.searched!r:.60}"
            )

    async def ask(self, prompt: str, *, last: bool = False) -> FinalAnswer:
        """Return the answer of the model to a prompt. The last answer is streamed.

        Raises:
            ModelError: If the model fails or its answer is empty.
        """
        llm = self.engine.llm
        text = await ask(llm, prompt, timeout=self.engine.timeout, streamed=last)
        answer = await work(parse_final_answer, text, self.question)
        if answer.problem is not None:
            self.notes.append(f"the language model {llm.name!r} returned {answer.problem}")
        if answer.answered and only_cites(answer.text):
            raise ModelError(f"the language model {llm.name!r} gave an empty answer")
        return answer

    def emit(self, text: str) -> str:
        """Return the part of a streamed text that definitely belongs to the answer."""
        emitted = self.parser.feed(text)
        self.streamed.append(emitted)
        return emitted

    async def gather(
        self,
        function: Callable[[str], Coroutine[Any, Any, T]],
        prompts: Iterable[str],
        names: Sequence[str],
    ) -> list[T | None]:
        """Call a function for each prompt in parallel.

        If a model call fails, a note is added, and the result of the call is None.

        Raises:
            ModelError: If all calls fail.
        """
        outcomes = await All([partial(function, prompt) for prompt in prompts])
        failures = [outcome for outcome in outcomes if isinstance(outcome, ModelError)]
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, ModelError):
                self.notes.append(f"{name} failed: {outcome}")
            elif isinstance(outcome, Exception):
                raise outcome
        if failures and len(failures) == len(outcomes):
            raise failures[-1]
        return [None if isinstance(outcome, Exception) else outcome for outcome in outcomes]

    def number(self, source: Source) -> Source:
        """Return a copy of a source with the next free number."""
        return replace(source, number=len(self.sources) + 1)

    def omit(self, source: Source) -> None:
        """Record that a source does not fit into the context window."""
        for result in source.results:
            self.omitted.append(OmittedResult(result, "context_window"))

    def number_parts(self, has_space: Callable[[Source], bool]) -> list[Source]:
        """Number all candidates, and split their texts into parts that fit into a prompt.

        The parts of a source share its number. If no part of a source fits, the source is omitted.
        """
        parts: list[Source] = []
        for candidate in self.candidates:
            source = self.number(candidate)
            texts = fitting_parts(source, has_space)
            if not texts:
                self.omit(candidate)
                continue
            self.sources.append(source)
            parts += [replace(source, text=text, complete=len(texts) == 1) for text in texts]
        return parts

    def build_answer(
        self, text: str, sources: Iterable[Source], answered: bool, notes: Iterable[str] = ()
    ) -> Answer:
        """Create an answer from the recorded values, with a note on results that did not fit."""
        all_notes = [*self.notes, *notes]
        if count := sum(omission.reason == "context_window" for omission in self.omitted):
            noun = "result was" if count == 1 else "results were"
            window = self.engine.context_window
            note = f"{count} {noun} omitted because of context_window={window}"
            all_notes.append(note)
        return Answer(
            text,
            self.question,
            tuple(sources),
            answered,
            omitted=tuple(self.omitted),
            notes=tuple(dict.fromkeys(all_notes)),
            searched=self.searched,
            calls=self.limits.calls,
            usage=self.limits.usage + self.strategy_usage,
            confidence=self.confidence,
            top_k=self.top_k,
            filters=self.filters,
            min_score=self.min_score,
        )

    def partial_answer(self, reason: str) -> Answer:
        """Return the text streamed so far as an answer. Its last note states the reason."""
        text = "".join(self.streamed)
        return self.build_answer(text.strip(), self.sources, bool(text), [reason])

    def current_answer(self) -> Answer:
        """Return the complete answer, or the incomplete answer if the engine has not finished."""
        return self.answer or self.partial_answer("the answer is not complete")

    def remaining_text(self) -> str:
        """Return the part of the answer that was not streamed."""
        text = self.current_answer().text
        streamed = "".join(self.streamed)
        if text.startswith(streamed):
            return text[len(streamed) :]
        return "" if streamed.endswith(text) else f"\n\n{text}"
