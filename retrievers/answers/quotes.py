"""Check the quotations, citations, numbers and names of an answer against its sources."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from ...nodegraph.extractors.entity_names import name_key, parse
from ...nodegraph.models.templates import Language, language_of
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import UNSPACED, Span
from ...nodegraph.splitters.sentences import sentence_spans
from ..analysis.languages import detect, script_of
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
from .quote_matching import QuoteIndex, QuoteMatch

_NUMBER = re.compile(
    rf"(?<![^\W_\d{UNSPACED}])\d+(?:[.,'’٫٬\u00a0\u202f ]\d+)*(?!\d|(?:st|nd|rd|th)\b)"
)

_THOUSANDS = re.compile(r"\d{1,3}(?P<mark>[.,'’٬\u00a0\u202f ])\d{3}(?:(?P=mark)\d{3})*")

_WORD = re.compile(rf"[^\W_{UNSPACED}]+(?:['’][^\W_{UNSPACED}]+)*")

_SAMPLE = 1_000  # characters that tell the language

_ENDING = 2  # letters by which a name's form may differ

_LISTED = 8  # of the same kind in a note


class ClaimCheck:
    """Look up the numbers and names of sentences in sources.

    Args:
        texts: The sources' texts.
        titles: Their titles.
        answer: What the answer says in its own words, whose language is compared with theirs.

    Example:
        >>> check = ClaimCheck(["The Nile is 6,650 km long."], ["Rivers"], "It has 7,000 km.")
        >>> check.notes(["It has 6650 km.", "At Khartoum it has 7,000 km."])
        ['no source has the number 7,000', 'no source has the name Khartoum']
    """

    def __init__(self, texts: Sequence[str], titles: Sequence[str], answer: str) -> None:
        self._texts, self._titles = texts, titles
        sample = answer[:_SAMPLE]
        self.same_language = _has_language_of(sample, (text[:_SAMPLE] for text in texts))

    @cached_property
    def _numbers(self) -> set[str]:
        texts = (*self._texts, *self._titles)
        return {value for text in texts for _, values in _numbers(text) for value in values}

    @cached_property
    def _words(self) -> set[str]:
        words = {word for text in (*self._texts, *self._titles) for word in _WORD.findall(text)}
        return {part for word in words for part in name_key(word).split()}

    @cached_property
    def _joined(self) -> str:
        return "\n".join([*self._texts, *self._titles]).casefold()

    def notes(self, claims: Iterable[str], language: Language = "en") -> list[str]:
        """Return what no source has, and whether the language is another one.

        Args:
            claims: The sentences.
            language: Of the notes.
        """
        claims = list(claims)
        numbers = [
            written
            for claim in claims
            for written, values in _numbers(claim)
            if not values & self._numbers
        ]
        number, name = ("数字", "名称") if language == "zh" else ("number", "name")
        notes = [_missing(number, numbers, language)]
        if not self.same_language:
            notes.append(
                "回答与来源的语言不同：只核对了引文和数字"
                if language == "zh"
                else "the answer is in another language than its sources: only its quotations and "
                "numbers were checked"
            )
        else:
            names = [key for claim in claims for key in self._missing_names(claim)]
            notes.append(_missing(name, names, language))
        return [note for note in notes if note]

    def _missing_names(self, claim: str) -> Iterator[str]:
        for key, name in parse(claim).names(lambda _: True).items():
            words = _WORD.findall(key)
            others = [part for part in key.split() if not _WORD.match(part)]
            if not all(map(self._has_word, words)) or any(p not in self._joined for p in others):
                yield name

    def _has_word(self, word: str) -> bool:
        if word in self._words or len(word) < 2:
            return True
        stems = [word[: len(word) - cut] for cut in range(1, _ENDING + 1) if len(word) - cut > 3]
        if any(stem in self._words for stem in stems):
            return True
        return len(word) > 3 and any(
            other.startswith(word) and len(other) - len(word) <= _ENDING for other in self._words
        )


def _missing(what: str, values: Iterable[str], language: Language) -> str:
    listed = list(dict.fromkeys(values))
    if not listed:
        return ""
    if language == "zh":
        more = f"等 {len(listed)} 个" if len(listed) > _LISTED else ""
        return f"来源中没有这样的{what}：{'、'.join(listed[:_LISTED])}{more}"
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return f"no source has the {what}{'s' * (len(listed) > 1)} {', '.join(listed[:_LISTED])}{more}"


def _numbers(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the numbers of a text, and what each may be: 1.500 is a thousand, or one and a half."""
    text = unicodedata.normalize("NFKC", text)
    for match in _NUMBER.finditer(text):
        number = match[0]
        plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in number)
        values = {re.sub(r"[,٫]", ".", plain)}
        if _THOUSANDS.fullmatch(plain):
            values.add(re.sub(r"\D", "", plain))
        else:
            grouped = re.sub(r"[.,'’٬\u00a0\u202f ](?=\d{3}(?!\d))", "", plain)
            values.add(re.sub(r"[,٫]", ".", grouped))
            values.update(re.split(r"[ \u00a0\u202f]", plain) if " " in plain else ())
        yield number, values


