"""Check the quotations and citations of an answer against its sources."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...nodegraph.models.templates import Language, language_of
from ...nodegraph.node import ROOT, Node
from ...nodegraph.splitters.chunking import UNSPACED, Span
from ...nodegraph.splitters.sentences import sentence_spans
from ..foreign.outputs import read_answer
from .answer import (
    CITATION,
    CODE,
    UNCITED,
    Answer,
    CheckedQuote,
    QuoteStatus,
    Source,
    cited_numbers,
    flag_cited,
)
from .quote_matching import QuoteIndex

_LISTED = 8  # maximum number of sentences in a note

_MAX_GAP = 3  # maximum number of characters between adjacent sources

_LATIN = rf"[^\W{UNSPACED}]"

_SAME_PARAGRAPH = r"(?!\n[ \t]*\n)"


def _between(start: str, stop: str) -> str:
    """Return the pattern of a text between two marks, including nested marks."""
    text = rf"{_SAME_PARAGRAPH}[^{start}{stop}]"
    return rf"{start}((?:{text}|{start}(?:{text})+{stop})+){stop}"


_QUOTATION = re.compile(
    rf"{_between('“', '”')}|{_between('«', '»')}|{_between('「', '」')}|{_between('『', '』')}"
    rf"|„((?:{_SAME_PARAGRAPH}[^„“”])+)[“”]"
    rf"|(?<!{_LATIN})»((?:{_SAME_PARAGRAPH}[^«»])+)«(?!{_LATIN})"
    rf'|(?<!{_LATIN})"(?=\S)((?:{_SAME_PARAGRAPH}[^"])+)(?<=\S)"(?!{_LATIN})'
    rf"|(?<!{_LATIN})‘((?:{_SAME_PARAGRAPH}[^‘’]|’(?={_LATIN}))+)’(?!{_LATIN})"
)

_BLOCK = re.compile(r"(?m)^[ \t]{0,3}>[^\n]*(?:\n[ \t]{0,3}>[^\n]*)*")

_BLOCK_MARK = re.compile(r"(?m)^[ \t]{0,3}>[ \t]?")

_ATTRIBUTION = re.compile(r"\n[\s>]*[-–—]{1,3}[^\n]*\Z")

_CITED = re.compile(rf"[ \t]{{0,9}}(?i:{CITATION.pattern})")

_LEADING = re.compile(rf"(?:(?i:{CITATION.pattern})\s*)+[.。]?")

_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)、])\s+")

_EMPHASIS = re.compile(r"\*\*|__")

_NO_CLAIM = re.compile(r"\s*(?:#|\||>)|.*[:：?？][*_\"”」]{0,4}\Z", re.S)


def check_quotes(answer: Any, evidence: Iterable[Any] | None = None) -> Answer:
    """Find the quotations and cited sentences of an answer in its sources, without a model.

    A quotation with another number, or without a negation of the source, is not found. Wrong
    quotations, sentences without a citation, and citations of missing sources become notes.

    ``QueryEngine(check="quotes")`` calls this function for each answer. It is also a step of a
    LangChain chain (``chain | check_quotes``).

    Args:
        answer: An ``Answer``, the output of a LangChain chain (a mapping with ``answer`` and
            ``context``), a LlamaIndex response, a message or a text. ``[1]`` cites the first
            source.
        evidence: Sources that replace the answer's sources: nodes, results, texts or documents,
            including documents of LangChain and LlamaIndex.

    Returns:
        A copy of the answer with ``quotes`` and ``notes``.

    Raises:
        TypeError: If the answer or the evidence contains no text.

    Example:
        >>> sources = ["Green tea is steamed.", "Black tea is fermented, then dried."]
        >>> text = 'One is "steamed" [2]. The other “is Fermented … dried” [2], “never smoked” [2].'
        >>> answer = check_quotes(text, sources)
        >>> [(quote.text, quote.status, quote.source) for quote in answer.quotes]
        ... # doctest: +NORMALIZE_WHITESPACE
        [('steamed', 'other_source', 1), ('is Fermented … dried', 'same_letters', 2),
         ('never smoked', 'not_found', None)]
    """
    checked: Answer
    if not isinstance(answer, Answer):
        checked = _as_answer(*read_answer(answer, evidence))
    elif evidence is None:
        checked = answer
    else:
        checked = _as_answer(*read_answer(answer.text, evidence))
        checked = replace(checked, question=answer.question)
    if not checked.sources or not checked.answered or checked.preset is not None:
        return checked
    texts = [_Text(source.text, (source,), _start_of(source)) for source in checked.sources]
    texts += _adjoining(checked.sources)
    index = QuoteIndex([text.text for text in texts])
    layout = AnswerLayout(checked.text)
    quotes = tuple(_checked(statement, index, texts) for statement in layout.statements())
    language = language_of(checked.text)
    notes = [_note(quote, language) for quote in quotes]
    if uncited := layout.uncited():
        notes.append(_uncited_note(uncited, language))
    before = [note for note in checked.notes if not (uncited and note in UNCITED.values())]
    notes = list(dict.fromkeys([*before, *filter(None, notes)]))
    return replace(checked, quotes=quotes, notes=tuple(notes))


def _as_answer(text: str, results: Iterable[Any]) -> Answer:
    sources = [Source(n, result, str(result.node.content)) for n, result in enumerate(results, 1)]
    cited, notes = flag_cited(sources, text)
    return Answer(text, "", tuple(cited), notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a source, or of adjacent sources, with its start in the document if known."""

    text: str
    sources: tuple[Source, ...]
    start: int | None

    def span_node(self, span: Span) -> Node:
        """Return a part of the text as a node with its position in the document."""
        node, text = self.sources[0].result.node, self.text[slice(*span)]
        start = None if self.start is None else self.start + span[0]
        end = None if start is None else start + len(text)
        return replace(
            node,
            text=text,
            content=text,
            start=start,
            end=end,
            id="",
            parent_id=node.parent_id or node.id,
            offset=None,
        )


