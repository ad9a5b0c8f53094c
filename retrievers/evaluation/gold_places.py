"""Find gold in the current documents: moved, renamed or slightly edited."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein
from rapidfuzz.fuzz import partial_ratio_alignment

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.splitters.chunking import count_tokens
from ...nodegraph.splitters.sentences import split_paragraphs
from ..retriever import Retriever
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, MissingGold
from .matching import RetrievedItem
from .records import document_hashes

MIN_TOKENS = 6
"""The minimum length of a text that is searched in other documents, or by similarity."""

MIN_SIMILARITY = 0.7
"""The minimum similarity of an edited text: 1 - edit distance / length."""

_NUMBER = re.compile(r"\d+|[〇零一二两兩三四五六七八九十百千万萬亿億]+")


class TextLocation(NamedTuple):
    """The position of a text in a document."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MovedGold:
    """Gold that was found at another place, or with another text.

    Attributes:
        question_id: The id of the question.
        before: The gold of the question.
        now: The gold in the current documents.
    """

    question_id: str
    before: Gold
    now: Gold

    def __str__(self) -> str:
        return f"{self.question_id}: {_shown(self.before)} is now {_shown(self.now)}"


@dataclass(frozen=True, slots=True)
class LocatedGold:
    """Questions with the gold of the current documents.

    Attributes:
        dataset: The questions.
        moved: Gold that was found at another place.
        missing: Gold that is in no document. It is still in the questions.
    """

    dataset: Dataset
    moved: Sequence[MovedGold] = ()
    missing: Sequence[MissingGold] = ()


class DocumentTexts:
    """The texts of the current documents.

    Args:
        documents: A graph or its documents.
        document_key: The metadata field with the id of a document, see ``Matching``.
    """

    def __init__(
        self, documents: NodeGraph | Iterable[Document], document_key: str | None = None
    ) -> None:
        self.documents: dict[str, Document] = {}
        nodes = documents.nodes("ROOT") if isinstance(documents, NodeGraph) else documents
        for document in nodes:
            name = document.id
            if document_key is not None:
                name = str(document.metadata.get(document_key) or name)
            self.documents[name] = Document(document.text, document.metadata, id=name)
        self._locations: dict[tuple[str, str], TextLocation | None] = {}

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hash of each document's text by id."""
        return document_hashes(self.documents.values())

    def resolve_id(self, name: str) -> str:
        """Return a document id, or the only id with the same file name, or an empty string."""
        if name in self.documents:
            return name
        file = _file_of(name)
        same = [other for other in self.documents if _file_of(other) == file] if "." in file else []
        return same[0] if len(same) == 1 else ""

    def place(self, item: RetrievedItem) -> RetrievedItem:
        """Return a result with its document and position, if its text is in a document.

        Results of other frameworks may have other document ids.
        """
        if not item.text or (item.start is not None and item.document_id in self.documents):
            return item
        key = item.document_id, item.text
        if key not in self._locations:
            self._locations[key] = self._find(item.text, item.document_id)
        if (location := self._locations[key]) is not None:
            return replace(item, **location._asdict())
        return replace(item, document_id=self.resolve_id(item.document_id) or item.document_id)

    def locate(self, gold: GoldPassage | GoldSpan) -> TextLocation | None:
        """Return the current position of gold: its text, or the most similar text."""
        if isinstance(gold, GoldPassage):
            return self._find(gold.text) or self._similar(gold.text)
        if gold.text:
            found = self._find(gold.text, gold.document_id, gold.start)
            return found or self._similar(gold.text, gold.document_id)
        document = self.resolve_id(gold.document_id)
        if not document or gold.end > len(self.documents[document].text):
            return None
        return TextLocation(document, gold.start, gold.end)

    def _find(self, text: str, document: str = "", near: int = 0) -> TextLocation | None:
        """Return the nearest position of a text in a document, else a position in any document.

        White space is ignored. Documents with the same file name come first.
        """
        if not text.strip():
            return None
        own, file = self.resolve_id(document), _file_of(document)
        names = [own] if own else []
        if not document or count_tokens(text) >= MIN_TOKENS:
            names += sorted(self.documents, key=lambda name: _file_of(name) != file)
        for name in names:
            content = self.documents[name].text
            if text in content:
                pattern = re.escape(text)
            elif " ".join(text.split()) in self._squeezed[name]:
                pattern = r"\s+".join(map(re.escape, text.split()))
            else:
                continue
            matches = [match.span(1) for match in re.finditer(f"(?=({pattern}))", content)]
            if matches:
                return TextLocation(name, *min(matches, key=lambda span: abs(span[0] - near)))
        return None

    @cached_property
    def _squeezed(self) -> dict[str, str]:
        return {name: " ".join(document.text.split()) for name, document in self.documents.items()}

    def _similar(self, text: str, document: str = "") -> TextLocation | None:
        """Return the most similar text with equal numbers, in the documents of similar paragraphs.

        Texts below ``MIN_TOKENS`` are too short for that.
        """
        if count_tokens(text) < MIN_TOKENS:
            return None
        names = [self.resolve_id(document), *(name for name, _ in self.nearest(text))]
        best, best_similarity = None, MIN_SIMILARITY
        for name in dict.fromkeys(filter(None, names)):
            content = self.documents[name].text
            similarity, start, end = similar_part(text, content)
            same_numbers = _NUMBER.findall(text) == _NUMBER.findall(content[start:end])
            if similarity >= best_similarity and same_numbers:
                best, best_similarity = TextLocation(name, start, end), similarity
        return best

    def nearest(self, text: str) -> list[tuple[str, str]]:
        """Return the document ids and texts of the most similar paragraphs."""
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