def _has_language_of(text: str, others: Iterable[str]) -> bool:
    """Return whether a text may be in the language of one of others, a fifth of it at least."""
    letters = _scripts(text)
    languages: dict[str, object] = {}  # of the text, by script
    for other in others:
        scripts = _scripts(other)
        if not letters or not scripts:
            return True
        script = scripts.most_common(1)[0][0]
        if 5 * letters[script] < letters.total():
            continue
        if script not in languages:
            languages[script] = _language(text, script)
        if languages[script] in (None, language := _language(other, script)) or language is None:
            return True
    return False


def _language(text: str, script: str) -> object:
    return detect(_WORD.findall(text.lower()), script)


@cache
def _script(character: str) -> str:
    return script_of(character) if character.isalpha() else ""


def _scripts(text: str) -> Counter[str]:
    """Count the letters of each script. A text with kana is in Japanese, its Han characters too."""
    scripts = Counter(map(_script, text))
    del scripts[""]
    if 10 * (scripts["hiragana"] + scripts["katakana"]) > scripts.total():
        japanese = sum(scripts.pop(name, 0) for name in ("hiragana", "katakana", "cjk"))
        scripts["japanese"] = japanese
    return scripts


_LATIN = rf"[^\W{UNSPACED}]"

_SAME_PARAGRAPH = r"(?!\n[ \t]*\n)"


def _between(start: str, stop: str) -> str:
    """Return the pattern of what stands between two marks, with quotations in the same marks."""
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

_REPAIRS = 10  # what is corrected may be the citation of another quotation, or be around one


def check_quotes(
    answer: Any, evidence: Iterable[Any] | None = None, *, repair: bool = False
) -> Answer:
    """Look up each quotation and each cited sentence of an answer in its sources.

    No model is asked, and nothing is guessed: what is called exact or repaired stands there, and
    what is called nowhere does not. Sentences without a citation, citations of no source, and
    numbers and names that no source has, are notes. An answer in another language than its
    sources is checked by its quotations and numbers alone, with a note that says so.

    It works after any chain: as a step (``chain | check_quotes``) of LangChain, on a response of
    LlamaIndex, on a text. ``QueryEngine(check="quotes")`` calls it for each answer.

    Args:
        answer: An ``Answer``, a mapping that a chain returned (with ``answer`` and ``context``),
            a response, a message or a text. ``[1]`` in it cites the first source.
        evidence: The sources, instead of those of the answer: nodes, results, texts, documents,
            also of LangChain or LlamaIndex.
        repair: Correct the text: the exact wording and the right source, each part of a stitched
            quotation in marks of its own, no marks around what stands nowhere. The notes still
            say what was wrong.

    Returns:
        The answer with ``quotes`` and ``notes``. The one given is not changed.

    Raises:
        TypeError: If the answer is none, or a part_text of evidence has no text.

    Example:
        >>> sources = ["Green tea is steamed.", "Black tea is fermented, then dried."]
        >>> text = 'One is "steamed" [2]. The other “is Fermented … dried” [2], “never smoked” [2].'
        >>> answer = check_quotes(text, sources)
        >>> [(quote.text, quote.status, quote.source) for quote in answer.quotes]
        ... # doctest: +NORMALIZE_WHITESPACE
        [('steamed', 'elsewhere', 1), ('is Fermented … dried', 'repaired', 2),
         ('never smoked', 'nowhere', None)]
        >>> check_quotes(text, sources, repair=True).text
        'One is "steamed" [1]. The other “is fermented … dried” [2], never smoked [2].'
    """
    if not isinstance(answer, Answer):
        answer = _as_answer(*read_answer(answer, evidence))
    elif evidence is not None:
        answer = replace(_as_answer(*read_answer(answer.text, evidence)), question=answer.question)
    checked = _QuoteCheck(answer).result()
    for _ in range(_REPAIRS if repair else 0):
        if (text := _repaired(checked)) == checked.text:
            break
        checked = _QuoteCheck(replace(checked, text=text)).result()
    return checked


