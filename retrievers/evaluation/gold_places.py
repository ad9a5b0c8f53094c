"""Find gold again in the documents of today: where a text stands, also after an edit or a move."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.splitters.chunking import count_tokens
from ...nodegraph.splitters.sentences import split_paragraphs
from ..retriever import Retriever
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, MissingGold
from .matching import SPACED, RetrievedItem, edit_similarity, similar_part
from .records import document_hashes

MIN_TOKENS = 6
"""With fewer tokens a text says too little to be looked for in other documents, or by likeness."""

MIN_SIMILARITY = 0.7
"""How much of a text has to be there still: one minus the edit distance divided by its length."""


SAME_PLACE = 0.7
"""How much of two places has to be common for them to be one."""

_CHINESE_DIGITS = "〇零一二两兩三四五六七八九十百千万萬亿億"
_NUMBER = re.compile(rf"\d+(?:[.,]\d+)*|[{_CHINESE_DIGITS}]+")
_WORD_LETTER = re.compile(rf"{SPACED}|[{_CHINESE_DIGITS}]")
_WORD = re.compile(rf"{SPACED}+")
_FIRST_WORD = re.compile(rf"(?:^|[.!?:\n])\W*({SPACED}{{1,3}}\b)")  # "The", "It": no name


class TextLocation(NamedTuple):
    """Where a text stands."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MovedGold:
    """Name gold that is not where the question says, and where it was found again.

    Attributes:
        question_id: Of the question.
        before: As the question has it.
        now: As it is in the documents.
    """

    question_id: str
    before: Gold
    now: Gold

    @property
    def is_edited(self) -> bool:
        """Whether its text is another one than it was."""
        texts = [getattr(gold, "text", "").split() for gold in (self.before, self.now)]
        return bool(texts[0]) and texts[0] != texts[1]

    def __str__(self) -> str:
        return f"{self.question_id}: {_shown(self.before)} is now {_shown(self.now)}"


