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
"""Why the model did not get a result: there was no room in its context window, it would take too
many model calls, its text is part of another result's, it is the same text, it has no text."""


@dataclass(frozen=True, slots=True)
class Source:
    """Hold a numbered passage that an answer was generated from.

    Attributes:
        number: The number that an answer cites it by, ``[1]``. Counted from 1, the best first.
        result: The result of the retrieval, with its evidence.
        text: The text in the prompt: the result's content, or the part of it that there was room
            for, or the joint text of results that overlap.
        cited: Whether the answer cites it.
        title: The line above it in the prompt: the document's title and headings, or the name of
            the file.
        merged: Further results of the same document whose text overlaps and is part of this.
        complete: Whether the model got all of the text. False where it was cut.
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
    """Hold a result that the model did not get.

    Attributes:
        result: The result.
        reason: ``"context_window"``, ``"calls"``, ``"contained"``, ``"duplicate"`` or ``"empty"``.
        of: The result that has its text, where it is contained or a duplicate.
    """

    result: ScoredNode
    reason: OmissionReason
    of: ScoredNode | None = None


QuoteStatus = Literal["exact", "same_letters", "other_source", "not_found"]
"""Where a quotation stands: literally in the source that it cites; there, but with other case,
spaces or marks, or with words left out ("…"); in another source; in none."""


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
        text: The answer, or a sentence that says that there is no answer.
        question: The question.
        sources: The passages that the model got, by number.
        answered: False if nothing was retrieved, or if the model says that the passages do not
            answer the question.
        preset: The question-answer pair that the answer is from, without a model.
        omitted: The results that the model did not get, and why.
        notes: Models that failed, passages that were cut, citations without a source.
        searched: The query of the search: the question, or the condensed question.
        calls: The number of model calls of the engine. Those of strategies are in the trace.
        confidence: How sure the model says it is, from 0 to 100, with ``"map_rerank"``.
        quotes: The quotations and cited sentences with their places, set by ``check_quotes``.
        top_k: The ``top_k`` of the search, also for ``QueryEngine.check_current``.
        filters: Its filters.
        min_score: Its lowest score.
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
        """All results of the search: those of the sources, and the omitted ones."""
        used = [result for source in self.sources for result in (source.result, *source.merged)]
        return (*used, *(omission.result for omission in self.omitted))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values, to store it; ``from_dict`` reads them.

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
    """No model could answer, or it stopped in the middle of its answer.

    Attributes:
        answer: What there is of it: the sources, the notes, the text up to the failure.
    """

    def __init__(self, reason: str, answer: Answer) -> None:
        super().__init__(reason)
        self.answer = answer

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, Answer]]:
        return type(self), (str(self), self.answer)


_NUMBER = r"\d{1,3}"

_SPACES = r"\s{0,9}"  # bounded, so that the time is in proportion to the text

_NOUN = r"(?:passages?|sources?|refs?\.?|documents?|资料|来源|段落|文献|片段|参考)"

# Each space, separator and number can be read in one way only: two would double the time, each.
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
    """Return the numbers that a text cites, each once, in the order in which they come.

    Read are ``[1]``, ``[1, 2]``, ``[1][3]``, ``[1-3]``, ``【1】``, ``［1］``, ``[^1]`` and numbers
    behind a word ("[Source 1]", "【资料1】"). Numbers in round brackets are not, as lists are
    numbered so. Nor is what stands in code, a link's text, or a number of four digits (a year).

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
    """Return sources with ``cited`` set, and notes on citations that are the number of no source.

    Args:
        sources: The sources.
        text: The answer.
        certain: Numbers of sources that the answer is from, cited or not.
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
