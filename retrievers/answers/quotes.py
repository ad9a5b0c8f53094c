"""Check the quotations and citations of an answer against its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ...nodegraph.models.templates import Language, language_of
from ...nodegraph.node import Node
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

    A quotation with changed numbers, or without a negation of the source, is not found. Wrong
    quotations, sentences without a citation and citations without a source become notes.

    The function accepts the output of any chain: as a step (``chain | check_quotes``) of
    LangChain, for a response of LlamaIndex, or for a text. ``QueryEngine(check="quotes")`` calls
    it for each answer.

    Args:
        answer: An ``Answer``, a mapping that a chain returned (with ``answer`` and ``context``),
            a response, a message or a text. ``[1]`` in it cites the first source.
        evidence: Replaces the sources of the answer: nodes, results, texts or documents, including
            LangChain's and LlamaIndex's.

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
    texts = [_Text(source.text, (source,)) for source in checked.sources]
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
    """A text to search: the text of a source, or of adjacent sources of a document."""

    text: str
    sources: tuple[Source, ...]


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
        return replace(quote, nearest=nearest and _span_node(texts[nearest[0]], nearest[1]))
    searched = texts[match.text]
    numbers = [source.number for source in searched.sources]
    number = next((number for number in numbers if number in cited), numbers[0])
    status: QuoteStatus = "exact" if match.exact else "same_letters"
    if cited and number not in cited:
        status = "other_source"
    spans = tuple(_span_node(searched, span) for span in match.spans)
    return replace(quote, status=status, source=number, spans=spans)


def _note(quote: CheckedQuote, language: Language) -> str:
    """Return the note on a quotation. Empty: no problem."""
    nearest = "" if quote.nearest is None else _excerpt(quote.nearest.text)
    cited = [f"[{number}]" for number in quote.cited]
    if language == "zh":
        what = f"{'引文' if quote.quoted else '句子'}{_excerpt(quote.text)}"
        elsewhere = f"{what}出自 [{quote.source}]，不在 {'、'.join(cited)} 中"
        missing = f"{what}不在任何来源中{nearest and f'；最接近的原文是{nearest}'}"
    else:
        what = f"the {'quotation' if quote.quoted else 'sentence'} {_excerpt(quote.text)}"
        elsewhere = f"{what} stands in [{quote.source}], not in {', '.join(cited)}"
        missing = f"{what} stands in no source{nearest and f'; the nearest text is {nearest}'}"
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
    """The quotations, cited sentences and claims of a text.

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
        self._sentences = self._find_sentences()

    def _find_sentences(self) -> list[Span]:
        """Return the sentences with the citations after them. Quotations are not split."""
        sentences: list[Span] = []
        outer = iter([span for span, _ in self._quotations])
        quotation = next(outer, None)
        for start, stop in sentence_spans(self._masked):
            while quotation is not None and quotation[1] <= start:
                quotation = next(outer, None)
            is_cut = quotation is not None and quotation[0] < start < quotation[1]
            leading = _LEADING.match(self._masked, start)
            if sentences and is_cut:
                sentences[-1] = sentences[-1][0], stop
            elif sentences and leading and "\n" not in self._masked[sentences[-1][1] : start]:
                sentences[-1] = sentences[-1][0], leading.end()
                if self._masked[leading.end() : stop].strip():
                    sentences.append((leading.end(), stop))
            else:
                sentences.append((start, stop))
        return sentences

    def statements(self) -> Iterator[_Statement]:
        """Return the quotations and cited sentences, in the order of the text."""
        return iter(sorted(self._statements(), key=lambda statement: statement.span))

    def _statements(self) -> Iterator[_Statement]:
        quotations = iter(self._quotations)
        quotation = next(quotations, None)
        for start, stop in self._sentences:
            inside: list[tuple[Span, Span]] = []
            while quotation is not None and quotation[0][0] < stop:
                inside.append(quotation)
                quotation = next(quotations, None)
            if inside:
                yield from self._of_sentence((start, stop), inside)
            elif cited := cited_numbers(self._masked[start:stop]):
                text = _ITEM.sub("", _CITED.sub("", self._text[start:stop])).strip()
                yield _Statement(text, (start, stop), tuple(cited), False)
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

    def _cited_before(self, start: int) -> list[int]:
        before = [span for span in self._sentences if span[1] <= start]
        return cited_numbers(self._masked[slice(*before[-1])]) if before else []

    def claims(self) -> list[str]:
        """Return the sentences without citations and quotations."""
        masked = _QUOTATION.sub(_blank, self._masked)
        texts = (masked[start:stop] for start, stop in self._sentences)
        return [_ITEM.sub("", CITATION.sub(" ", text)).strip() for text in texts]

    def uncited(self) -> list[str]:
        """Return the claims without a citation."""
        uncited = []
        for start, stop in self._sentences:
            text = self._masked[start:stop]  # code is masked here, but part of the note
            is_claim = not _NO_CLAIM.match(text) and not CITATION.search(text)
            if is_claim and len(re.findall(rf"[{UNSPACED}]|\w+", text)) > 1:
                uncited.append(_ITEM.sub("", self._text[start:stop]).strip())
        return uncited


