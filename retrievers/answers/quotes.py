"""Check the quotations and citations of an answer against its sources."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...nodegraph.models.templates import Language, language_of
from ...nodegraph.node import ROOT, Node
from ...nodegraph.splitters.chunking import UNSPACED, Span
from ...nodegraph.splitters.sentences import sentence_spans
from ..foreign.outputs import read_answer
from .answer import Answer, CheckedQuote, QuoteStatus, Source
from .citations import CITATION, CODE, UNCITED, cited_numbers, flag_cited
from .quotation_marks import QUOTATION
from .quote_matching import QuoteIndex

_LISTED = 8  # the maximum number of sentences in a note

_BLOCK = re.compile(r"(?m)^[ \t]{0,3}>[^\n]*(?:\n[ \t]{0,3}>[^\n]*)*")

_BLOCK_MARK = re.compile(r"(?m)^[ \t]{0,3}>[ \t]?")

_ATTRIBUTION = re.compile(r"\n[\s>]*[-–—]{1,3}[^\n]*\Z")

_CITED = re.compile(rf"[ \t]{{0,9}}(?i:{CITATION.pattern})")

_LEADING = re.compile(rf"(?:(?i:{CITATION.pattern})\s*)+[.。]?")

_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)、])\s+")

_EMPHASIS = re.compile(r"\*\*|__")

_NO_CLAIM = re.compile(r"\s*(?:#|\||>)|.*[:：?？][*_\"”」]{0,4}\Z", re.S)


def check_quotes(answer: Any, evidence: Iterable[Any] | None = None) -> Answer:
    """Check the quotations and cited sentences of an answer against its sources, without a model.

    A quotation counts as not found if it changes a number of the source or omits a negation. Wrong
    quotations, sentences without a citation and citations of missing sources are reported in the
    notes. ``QueryEngine(check="quotes")`` calls this function for each answer. The function can
    also be used as a step of a LangChain chain (``chain | check_quotes``).

    Args:
        answer: An ``Answer``, the output of a LangChain chain (a mapping with ``answer`` and
            ``context``), a LlamaIndex response, a message or a text. The citation ``[1]`` refers to
            the first source.
        evidence: Sources that replace the sources of the answer. They can be nodes, results, texts
            or documents, including documents of LangChain and LlamaIndex.

    Returns:
        A copy of the answer in which ``quotes`` and ``notes`` are set.

    Raises:
        TypeError: If the answer or the evidence contains no text.

    Example:
        >>> sources = ["Green tea is steamed.", "Black tea is fermented, then dried."]
        >>> text = 'One is "steamed" [2]. The other “is Fermented … dried” [2], “never smoked” [2].'
        >>> answer = check_quotes(text, sources)
        >>> [(quote.text, quote.status, quote.source) for quote in answer.quotes]
        ... # doctest: +NORMALIZE_WHITESPACE
        [('steamed', 'other_source', 1), ('is Fermented … dried', 'shortened', 2),
         ('never smoked', 'not_found', None)]
    """
    if isinstance(answer, Answer) and evidence is None:
        checked = answer
    else:
        is_own = isinstance(answer, Answer)
        text, results = read_answer(answer.text if is_own else answer, evidence)
        read = [Source(n, result, str(result.node.content)) for n, result in enumerate(results, 1)]
        cited, notes = flag_cited(read, text)
        question = answer.question if is_own else ""
        checked = Answer(text, question, tuple(cited), notes=tuple(notes))
    if not checked.sources or not checked.answered or checked.preset is not None:
        return checked
    index = QuoteIndex([source.text for source in checked.sources])
    statements, sentences, masked = find_statements(checked.text)
    quotes = tuple(_checked(statement, index, checked.sources) for statement in statements)
    language = language_of(checked.text)
    notes = [_note(quote, language) for quote in quotes]
    if uncited := _uncited(checked.text, masked, sentences):
        notes.append(_uncited_note(uncited, language))
    before = [note for note in checked.notes if not (uncited and note in UNCITED.values())]
    notes = list(dict.fromkeys([*before, *filter(None, notes)]))
    return replace(checked, quotes=quotes, notes=tuple(notes))


def _checked(statement: CheckedQuote, index: QuoteIndex, sources: Sequence[Source]) -> CheckedQuote:
    """Search for a statement in the sources, and set its status and spans."""
    text = statement.text
    cited = statement.cited
    first = [at for at, source in enumerate(sources) if source.number in cited]
    plain = _CITED.sub("", text)
    wordings = dict.fromkeys([text, plain, _EMPHASIS.sub("", plain)])
    matches = (index.find(wording, first) for wording in wordings)
    match = next((match for match in matches if match is not None), None)
    if match is None:
        nearest = index.nearest(text)
        return replace(statement, nearest=nearest and _span_node(sources[nearest[0]], nearest[1]))
    source = sources[match.text]
    status: QuoteStatus = match.status
    if cited and source.number not in cited:
        status = "other_source"
    spans = tuple(_span_node(source, span) for span in match.spans)
    return replace(statement, status=status, source=source.number, spans=spans)


def _span_node(source: Source, span: Span) -> Node:
    """Convert a span of a source to a node that contains its position in the document."""
    node = source.result.node
    text = source.text[slice(*span)]
    first = _start_of(source)
    part = replace(
        node,
        text=text,
        content=text,
        start=None,
        end=None,
        id="",
        parent_id=node.parent_id or node.id,
        offset=None,
    )
    if first is None:
        return part
    start = first + span[0]
    return replace(part, start=start, end=start + len(text))


_KINDS: Mapping[Language, Mapping[bool, str]] = {
    "zh": {True: "引文", False: "句子"},
    "en": {True: "quotation", False: "sentence"},
}


def _note(quote: CheckedQuote, language: Language) -> str:
    """Return a note if a quotation is wrong or shortened. Otherwise, the note is empty."""
    nearest = "" if quote.nearest is None else _excerpt(quote.nearest.text)
    cited = [f"[{number}]" for number in quote.cited]
    kind = _KINDS[language][quote.quoted]
    if language == "zh":
        what = f"{kind}{_excerpt(quote.text)}"
        elsewhere = f"{what}出自 [{quote.source}]，不在 {'、'.join(cited)} 中"
        shortened = f"{what}省略了句子的一部分，请与 [{quote.source}] 对照"
        missing = f"{what}不在任何来源中{nearest and f'；最接近的原文是{nearest}'}"
    else:
        what = f"the {kind} {_excerpt(quote.text)}"
        elsewhere = f"{what} is in [{quote.source}], not in {', '.join(cited)}"
        shortened = f"{what} leaves out a part of a sentence; compare it with [{quote.source}]"
        missing = f"{what} is in no source{nearest and f'; the nearest text is {nearest}'}"
    if quote.status == "other_source":
        return elsewhere
    if quote.status == "shortened" and quote.quoted:
        return shortened
    if quote.status == "not_found" and quote.quoted:
        return missing
    return ""


def _uncited_note(sentences: Sequence[str], language: Language) -> str:
    count = len(sentences)
    excerpts = [_excerpt(sentence) for sentence in sentences[:_LISTED]]
    is_cut = count > _LISTED
    if language == "zh":
        return f"{count} 句没有标来源：{'、'.join(excerpts)}{'……' if is_cut else ''}"
    more = f" and {count - _LISTED} more" if is_cut else ""
    cite = "sentence cites" if count == 1 else "sentences cite"
    return f"{count} {cite} no source: {', '.join(excerpts)}{more}"


def find_statements(text: str) -> tuple[list[CheckedQuote], list[Span], str]:
    """Find the quotations and the cited sentences in an answer.

    The result also contains the spans of all sentences, and a copy of the answer in which code and
    block quotations are replaced by white space.

    Example:
        >>> statements, _, _ = find_statements("He says “no” [1]. She agrees. [2] It rains.")
        >>> [(statement.text, statement.cited) for statement in statements]
        [('no', (1,)), ('She agrees.', (2,))]
    """
    masked = CODE.sub(_blanked, text)
    blocks = [match.span() for match in _BLOCK.finditer(masked)]
    masked = _BLOCK.sub(_without_lines, masked)
    quotations = _find_quotations(masked)
    sentences = _find_sentences(masked, quotations)
    statements = [
        *_sentence_statements(text, masked, sentences, quotations),
        *_block_statements(text, masked, sentences, blocks),
    ]
    statements.sort(key=lambda statement: (statement.start, statement.end))
    return statements, sentences, masked


def _blanked(code: re.Match[str]) -> str:
    """Replace all characters of a match by spaces, except line breaks."""
    return re.sub(r"[^\n]", " ", code[0])


def _without_lines(block: re.Match[str]) -> str:
    """Replace all characters of a match by line breaks."""
    return "\n" * len(block[0])


class _Quotation(NamedTuple):
    """The span of a quotation with its quotation marks, and the span between the marks."""

    outer: Span
    inner: Span


def _find_quotations(masked: str) -> list[_Quotation]:
    """Return the quotations that contain at least one word, in order."""
    quotations: list[_Quotation] = []
    for match in QUOTATION.finditer(masked):
        group = match.lastindex or 0
        if re.search(r"\w", CITATION.sub("", match[group])):
            quotations.append(_Quotation(match.span(), match.span(group)))
    return quotations


def _unchecked(text: str, span: Span, cited: Sequence[int], quoted: bool = True) -> CheckedQuote:
    start, stop = span
    return CheckedQuote(text, start, stop, "not_found", quoted, tuple(cited))


def _sentence_statements(
    text: str, masked: str, sentences: Sequence[Span], quotations: Sequence[_Quotation]
) -> Iterator[CheckedQuote]:
    """Yield the quotations in sentences, and the cited sentences that contain no quotation."""
    starts = [quotation.outer[0] for quotation in quotations]
    for start, stop in sentences:
        cited = cited_numbers(masked[start:stop])
        inside = quotations[bisect_left(starts, start) : bisect_left(starts, stop)]
        stops = [*(quotation.outer[0] for quotation in inside[1:]), stop]
        for quotation, end in zip(inside, stops, strict=False):
            own = _LEADING_WORDS.match(masked, quotation.outer[1], end)
            numbers = cited if own is None else cited_numbers(own[0])
            yield _unchecked(text[slice(*quotation.inner)], quotation.inner, numbers)
        if cited and not inside:
            yield _unchecked(_plain(text[start:stop]), (start, stop), cited, quoted=False)


def _block_statements(
    text: str, masked: str, sentences: Sequence[Span], blocks: Sequence[Span]
) -> Iterator[CheckedQuote]:
    """Yield the block quotations.

    A citation in the sentence before a block applies to the block.
    """
    for start, stop in blocks:
        block = _ATTRIBUTION.sub("", _BLOCK_MARK.sub("", text[start:stop])).strip()
        plain = _CITED.sub("", block).strip()
        before = next((span for span in reversed(sentences) if span[1] <= start), (0, 0))
        cited = cited_numbers(text[start:stop]) or cited_numbers(masked[slice(*before)])
        if plain:
            yield _unchecked(plain, (start, stop), cited)


def _find_sentences(masked: str, quotations: Sequence[_Quotation]) -> list[Span]:
    """Split a text into sentences, each including the citations after it.

    A quotation is never split, even if it contains several sentences.
    """
    starts = [quotation.outer[0] for quotation in quotations]
    sentences: list[Span] = []
    for start, stop in sentence_spans(masked):
        before = bisect_left(starts, start) - 1
        is_quoted = before >= 0 and start < quotations[before].outer[1]
        leading = _LEADING.match(masked, start)
        if sentences and is_quoted:
            sentences[-1] = sentences[-1][0], stop
        elif sentences and leading and "\n" not in masked[sentences[-1][1] : start]:
            sentences[-1] = sentences[-1][0], leading.end()
            if masked[leading.end() : stop].strip():
                sentences.append((leading.end(), stop))
        else:
            sentences.append((start, stop))
    return sentences


def _plain(sentence: str) -> str:
    """Remove the list marker and the citations from a sentence."""
    return _ITEM.sub("", _CITED.sub("", sentence)).strip()


def _uncited(text: str, masked: str, sentences: Iterable[Span]) -> list[str]:
    """Return the sentences without a citation, ignoring headings, tables and questions."""
    uncited = []
    for start, stop in sentences:
        sentence = masked[start:stop]  # code is replaced by spaces here, but not in the note
        is_claim = not _NO_CLAIM.match(sentence) and not CITATION.search(sentence)
        if is_claim and len(re.findall(rf"[{UNSPACED}]|\w+", sentence)) > 1:
            uncited.append(_ITEM.sub("", text[start:stop]).strip())
    return uncited


def draft_quotes(text: str) -> list[str]:
    """Return the quotations in a draft, or else its sentences without citations.

    Example:
        >>> draft_quotes("He says “no” [1]."), draft_quotes("It rains. [1]")
        (['no'], ['It rains.'])
    """
    statements, sentences, _ = find_statements(text)
    plain = [_plain(text[slice(*span)]) for span in sentences]
    quotes = [statement.text for statement in statements if statement.quoted]
    return quotes or [sentence for sentence in plain if re.search(r"\w", sentence)]


_LEADING_WORDS = re.compile(rf"[^\[【［]*?(?:(?i:{CITATION.pattern})\s*)+")


def _start_of(source: Source) -> int | None:
    """Return the position of a source's text in its document, or None if it is unknown."""
    nodes = [result.node for result in source.results]
    starts = [0 if node.group == ROOT else node.start for node in nodes]
    known = [start for start in starts if start is not None]
    if len(known) < len(starts):
        return None
    first = min(known)
    text = nodes[0].text
    if len(nodes) > 1:
        try:
            text = nodes[0].root.text[first:]
        except (LookupError, ValueError):  # the document was removed, or the node has no graph
            return None
    at = text.find(source.text)
    if at < 0:
        return None
    return first + at


def _excerpt(text: str) -> str:
    line = re.sub(rf"(?<=[{UNSPACED}])\n\s{{0,9}}(?=[{UNSPACED}])", "", text)
    line = re.sub(r"[\n\f\r]+\s{0,9}", " ", line).strip()
    if len(line) > 80:
        line = f"{line[:77].rstrip()}..."
    return f"“{line}”"