def similar_part(text: str, content: str) -> tuple[float, int, int]:
    """Return the similarity, start and end of the part of a content that is most similar to a text.

    The similarity is 1 - edit distance / length of the text.

    Example:
        >>> similar_part("black tea", "We drink a blak tea.")
        (0.8888888888888888, 11, 19)
    """
    found = partial_ratio_alignment(text, content)
    if found is None:  # only with a cutoff
        return 0.0, 0, 0
    margin = len(text) // 4
    first = max(0, found.dest_start - margin)
    region = content[first : found.dest_end + margin]
    blocks = Levenshtein.editops(text, region).as_matching_blocks()[:-1]
    if not blocks:
        return 0.0, 0, 0
    start, end = blocks[0].b - blocks[0].a, blocks[-1].b + blocks[-1].size
    start = max(0, start)
    end = min(len(region), end + len(text) - blocks[-1].a - blocks[-1].size)
    distance = Levenshtein.distance(text, region[start:end])
    return 1 - distance / len(text), first + start, first + end


def locate_gold(dataset: Dataset, texts: DocumentTexts, *, as_spans: bool = False) -> LocatedGold:
    """Find the gold of questions in documents: moved, renamed or slightly edited.

    Args:
        dataset: The questions.
        texts: The documents.
        as_spans: Convert passages to spans, so that each result that overlaps one is relevant.
    """
    moved: list[MovedGold] = []
    missing: list[MissingGold] = []
    questions = []
    located: dict[Gold, Gold | None] = {}
    for question in dataset.questions:
        golds: list[Gold] = []
        for gold in question.gold:
            if gold not in located:
                located[gold] = _locate(gold, texts, as_spans)
            now = located[gold]
            golds.append(now or gold)
            if now is None:
                missing.append(MissingGold(question.id, gold, _nearest(gold, texts)))
            elif _has_moved(gold, now):
                moved.append(MovedGold(question.id, gold, now))
        questions.append(replace(question, gold=tuple(dict.fromkeys(golds))))
    return LocatedGold(Dataset(questions, dataset.documents, dataset.name), moved, missing)


def _locate(gold: Gold, texts: DocumentTexts, as_spans: bool) -> Gold | None:
    """Return the gold of the current documents. None: missing."""
    if isinstance(gold, GoldDocument):
        name = texts.resolve_id(gold.document_id)
        return replace(gold, document_id=name) if name else None
    location = texts.locate(gold)
    if location is None:
        return None
    text = texts.documents[location.document_id].text[location.start : location.end]
    if isinstance(gold, GoldPassage) and not as_spans:
        return gold if text.split() == gold.text.split() else replace(gold, text=text)
    return GoldSpan(*location, text if gold.text else "", gold.grade)


def _has_moved(before: Gold, now: Gold) -> bool:
    """Return whether gold has another place or text, not only another form."""
    if isinstance(before, GoldPassage) and isinstance(now, GoldSpan):
        return before.text.split() != now.text.split()
    return before != now


def _nearest(gold: Gold, texts: DocumentTexts) -> str:
    """Return the paragraph or document id that is most similar to missing gold."""
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