@dataclass(frozen=True, slots=True)
class _Statement:
    """A quotation or cited sentence before the search."""

    text: str
    span: Span
    cited: tuple[int, ...]
    quoted: bool


def _checked(statement: _Statement, index: QuoteIndex, texts: Sequence[_Text]) -> CheckedQuote:
    text, cited = statement.text, statement.cited
    first = [at for at, part in enumerate(texts) if part.sources[0].number in cited]
    plain = _CITED.sub("", text)
    wordings = dict.fromkeys([text, plain, _EMPHASIS.sub("", plain)])
    matches = (index.find(wording, first) for wording in wordings)
    match = next((match for match in matches if match is not None), None)
    quote = CheckedQuote(text, *statement.span, "not_found", statement.quoted, cited)
    if match is None:
        nearest = index.nearest(text)
        return replace(quote, nearest=nearest and texts[nearest[0]].span_node(nearest[1]))
    searched = texts[match.text]
    numbers = [source.number for source in searched.sources]
    number = next((number for number in numbers if number in cited), numbers[0])
    status: QuoteStatus = "exact" if match.exact else "same_letters"
    if cited and number not in cited:
        status = "other_source"
    spans = tuple(map(searched.span_node, match.spans))
    return replace(quote, status=status, source=number, spans=spans)


def _note(quote: CheckedQuote, language: Language) -> str:
    """Return the note on a wrong quotation. Empty: the quotation is right."""
    nearest = "" if quote.nearest is None else _excerpt(quote.nearest.text)
    cited = [f"[{number}]" for number in quote.cited]
    if language == "zh":
        what = f"{'引文' if quote.quoted else '句子'}{_excerpt(quote.text)}"
        elsewhere = f"{what}出自 [{quote.source}]，不在 {'、'.join(cited)} 中"
        missing = f"{what}不在任何来源中{nearest and f'；最接近的原文是{nearest}'}"
    else:
        what = f"the {'quotation' if quote.quoted else 'sentence'} {_excerpt(quote.text)}"
        elsewhere = f"{what} is in [{quote.source}], not in {', '.join(cited)}"
        missing = f"{what} is in no source{nearest and f'; the nearest text is {nearest}'}"
    if quote.status == "other_source":
        return elsewhere
    return missing if quote.status == "not_found" and quote.quoted else ""