def _as_answer(text: str, results: Iterable[Any]) -> Answer:
    sources = [Source(n, result, str(result.node.content)) for n, result in enumerate(results, 1)]
    cited, notes = flag_cited(sources, text)
    return Answer(text, "", tuple(cited), notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that is searched: a source's, or that of sources that adjoin in their document."""

    text: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A quotation or a cited sentence, before it is looked up."""

    text: str
    span: Span
    cited: tuple[int, ...]
    quoted: bool


class _QuoteCheck:
    """Check one answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        texts = [_Text(source.text, (source,)) for source in answer.sources]
        self._texts = [*texts, *_adjoining(answer.sources)]
        self._index = QuoteIndex([text.text for text in self._texts])
        self._position = {source.number: at for at, source in enumerate(answer.sources)}
        self._language = language_of(answer.text)

    def result(self) -> Answer:
        """Return the answer with its quotations and notes."""
        answer = self._answer
        if not answer.sources or not answer.answered or answer.preset is not None:
            return answer
        layout = AnswerLayout(answer.text)
        texts = [source.text for source in answer.sources]
        claims = layout.claims()
        check = ClaimCheck(texts, [source.title for source in answer.sources], " ".join(claims))
        statements = [
            statement
            for statement in layout.statements()
            if statement.quoted or check.same_language
        ]
        quotes = tuple(map(self._checked, statements))
        notes = [*map(self._note, quotes)]
        uncited = layout.uncited()
        if uncited:
            count = len(uncited)
            sentences = "1 sentence cites" if count == 1 else f"{count} sentences cite"
            note = f"{sentences} no source: {_excerpts(uncited)}"
            if self._language == "zh":
                more = "……" if count > _LISTED else ""
                note = f"{count} 句没有标来源：{'、'.join(map(_excerpt, uncited[:_LISTED]))}{more}"
            notes.append(note)
        notes += check.notes(claims, self._language)
        named = (note for note in notes if note)
        before = [note for note in answer.notes if not (uncited and note in UNCITED.values())]
        return replace(answer, quotes=quotes, notes=tuple(dict.fromkeys([*before, *named])))

    def _checked(self, statement: _Statement) -> CheckedQuote:
        start, end = statement.span
        text, cited = statement.text, statement.cited
        first = [self._position[number] for number in cited if number in self._position]
        plain = _CITED.sub("", text)
        wordings = dict.fromkeys([text, plain, _EMPHASIS.sub("", plain)])
        matches = (self._index.find(wording, first) for wording in wordings)
        match = next((match for match in matches if match is not None), None)
        quote = CheckedQuote(text, start, end, "nowhere", statement.quoted, cited)
        if match is None:
            nearest = self._index.nearest(text)
            if nearest is None:
                return quote
            at, span = nearest
            return replace(quote, nearest=_span_node(self._texts[at], span))
        searched = self._texts[match.text]
        numbers = [source.number for source in searched.sources]
        source = next((number for number in numbers if number in cited), numbers[0])
        return replace(
            quote,
            status=_status(match, source, cited),
            source=source,
            spans=tuple(_span_node(searched, span) for span in match.spans),
            repairs=match.repairs,
        )

    def _note(self, quote: CheckedQuote) -> str:
        """Return what is wrong with a quotation. Empty if nothing is."""
        if self._language == "zh":
            return _chinese_note(quote)
        what = f"the {'quotation' if quote.quoted else 'sentence'} {_excerpt(quote.text)}"
        if quote.status == "elsewhere":
            cited = ", ".join(f"[{number}]" for number in quote.cited)
            return f"{what} stands in [{quote.source}], not in {cited}"
        if quote.status == "stitched":
            parts = f"{len(quote.spans)} parts of [{quote.source}]"
            return f"{what} is put together from {parts}" if quote.quoted else ""
        if quote.status == "nowhere" and quote.quoted:
            nearest = quote.nearest
            is_like = "" if nearest is None else f"; the nearest text is {_excerpt(nearest.text)}"
            return f"{what} stands in no source{is_like}"
        return ""


def _chinese_note(quote: CheckedQuote) -> str:
    """Return in Chinese what is wrong with a quotation. Empty if nothing is."""
    what = f"{'引文' if quote.quoted else '句子'}{_excerpt(quote.text)}"
    if quote.status == "elsewhere":
        cited = "、".join(f"[{number}]" for number in quote.cited)
        return f"{what}出自 [{quote.source}]，不在 {cited} 中"
    if quote.status == "stitched" and quote.quoted:
        return f"{what}由 [{quote.source}] 的 {len(quote.spans)} 处拼接而成"
    if quote.status == "nowhere" and quote.quoted:
        nearest = quote.nearest
        is_like = "" if nearest is None else f"；最接近的原文是{_excerpt(nearest.text)}"
        return f"{what}不在任何来源中{is_like}"
    return ""


def _status(match: QuoteMatch, source: int, cited: Sequence[int]) -> QuoteStatus:
    if match.status != "stitched" and cited and source not in cited:
        return "elsewhere"
    return match.status


class AnswerLayout:
    """Find the quotations, the cited sentences and the claims of a text.

    Args:
        text: An answer, or a draft. What stands in code is no quotation.

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
        """Return the sentences, each with the citations behind it and no quotation cut."""
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
        """Yield the quotations and the cited sentences, in the order of the text."""
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
        """Yield the quotations of a sentence with what is cited next behind each, or at all."""
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
        """Return the sentences that say something, without citations and quotations."""
        masked = _QUOTATION.sub(_blank, self._masked)
        texts = (masked[start:stop] for start, stop in self._sentences)
        return [_ITEM.sub("", CITATION.sub(" ", text)).strip() for text in texts]

    def uncited(self) -> list[str]:
        """Return the sentences that say something and cite no source."""
        uncited = []
        for start, stop in self._sentences:
            text = self._masked[start:stop]  # code cites nothing, but is in the note
            is_claim = not _NO_CLAIM.match(text) and not CITATION.search(text)
            if is_claim and len(re.findall(rf"[{UNSPACED}]|\w+", text)) > 1:
                uncited.append(_ITEM.sub("", self._text[start:stop]).strip())
        return uncited


def draft_quotes(text: str) -> list[str]:
    """Return the quotations of a draft, or without any its sentences, without citations.

    Example:
        >>> draft_quotes("He says “no” [1]."), draft_quotes("It rains. [1]")
        (['no'], ['It rains.'])
    """
    layout = AnswerLayout(text)
    quotes = [statement.text for statement in layout.statements() if statement.quoted]
    return quotes or [claim for claim in layout.claims() if re.search(r"\w", claim)]


_PUNCTUATION_BEHIND = re.compile(r"[.,;:!?。，；：！？]\Z")

_LEADING_WORDS = re.compile(rf"[^\[【［]*?(?:(?i:{CITATION.pattern})\s*)+")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _blank_lines(match: re.Match[str]) -> str:
    return "\n" * len(match[0])


def _adjoining(sources: Sequence[Source]) -> Iterator[_Text]:
    """Yield the text of sources that follow each other in their document: a quotation may go on."""
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
    """Return a part of a text as a node that knows where it stands in its document."""
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
    """Return where a text starts in its document. None if that can't be told."""
    source = searched.sources[0]
    nodes = [source.result.node, *(result.node for result in source.merged)]
    starts = [0 if node.group == "ROOT" else node.start for node in nodes]
    existing = [start for start in starts if start is not None]
    if len(existing) < len(starts):
        return None
    node, first = nodes[0], min(existing)
    if node.text.startswith(searched.text) and len(nodes) == 1:
        return first
    if len(searched.sources) > 1:
        return first
    with suppress(LookupError, ValueError):  # the document is gone, or there is no graph
        at = node.root.text.find(searched.text, first)
        return at if at >= 0 else None
    at = node.text.find(searched.text)
    return first + at if at >= 0 else None


def _repaired(answer: Answer) -> str:
    """Return the text with its quotations corrected, from the last one to the first."""
    text = answer.text
    for quote in reversed(answer.quotes):
        text = _with_repair(text, quote)
    return text


def _with_repair(text: str, quote: CheckedQuote) -> str:
    start, stop = quote.start, quote.end
    if quote.quoted and _BLOCK.match(text, start):
        return f"{text[:start]}{_repaired_block(text[start:stop], quote)}{text[stop:]}"
    if quote.source is not None and quote.cited and quote.source not in quote.cited:
        text = _with_citation(text, quote)
    if not quote.quoted or _has_wording(quote):
        return text
    before, after = text[start - 1], text[stop]
    if quote.status == "nowhere":
        return f"{text[: start - 1]}{text[start:stop]}{text[stop + 1 :]}"
    wording = [_in_line(span.text) for span in quote.spans]
    separator = f"{after} … {before}" if quote.status == "stitched" else " … "
    if not all(_QUOTATION.fullmatch(before + part + after) for part in wording):
        return text  # which has marks that would close the quotation
    new = separator.join(wording)
    behind = "" if wording[-1].endswith(quote.text[-1]) else _PUNCTUATION_BEHIND.search(quote.text)
    return f"{text[:start]}{new}{after}{behind[0] if behind else ''}{text[stop + 1 :]}"


def _has_wording(quote: CheckedQuote) -> bool:
    """Return whether a quotation has the wording of a source."""
    return quote.status in ("exact", "elsewhere") and not quote.repairs


def _repaired_block(block: str, quote: CheckedQuote) -> str:
    """Return a block quotation with the wording of its source, below each other what is apart."""
    attribution = _ATTRIBUTION.search(block)
    body = block[: attribution.start()] if attribution else block
    numbers = cited_numbers(block)
    if quote.source is not None and quote.cited and quote.source not in quote.cited:
        numbers = [quote.source]
    if quote.status == "nowhere":
        return _BLOCK_MARK.sub("", block)
    if _has_wording(quote):
        wording = _CITED.sub("", body).rstrip()
    else:
        parts = [_in_line(span.text) for span in quote.spans]
        wording = "> " + ("\n>\n> " if quote.status == "stitched" else " … ").join(parts)
    behind = _CITED.sub("", attribution[0]) if attribution else ""
    return wording + behind + "".join(f" [{number}]" for number in numbers)


def _with_citation(text: str, quote: CheckedQuote) -> str:
    """Return a text in which a quotation cites the source that it stands in."""
    citation = f"[{quote.source}]"
    start = quote.end + 1 if quote.quoted else quote.start
    existing = CITATION.search(text, start)
    directly = existing is not None and (
        not text[start : existing.start()].strip() if quote.quoted else existing.start() < quote.end
    )
    if existing is not None and directly:
        return f"{text[: existing.start()]}{citation}{text[existing.end() :]}"
    at = min(len(text), start if quote.quoted else quote.end)
    return f"{text[:at]} {citation}{text[at:]}"


def _in_line(text: str) -> str:
    """Return a text without line breaks, which would end a quotation."""
    text = re.sub(rf"(?<=[{UNSPACED}])\n\s{{0,9}}(?=[{UNSPACED}])", "", text)
    return re.sub(r"[\n\f\r]+\s{0,9}", " ", text)


def _excerpt(text: str) -> str:
    line = _in_line(text).strip()
    return f"“{line}”" if len(line) <= 80 else f"“{line[:77].rstrip()}...”"


def _excerpts(texts: Sequence[str]) -> str:
    listed = ", ".join(map(_excerpt, texts[:_LISTED]))
    return listed if len(texts) <= _LISTED else f"{listed} and {len(texts) - _LISTED} more"