class DocumentTexts:
    """Hold the documents that are searched, and find texts in them.

    Args:
        documents: A graph, or its documents.
        document_key: The metadata field with the ids of documents, see ``Matching``.
    """

    def __init__(
        self, documents: NodeGraph | Iterable[Document], document_key: str | None = None
    ) -> None:
        if isinstance(documents, NodeGraph):
            nodes = documents.nodes("ROOT")
            documents = [Document(n.text, n.metadata, id=n.id) for n in nodes]
        if document_key is not None:
            documents = [
                Document(d.text, d.metadata, id=str(d.metadata.get(document_key) or d.id))
                for d in documents
            ]
        self.documents = {document.id: document for document in documents}
        self._locations: dict[tuple[str, str], TextLocation | None] = {}

    @cached_property
    def hashes(self) -> dict[str, str]:
        """A hash of each document's text, by its id."""
        return document_hashes(self.documents.values())

    @cached_property
    def _by_file(self) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {}
        for name in self.documents:
            files.setdefault(_file_of(name), []).append(name)
        return files

    def resolve_id(self, name: str) -> str:
        """Return the id of the document that a name means. Empty if there is none.

        It is the id itself, or the only id with the same file name, since folders move.
        """
        if name in self.documents:
            return name
        same = self._by_file.get(_file_of(name), []) if "." in _file_of(name) else []
        return same[0] if len(same) == 1 else ""

    def place(self, item: RetrievedItem) -> RetrievedItem:
        """Return a result with its document and its place in it, as far as these can be found.

        What a retriever of another framework returns may have ids of its own.
        """
        if not item.text or (item.start is not None and item.document_id in self.documents):
            return item
        document = self.resolve_id(item.document_id)
        key = (document, item.text)
        if key not in self._locations:
            self._locations[key] = (
                self._find(item.text, [document], 0) if document else self._elsewhere(item.text, "")
            )
        if (location := self._locations[key]) is not None:
            start, end = location.start, location.end
            return replace(item, document_id=location.document_id, start=start, end=end)
        return replace(item, document_id=document) if document else item

    def locate(self, gold: GoldSpan) -> TextLocation | None:
        """Return where a span is today: nearest to its old place, else elsewhere, else alike."""
        document = self.resolve_id(gold.document_id)
        if document:
            text = self.documents[document].text
            if (not gold.text and gold.end <= len(text)) or (
                gold.text and text[gold.start : gold.end] == gold.text
            ):
                return TextLocation(document, gold.start, gold.end)
        if not gold.text:
            return None
        location = self._find(gold.text, [document], gold.start) if document else None
        location = location or self._elsewhere(gold.text, gold.document_id)
        return location or self._alike(gold.text, document)

    def find(self, text: str) -> TextLocation | None:
        """Return where a text is in any document, or what is most like it. None if nothing is."""
        if not text.strip():
            return None
        return self._find(text, self.documents, 0) or self._alike(text, "")

    def _find(self, text: str, names: Iterable[str], near: int) -> TextLocation | None:
        """Return where a text is in some documents, white space apart."""
        squeezed = " ".join(text.split())
        for name in names:
            content = self.documents[name].text
            spans = [(at, at + len(text)) for at in _occurrences(text, content)]
            if not spans and squeezed in self._squeezed[name]:
                words = map(re.escape, text.split())
                spans = [match.span() for match in re.finditer(r"\s+".join(words), content)]
            if spans:
                return TextLocation(name, *min(spans, key=lambda span: abs(span[0] - near)))
        return None

    @cached_property
    def _squeezed(self) -> dict[str, str]:
        return {name: " ".join(document.text.split()) for name, document in self.documents.items()}

    def _elsewhere(self, text: str, name: str) -> TextLocation | None:
        if count_tokens(text) < MIN_TOKENS:
            return None
        file = _file_of(name)
        order = sorted(self.documents, key=lambda id: _file_of(id) != file) if name else None
        return self._find(text, order or self.documents, 0)

    def _alike(self, text: str, document: str) -> TextLocation | None:
        """Return the part of a document that is most like a text: its own, or the nearest ones."""
        if count_tokens(text) < MIN_TOKENS:
            return None
        names = [document] if document else []
        names += [near for near, _ in self.nearest(text) if near != document]
        best: tuple[float, TextLocation] | None = None
        for name in names:
            content = self.documents[name].text
            similarity, start, end = similar_part(text, content)
            if similarity < MIN_SIMILARITY or (best is not None and similarity <= best[0]):
                continue
            if has_same_facts(text, _whole_words(content, start, end)):
                best = similarity, TextLocation(name, start, end)
        return None if best is None else best[1]

    def nearest(self, text: str) -> list[tuple[str, str]]:
        """Return the documents with the paragraphs that resemble a text most, and these."""
        if not self.documents:
            return []
        results = self._paragraphs.retrieve(text)
        return [(result.node.document_id, result.node.text) for result in results]

    @cached_property
    def _paragraphs(self) -> Retriever:
        graph = NodeGraph(progress=False)
        graph.add(self.documents.values())
        graph.create_node_group("paragraph", split_paragraphs)
        return Retriever(graph, "paragraph", "bm25", top_k=3)


@dataclass(frozen=True, slots=True)
class LocatedGold:
    """Hold questions whose gold is that of the documents of today.

    Attributes:
        dataset: The questions.
        moved: Gold that was found elsewhere than the questions say.
        missing: Gold that is in no document. It is still in the questions.
    """

    dataset: Dataset
    moved: Sequence[MovedGold]
    missing: Sequence[MissingGold]


def locate_gold(dataset: Dataset, texts: DocumentTexts, *, as_spans: bool = False) -> LocatedGold:
    """Find the gold of questions in documents: moved, renamed or edited a little.

    Args:
        dataset: The questions.
        texts: The documents.
        as_spans: Whether passages become spans, so that a result that overlaps one is right.
    """
    moved: list[MovedGold] = []
    missing: list[MissingGold] = []
    questions = []
    locations = {
        gold: location
        for gold in dict.fromkeys(gold for question in dataset.questions for gold in question.gold)
        if (location := _location_of(gold, texts)) is not None
    }
    for gold in _doubtful(locations, texts):
        del locations[gold]
    located: dict[Gold, Gold | None] = {}
    for question in dataset.questions:
        golds: list[Gold] = []
        for gold in question.gold:
            if gold not in located:
                located[gold] = _locate(gold, locations.get(gold), texts, as_spans)
            now = located[gold]
            golds.append(gold if now is None else now)
            if now is None:
                missing.append(MissingGold(question.id, gold, _nearest(gold, texts)))
            elif _is_elsewhere(gold, now):
                moved.append(MovedGold(question.id, gold, now))
        questions.append(replace(question, gold=tuple(dict.fromkeys(golds))))
    return LocatedGold(Dataset(questions, dataset.documents, dataset.name), moved, missing)