def _uncited_note(sentences: Sequence[str], language: Language) -> str:
    count, excerpts = len(sentences), list(map(_excerpt, sentences[:_LISTED]))
    if language == "zh":
        return f"{count} 句没有标来源：{'、'.join(excerpts)}{'……' if count > _LISTED else ''}"
    more = f" and {count - _LISTED} more" if count > _LISTED else ""
    cite = "sentence cites" if count == 1 else "sentences cite"
    return f"{count} {cite} no source: {', '.join(excerpts)}{more}"


class AnswerLayout:
    """The quotations and sentences of a text.

    Args:
        text: An answer or a draft. Code contains no quotations.

    Example:
        >>> layout = AnswerLayout("He says “no” [1]. She agrees. [2] It rains.")
        >>> [(statement.text, statement.cited) for statement in layout.statements()]
        [('no', (1,)), ('She agrees.', (2,))]
        >>> layout.uncited()
        ['It rains.']
    """

    def __init__(self, text: str) -> None:
        self._text = text
        masked = CODE.sub(_blank, text)
        self._blocks = [match.span() for match in _BLOCK.finditer(masked)]
        self._masked = masked = _BLOCK.sub(_blank_lines, masked)
        self._quotations = [
            (match.span(), match.span(match.lastindex or 0))
            for match in _QUOTATION.finditer(masked)
            if re.search(r"\w", CITATION.sub("", match[match.lastindex or 0]))
        ]
        self._starts = [outer[0] for outer, _ in self._quotations]
        self.sentences = self._find_sentences()

    def _find_sentences(self) -> list[Span]:
        """Return the sentences with the citations after them. Quotations are not split."""
        sentences: list[Span] = []
        for start, stop in sentence_spans(self._masked):
            before = bisect_left(self._starts, start) - 1
            is_quoted = before >= 0 and start < self._quotations[before][0][1]
            leading = _LEADING.match(self._masked, start)
            if sentences and is_quoted:
                sentences[-1] = sentences[-1][0], stop
            elif sentences and leading and "\n" not in self._masked[sentences[-1][1] : start]:
                sentences[-1] = sentences[-1][0], leading.end()
                if self._masked[leading.end() : stop].strip():
                    sentences.append((leading.end(), stop))
            else:
                sentences.append((start, stop))
        return sentences

    def plain(self, span: Span) -> str:
        """Return a sentence without its list marker and citations."""
        return _ITEM.sub("", _CITED.sub("", self._text[slice(*span)])).strip()

    def statements(self) -> list[_Statement]:
        """Return the quotations and cited sentences, in the order of the text."""
        return sorted(self._statements(), key=lambda statement: statement.span)

    def _statements(self) -> Iterator[_Statement]:
        for start, stop in self.sentences:
            first, last = bisect_left(self._starts, start), bisect_left(self._starts, stop)
            if inside := self._quotations[first:last]:
                yield from self._of_sentence((start, stop), inside)
            elif cited := cited_numbers(self._masked[start:stop]):
                yield _Statement(self.plain((start, stop)), (start, stop), tuple(cited), False)
        for start, stop in self._blocks:
            text = _ATTRIBUTION.sub("", _BLOCK_MARK.sub("", self._text[start:stop])).strip()
            if plain := _CITED.sub("", text).strip():
                cited = cited_numbers(self._text[start:stop]) or self._cited_before(start)
                yield _Statement(plain, (start, stop), tuple(cited), True)

    def _of_sentence(
        self, sentence: Span, inside: Sequence[tuple[Span, Span]]
    ) -> Iterator[_Statement]:
        """Yield the quotations of a sentence with the next citations, or all citations."""
        of_sentence = cited_numbers(self._masked[slice(*sentence)])
        stops = [*(outer[0] for outer, _ in inside[1:]), sentence[1]]
        for (outer, inner), stop in zip(inside, stops, strict=True):
            citation = _LEADING_WORDS.match(self._masked, outer[1], stop)
            cited = cited_numbers(citation[0]) if citation else of_sentence
            yield _Statement(self._text[slice(*inner)], inner, tuple(cited), True)

    def _cited_before(self, at: int) -> list[int]:
        """Return the citations of the last sentence before a position."""
        before = [span for span in self.sentences if span[1] <= at]
        return cited_numbers(self._masked[slice(*before[-1])]) if before else []

    def uncited(self) -> list[str]:
        """Return the sentences without a citation, except headings, tables and questions."""
        uncited = []
        for start, stop in self.sentences:
            text = self._masked[start:stop]  # code is blank here, but not in the note
            is_claim = not _NO_CLAIM.match(text) and not CITATION.search(text)
            if is_claim and len(re.findall(rf"[{UNSPACED}]|\w+", text)) > 1:
                uncited.append(_ITEM.sub("", self._text[start:stop]).strip())
        return uncited