def draft_quotes(text: str) -> list[str]:
    """Return the quotations of a draft, otherwise its sentences, without citations.

    Example:
        >>> draft_quotes("He says “no” [1]."), draft_quotes("It rains. [1]")
        (['no'], ['It rains.'])
    """
    layout = AnswerLayout(text)
    quotes = [statement.text for statement in layout.statements() if statement.quoted]
    return quotes or [claim for claim in layout.claims() if re.search(r"\w", claim)]


_LEADING_WORDS = re.compile(rf"[^\[【［]*?(?:(?i:{CITATION.pattern})\s*)+")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _blank_lines(match: re.Match[str]) -> str:
    return "\n" * len(match[0])


def _adjoining(sources: Sequence[Source]) -> Iterator[_Text]:
    """Yield the joint text of adjacent sources, in which a quotation may continue."""
    placed = [
        (source.result.node, source)
        for source in sources
        if source.result.node.start is not None and source.text == source.result.node.text
    ]
    placed.sort(key=lambda item: (item[0].document_id, item[0].start))
    run: list[tuple[Node, Source]] = []
    for node, source in placed:
        if run and not _adjoins(run[-1][0], node):
            yield from _joint(run)
            run = []
        run.append((node, source))
    yield from _joint(run)


def _adjoins(node: Node, other: Node) -> bool:
    if node.document_id != other.document_id or node.graph is not other.graph:
        return False
    return node.end is not None and other.start is not None and 0 <= other.start - node.end <= 3


def _joint(run: Sequence[tuple[Node, Source]]) -> Iterator[_Text]:
    if len(run) > 1:
        text, stop = "", run[0][0].start or 0
        for node, source in run:
            start = node.start or 0
            text += "\n" * (start - stop) + source.text
            stop = start + len(source.text)
        yield _Text(text, tuple(source for _, source in run))


def _span_node(searched: _Text, span: Span) -> Node:
    """Return a part of a text as a node with its position in the document."""
    node = searched.sources[0].result.node
    text = searched.text[slice(*span)]
    start = _start_of(searched)
    at = None if start is None else start + span[0]
    return replace(
        node,
        text=text,
        content=text,
        start=at,
        end=None if at is None else at + len(text),
        id="",
        parent_id=node.parent_id or node.id,
        offset=None,
    )


def _start_of(searched: _Text) -> int | None:
    """Return the start of a text in its document. None if it is unknown."""
    source = searched.sources[0]
    nodes = [source.result.node, *(result.node for result in source.merged)]
    starts = [0 if node.group == "ROOT" else node.start for node in nodes]
    existing = [start for start in starts if start is not None]
    if len(existing) < len(starts):
        return None
    node, first = nodes[0], min(existing)
    if len(searched.sources) > 1 or (len(nodes) == 1 and node.text.startswith(searched.text)):
        return first
    with suppress(LookupError, ValueError):  # removed document, or no graph
        at = node.root.text.find(searched.text, first)
        return at if at >= 0 else None
    at = node.text.find(searched.text)
    return first + at if at >= 0 else None


def _excerpt(text: str) -> str:
    line = re.sub(rf"(?<=[{UNSPACED}])\n\s{{0,9}}(?=[{UNSPACED}])", "", text)
    line = re.sub(r"[\n\f\r]+\s{0,9}", " ", line).strip()
    return f"“{line}”" if len(line) <= 80 else f"“{line[:77].rstrip()}...”"