def _location_of(gold: Gold, texts: DocumentTexts) -> TextLocation | None:
    """Return where the text of gold stands. None if it has none, or is in no document."""
    if isinstance(gold, GoldPassage):
        return texts.find(gold.text)
    return texts.locate(gold) if isinstance(gold, GoldSpan) else None


def _doubtful(locations: Mapping[Gold, TextLocation], texts: DocumentTexts) -> Iterator[Gold]:
    """Yield the gold that is only alike what stands at its place, where another gold text fits."""
    by_document = defaultdict(list)
    for gold, location in locations.items():
        text = "" if isinstance(gold, GoldDocument) else " ".join(gold.text.split())
        now = texts.documents[location.document_id].text[location.start : location.end]
        similarity = edit_similarity(text, " ".join(now.split())) if text else 1.0
        by_document[location.document_id].append((similarity, location, text, gold))
    for entries in by_document.values():
        assigned: list[tuple[TextLocation, str]] = []
        for similarity, location, text, gold in sorted(entries, key=lambda entry: -entry[0]):
            if similarity < 1 and any(
                _is_same(location, other) and text not in other_text and other_text not in text
                for other, other_text in assigned
            ):
                yield gold
            elif text:
                assigned.append((location, text))


def _is_same(location: TextLocation, other: TextLocation) -> bool:
    common = min(location.end, other.end) - max(location.start, other.start)
    return common > SAME_PLACE * (max(location.end, other.end) - min(location.start, other.start))


def has_same_facts(text: str, other: str) -> bool:
    """Return whether two texts have the same numbers and names: words with a capital letter.

    A name may be in small letters in the other. Numbers are digits, also Chinese ones.

    Example:
        >>> has_same_facts("Premium: 90 days", "For Premium it is 90 days")
        True
        >>> has_same_facts("Premium: 90 days", "Premium: 30 days")
        False
    """
    text, other = (unicodedata.normalize("NFKC", entry) for entry in (text, other))
    if _NUMBER.findall(text) != _NUMBER.findall(other):
        return False
    for entry, compared in ((text, other), (other, text)):
        words = {word.casefold() for word in _WORD.findall(compared)}
        words.update(w.casefold() for w in _FIRST_WORD.findall(entry) if not w[1:].isupper())
        if any(w.casefold() not in words for w in _WORD.findall(entry) if w != w.lower()):
            return False
    return True


def _whole_words(content: str, start: int, end: int) -> str:
    """Return a part of a text with the words at its edges complete."""
    is_letter = _WORD_LETTER.match
    while 0 < start < end and is_letter(content[start]) and is_letter(content[start - 1]):
        start -= 1
    while start < end < len(content) and is_letter(content[end - 1]) and is_letter(content[end]):
        end += 1
    return content[start:end]


def _locate(
    gold: Gold, location: TextLocation | None, texts: DocumentTexts, as_spans: bool
) -> Gold | None:
    """Return gold as it is in the documents. None if it is in none."""
    if isinstance(gold, GoldDocument):
        name = texts.resolve_id(gold.document_id)
        return replace(gold, document_id=name) if name else None
    if location is None:
        return None
    text = (
        texts.documents[location.document_id].text[location.start : location.end]
        if gold.text
        else ""
    )
    if isinstance(gold, GoldPassage) and not as_spans:
        return gold if text.split() == gold.text.split() else replace(gold, text=text)
    return GoldSpan(*location, text, gold.grade)


def _is_elsewhere(before: Gold, now: Gold) -> bool:
    """Return whether gold is elsewhere or other than it was, not only in another form."""
    if isinstance(before, GoldPassage) and isinstance(now, GoldSpan):
        return before.text.split() != now.text.split()
    return before != now


def _nearest(gold: Gold, texts: DocumentTexts) -> str:
    """Return the paragraph or document id that missing gold resembles most."""
    if isinstance(gold, GoldPassage):
        return next((text for _, text in texts.nearest(gold.text)), "")
    return next(iter(difflib.get_close_matches(gold.document_id, texts.documents, 1)), "")


def _shown(gold: Gold) -> str:
    if isinstance(gold, GoldPassage):
        return f"{gold.text!r:.80}"
    if isinstance(gold, GoldSpan):
        return f"{gold.text!r:.60} at {gold.document_id}:{gold.start}-{gold.end}"
    return repr(gold.document_id)


def _file_of(name: str) -> str:
    return re.split(r"[/\\]", name)[-1]


def _occurrences(text: str, content: str) -> Iterator[int]:
    at = content.find(text)
    while at >= 0:
        yield at
        at = content.find(text, at + 1)