def draft_quotes(text: str) -> list[str]:
    """Return the quotations of a draft. Without quotations: the sentences without citations.

    Example:
        >>> draft_quotes("He says “no” [1]."), draft_quotes("It rains. [1]")
        (['no'], ['It rains.'])
    """
    layout = AnswerLayout(text)
    quotes = [statement.text for statement in layout.statements() if statement.quoted]
    return quotes or [t for t in map(layout.plain, layout.sentences) if re.search(r"\w", t)]


_LEADING_WORDS = re.compile(rf"[^\[【［]*?(?:(?i:{CITATION.pattern})\s*)+")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _blank_lines(match: re.Match[str]) -> str:
    return "\n" * len(match[0])


def _adjoining(sources: Sequence[Source]) -> Iterator[_Text]:
    """Yield the joint texts of adjacent sources, across which a quotation may continue."""
    placed = [
        (source.result.node, source)
        for source in sources
        if source.result.node.start is not None and source.text == source.result.node.text
    ]
    placed.sort(key=lambda item: (item[0].document_id, item[0].start))
    runs: list[_Text] = []
    for node, source in placed:
        gap = _gap(runs[-1].sources[-1].result.node, node) if runs else -1
        if 0 <= gap <= _MAX_GAP:
            before = runs.pop()
            text, joined = before.text + "\n" * gap + source.text, (*before.sources, source)
            runs.append(_Text(text, joined, before.start))
        else:
            runs.append(_Text(source.text, (source,), node.start))
    yield from (run for run in runs if len(run.sources) > 1)


def _gap(node: Node, other: Node) -> int:
    """Return the number of characters between two nodes. Negative: overlap, or two documents."""
    if node.document_id != other.document_id or node.graph is not other.graph:
        return -1
    return (other.start or 0) - (node.start or 0) - len(node.text)


def _start_of(source: Source) -> int | None:
    """Return the start of a source's text in its document. None: unknown."""
    nodes = [result.node for result in (source.result, *source.merged)]
    starts = [0 if node.group == ROOT else node.start for node in nodes]
    known = [start for start in starts if start is not None]
    if len(known) < len(starts):
        return None
    first, text = min(known), nodes[0].text
    if len(nodes) > 1:
        try:
            text = nodes[0].root.text[first:]
        except (LookupError, ValueError):  # a removed document, or no graph
            return None
    at = text.find(source.text)
    return first + at if at >= 0 else None


def _excerpt(text: str) -> str:
    line = re.sub(rf"(?<=[{UNSPACED}])\n\s{{0,9}}(?=[{UNSPACED}])", "", text)
    line = re.sub(r"[\n\f\r]+\s{0,9}", " ", line).strip()
    return f"“{line}”" if len(line) <= 80 else f"“{line[:77].rstrip()}...”"
