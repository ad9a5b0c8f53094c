"""An answer with its sources, the results it does not use, and notes on both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from ...nodegraph.codec import decode, encode
from ...nodegraph.errors import ModelError
from ...nodegraph.models.templates import language_of
from ...nodegraph.node import Node
from ..filters import Filters
from ..results import ScoredNode
from .qa import PresetAnswer

OmissionReason = Literal["context_window", "calls", "contained", "duplicate", "empty"]
"""The reason: no space in the context window, no model call, text contained in another result,
equal to another result, or empty."""


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered passage in the prompts of an answer.

    Attributes:
        number: The number in citations, ``[1]``. Counted from 1, best first.
        result: The result of the search, with evidence.
        text: The text in the prompt: the result's content, a part of it, or the joint text of
            overlapping results.
        cited: Whether the answer cites the source.
        title: The line above the text in the prompt: the document's title and headings, or the
            name of the file.
        merged: Further results of the document whose text overlaps and is part of ``text``.
        complete: Whether the prompts contain the whole text.
    """

    number: int
    result: ScoredNode
    text: str
    cited: bool = False
    title: str = ""
    merged: tuple[ScoredNode, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class OmittedResult:
    """A result that is not in the prompts.

    Attributes:
        result: The result.
        reason: ``"context_window"``, ``"calls"``, ``"contained"``, ``"duplicate"`` or ``"empty"``.
        of: The result with the text, for ``"contained"`` and ``"duplicate"``.
    """

    result: ScoredNode
    reason: OmissionReason
    of: ScoredNode | None = None


QuoteStatus = Literal["exact", "same_letters", "other_source", "not_found"]
"""The place of a quotation: literally in the cited source; in the cited source with different
case, spaces or marks, or with an ellipsis; in another source; in no source."""


@dataclass(frozen=True, slots=True)
class CheckedQuote:
    """A quotation or a cited sentence of an answer, and its place in the sources.

    Attributes:
        text: The quotation without its marks, or the sentence without its citations.
        start: The start in the answer's text, in characters.
        end: The end.
        status: ``"exact"``, ``"same_letters"``, ``"other_source"`` or ``"not_found"``. A cited
            sentence that is not found is in the answer's own words, which is no fault.
        quoted: Whether it stands in quotation marks or in a block quotation.
        cited: The numbers of the sources that it cites.
        source: The number of the source that contains it. None if it is not found.
        spans: The quoted parts of the documents: nodes with ``text``, ``document_id``, ``start``,
            ``end``, ``place`` and ``pages``. Several if the quotation leaves words out.
        nearest: The most similar sentence of the sources, if the quotation is not found.
    """

    text: str
    start: int
    end: int
    status: QuoteStatus
    quoted: bool = True
    cited: tuple[int, ...] = ()
    source: int | None = None
    spans: tuple[Node, ...] = ()
    nearest: Node | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; a span has document_id, start, end, text, place and pages."""
        nearest = None if self.nearest is None else _span_dict(self.nearest)
        spans = [_span_dict(span) for span in self.spans]
        return {**_fields(self, "spans", "nearest"), "spans": spans, "nearest": nearest}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CheckedQuote:
        """Return the quotation of ``to_dict``. Its spans belong to no graph."""
        spans = tuple(map(_read_node, values["spans"]))
        nearest = None if values["nearest"] is None else _read_node(values["nearest"])
        return cls(
            **{**values, "cited": tuple(values["cited"]), "spans": spans, "nearest": nearest}
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, with its sources.

    Attributes:
        text: The answer, or a sentence for the user if there is no answer.
        question: The question.
        sources: The passages in the prompts, by number.
        answered: False if nothing was found, or the passages do not answer the question.
        preset: The question-answer pair of a preset answer.
        omitted: The results that are not in the prompts, with reasons.
        notes: Failures, omitted and truncated passages, citations without a source.
        searched: The query of the search: the question, or the condensed question.
        calls: The number of model calls of the engine, without the calls of strategies.
        confidence: The model's confidence from 0 to 100, with ``"map_rerank"``.
        quotes: The quotations and cited sentences with their places, set by ``check_quotes``.
        top_k: The ``top_k`` of the search, also for ``QueryEngine.check_current``.
        filters: The filters of the search.
        min_score: The minimum score of the search.
    """

    text: str
    question: str
    sources: tuple[Source, ...] = ()
    answered: bool = True
    preset: PresetAnswer | None = None
    omitted: tuple[OmittedResult, ...] = ()
    notes: tuple[str, ...] = ()
    searched: str = ""
    calls: int = 0
    confidence: float | None = None
    quotes: tuple[CheckedQuote, ...] = ()
    top_k: int | None = None
    filters: Filters | None = None
    min_score: float | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def cited(self) -> tuple[Source, ...]:
        """The sources that the answer cites."""
        return tuple(source for source in self.sources if source.cited)

    @property
    def results(self) -> tuple[ScoredNode, ...]:
        """All results of the search: the results of the sources, and the omitted results."""
        used = [result for source in self.sources for result in (source.result, *source.merged)]
        return (*used, *(omission.result for omission in self.omitted))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values. ``from_dict`` is the inverse.

        Results are stored without evidence and metadata.
        """
        return {
            **_fields(self, "sources", "preset", "omitted", "quotes", "filters"),
            "filters": None if self.filters is None else json.loads(encode(dict(self.filters))),
            "sources": [
                {
                    **_fields(source, "result", "merged"),
                    "results": [_result_dict(r) for r in (source.result, *source.merged)],
                }
                for source in self.sources
            ],
            "omitted": [
                {
                    "reason": omission.reason,
                    "result": _result_dict(omission.result),
                    "of": None if omission.of is None else _result_dict(omission.of),
                }
                for omission in self.omitted
            ],
            "preset": self.preset
            and {**_fields(self.preset, "result"), "result": _result_dict(self.preset.result)},
            "quotes": [quote.to_dict() for quote in self.quotes],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Answer:
        """Return the answer of ``to_dict``. Its nodes belong to no graph.

        Example:
            >>> from nodekin.retrievers import ScoredNode
            >>> result = ScoredNode(Node("Tea is old.", document_id="tea.md"), 1.0)
            >>> source = Source(1, result, "Tea")
            >>> Answer.from_dict(Answer("Old [1].", "?", (source,)).to_dict()).sources[0].text
            'Tea'
        """
        given = dict(values)
        if (preset := given["preset"]) is not None:
            given["preset"] = PresetAnswer(**{**preset, "result": _read_result(preset["result"])})
        if given["filters"] is not None:
            given["filters"] = decode(json.dumps(given["filters"]))
        given["sources"] = tuple(map(_read_source, given["sources"]))
        given["omitted"] = tuple(
            OmittedResult(
                _read_result(item["result"]),
                item["reason"],
                item["of"] and _read_result(item["of"]),
            )
            for item in given["omitted"]
        )
        given["quotes"] = tuple(map(CheckedQuote.from_dict, given["quotes"]))
        return cls(**{**given, "notes": tuple(given["notes"])})


def _fields(value: Any, *left_out: str) -> dict[str, Any]:
    """Return the other fields of a dataclass; tuples as lists."""
    named = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in left_out}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in named.items()}


_NODE_FIELDS = ("text", "document_id", "start", "end", "id", "group")


def _span_dict(node: Node) -> dict[str, Any]:
    names = ("document_id", "start", "end", "text", "place")
    pages = None if node.pages is None else list(node.pages)
    return {**{name: getattr(node, name) for name in names}, "pages": pages}


def _result_dict(result: ScoredNode) -> dict[str, Any]:
    values = {name: getattr(result.node, name) for name in _NODE_FIELDS}
    return {**values, "score": float(result.score)}


def _read_node(values: Mapping[str, Any]) -> Node:
    return Node(**{name: values[name] for name in _NODE_FIELDS if name in values})


def _read_result(values: Mapping[str, Any]) -> ScoredNode:
    return ScoredNode(_read_node(values), values["score"])


def _read_source(values: Mapping[str, Any]) -> Source:
    first, *merged = map(_read_result, values["results"])
    own = {name: value for name, value in values.items() if name != "results"}
    return Source(**own, result=first, merged=tuple(merged))


class AnswerError(ModelError):
    """The model failed before or during its answer.

    Attributes:
        answer: The answer so far: sources, notes, and the text up to the failure.
    """

    def __init__(self, reason: str, answer: Answer) -> None:
        super().__init__(reason)
        self.answer = answer

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, Answer]]:
        return type(self), (str(self), self.answer)


_NUMBER = r"\d{1,3}"

_SPACES = r"\s{0,9}"  # bounded, for linear time

_NOUN = r"(?:passages?|sources?|refs?\.?|documents?|资料|来源|段落|文献|片段|参考)"

# Each part matches in one way only; otherwise the time would grow exponentially.
_FIRST = rf"\^?(?:{_NOUN}{_SPACES})?(?:#{_SPACES})?{_NUMBER}"

_NEXT = rf"{_SPACES}(?:[,，、;；]|and\s|[和及与]){_SPACES}"

_TITLE = rf"†(?:(?!{_NEXT}{_FIRST})[^\]】］\n]){{0,40}}"

_ONE = rf"{_FIRST}(?:{_SPACES}[-–—~～至]{_SPACES}{_NUMBER})?(?:{_TITLE})?"

CITATION = re.compile(
    rf"[\[【［]{_SPACES}({_ONE}(?:{_NEXT}{_ONE})*){_SPACES}[\]】］]"
    r"(?!\()",  # a link
    re.I,
)
"""Numbers of sources in square brackets."""

_RANGE = re.compile(rf"({_NUMBER})(?:{_SPACES}[-–—~～至]{_SPACES}({_NUMBER}))?")

_DAGGER = re.compile(_TITLE, re.I)

CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)|`[^`\n]+`", re.S)
"""Code in Markdown."""


def only_cites(text: str) -> bool:
    """Return whether a text has no words besides citations.

    Example:
        >>> only_cites("[1]."), only_cites("1974 [1].")
        (True, False)
    """
    return re.search(r"\w", CITATION.sub("", text)) is None


def cited_numbers(text: str) -> list[int]:
    """Return the unique cited numbers of a text, in order.

    Citations are ``[1]``, ``[1, 2]``, ``[1][3]``, ``[1-3]``, ``【1】``, ``［1］``, ``[^1]`` and
    numbers after a word ("[Source 1]", "【资料1】"). Numbers in round brackets (lists), in code, in
    the text of links, and with four digits (years) are no citations.

    Example:
        >>> cited_numbers("Tea [2] is old【1，2】, (3) see `a[4]`, [5-7][2019].")
        [2, 1, 5, 6, 7]
    """
    numbers: dict[int, None] = {}
    for citation in CITATION.finditer(CODE.sub(" ", text)):
        for span in _RANGE.finditer(_DAGGER.sub("", citation[1])):
            first, last = int(span[1]), int(span[2] or span[1])
            numbers.update(
                dict.fromkeys(range(first, last + 1) if first <= last else (first, last))
            )
    return list(numbers)


UNCITED = {"en": "the answer cites no source", "zh": "回答没有标来源"}


def flag_cited(
    sources: Sequence[Source], text: str, certain: Iterable[int] = ()
) -> tuple[list[Source], list[str]]:
    """Return sources with ``cited`` set, and notes on citations without a source.

    Args:
        sources: The sources.
        text: The answer.
        certain: Numbers of sources that the answer uses, cited or not.
    """
    cited = cited_numbers(text)
    used = {*cited, *certain}
    numbers = {source.number for source in sources}
    unknown = [number for number in cited if number not in numbers]
    notes = []
    if unknown:
        listed = ", ".join(f"[{number}]" for number in unknown[:8])
        more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
        note = f"the answer cites {listed}{more}, which is the number of no source"
        if language_of(text) == "zh":
            more = f"等 {len(unknown)} 个" if len(unknown) > 8 else ""
            note = f"回答标了 {listed.replace(', ', '、')}{more}，没有这样的来源"
        notes.append(note)
    return [replace(source, cited=source.number in used) for source in sources], notes
