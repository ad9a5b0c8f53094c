"""Find gold again in the documents of today: where a text stands, also after an edit or a move."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.text import PAGE_BREAK
from ...nodegraph.splitters.chunking import count_tokens
from ...nodegraph.splitters.headings import headings_in, sections_of
from ...nodegraph.splitters.sentences import split_paragraphs
from .dataset import Dataset, Gold, GoldDocument, GoldPart, GoldPassage, GoldSpan, MissingGold
from .matching import RetrievedItem, similar_part
from .records import document_hashes

if TYPE_CHECKING:
    from ..retriever import Retriever

MIN_TOKENS = 6
"""With fewer tokens a text says too little to be looked for in other documents, or by likeness."""

MIN_SIMILARITY = 0.7
"""How much of a text has to be there still: one minus the edit distance divided by its length."""


class Place(NamedTuple):
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
        self._places: dict[tuple[str, str], Place | None] = {}

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
        if key not in self._places:
            self._places[key] = (
                self._find(item.text, [document], 0) if document else self._elsewhere(item.text, "")
            )
        if (place := self._places[key]) is not None:
            start, end = place.start, place.end
            return replace(item, document_id=place.document_id, start=start, end=end)
        return replace(item, document_id=document) if document else item

    def locate(self, gold: GoldSpan) -> Place | None:
        """Return where a span is today: nearest to its old place, else elsewhere, else alike."""
        document = self.resolve_id(gold.document_id)
        if document:
            text = self.documents[document].text
            if (not gold.text and gold.end <= len(text)) or (
                gold.text and text[gold.start : gold.end] == gold.text
            ):
                return Place(document, gold.start, gold.end)
        if not gold.text:
            return None
        found = self._find(gold.text, [document], gold.start) if document else None
        found = found or self._elsewhere(gold.text, gold.document_id)
        return found or self._alike(gold.text, document)

    def find(self, text: str) -> Place | None:
        """Return where a text is in any document, or what is most like it. None if nothing is."""
        if not text.strip():
            return None
        return self._find(text, self.documents, 0) or self._alike(text, "")

    def _find(self, text: str, names: Iterable[str], near: int) -> Place | None:
        """Return where a text is in some documents, white space apart."""
        squeezed = " ".join(text.split())
        for name in names:
            content = self.documents[name].text
            spans = [(at, at + len(text)) for at in _occurrences(text, content)]
            if not spans and squeezed in self._squeezed[name]:
                words = map(re.escape, text.split())
                spans = [match.span() for match in re.finditer(r"\s+".join(words), content)]
            if spans:
                return Place(name, *min(spans, key=lambda span: abs(span[0] - near)))
        return None

    @cached_property
    def _squeezed(self) -> dict[str, str]:
        return {name: " ".join(document.text.split()) for name, document in self.documents.items()}

    def _elsewhere(self, text: str, name: str) -> Place | None:
        if count_tokens(text) < MIN_TOKENS:
            return None
        file = _file_of(name)
        order = sorted(self.documents, key=lambda id: _file_of(id) != file) if name else None
        return self._find(text, order or self.documents, 0)

    def _alike(self, text: str, document: str) -> Place | None:
        """Return the part of a document that is most like a text: its own, or the nearest ones."""
        if count_tokens(text) < MIN_TOKENS:
            return None
        names = [document] if document else []
        names += [near for near, _ in self.nearest(text) if near != document]
        best: tuple[float, Place] | None = None
        for name in names:
            similarity, start, end = similar_part(text, self.documents[name].text)
            if similarity >= MIN_SIMILARITY and (best is None or similarity > best[0]):
                best = similarity, Place(name, start, end)
        return None if best is None else best[1]

    def nearest(self, text: str) -> list[tuple[str, str]]:
        """Return the documents with the paragraphs that resemble a text most, and these."""
        if not self.documents:
            return []
        results = self._paragraphs.retrieve(text)
        return [(result.node.document_id, result.node.text) for result in results]

    @cached_property
    def _paragraphs(self) -> Retriever:
        from ..retriever import Retriever  # only where something is missing

        graph = NodeGraph(progress=False)
        graph.add(self.documents.values())
        graph.create_node_group("paragraph", split_paragraphs)
        return Retriever(graph, "paragraph", "bm25", top_k=3)

    def part(self, gold: GoldPart) -> GoldSpan | None:
        """Return a page, or the section below a heading, as a span. None if there is none."""
        document = self.resolve_id(gold.document_id)
        if not document:
            return None
        text = self.documents[document].text
        span = _page(text, gold.page) if gold.page else self._section(document, gold.heading)
        if span is None or not text[slice(*span)].strip():
            return None
        return GoldSpan(document, *span, text[slice(*span)], gold.grade)

    def _section(self, document: str, heading: str) -> tuple[int, int] | None:
        """Return where the section of a heading is, with those below it."""
        text, metadata = self.documents[document].text, self.documents[document].metadata
        name = str(metadata.get("file_name") or document)
        sections = list(sections_of(text, headings_in(text, name)))
        titles = {" > ".join(section.path).casefold(): section for section in sections}
        wanted = " > ".join(part.strip() for part in heading.split(">")).casefold()
        chosen = next((t for t in titles if t == wanted or t.endswith(f" > {wanted}")), None)
        if chosen is None:  # perhaps it was edited
            last = {title.rpartition(" > ")[2]: title for title in titles}
            like = difflib.get_close_matches(wanted.rpartition(" > ")[2], last, 1, 0.8)
            if not like:
                return None
            chosen = last[like[0]]
        first = titles[chosen]
        after = sections[sections.index(first) + 1 :]
        end = next((s.start for s in after if s.level <= first.level), len(text))
        return first.start, end


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
    located: dict[Gold, Gold | None] = {}
    for question in dataset.questions:
        golds: list[Gold] = []
        for gold in question.gold:
            if gold not in located:
                located[gold] = _locate(gold, texts, as_spans)
            now = located[gold]
            golds.append(gold if now is None else now)
            if now is None:
                missing.append(MissingGold(question.id, gold, _nearest(gold, texts)))
            elif _is_elsewhere(gold, now):
                moved.append(MovedGold(question.id, gold, now))
        questions.append(replace(question, gold=tuple(dict.fromkeys(golds))))
    return LocatedGold(Dataset(questions, dataset.documents, dataset.name), moved, missing)


def _locate(gold: Gold, texts: DocumentTexts, as_spans: bool) -> Gold | None:
    """Return gold as it is in the documents. None if it is in none."""
    if isinstance(gold, GoldDocument):
        name = texts.resolve_id(gold.document_id)
        return replace(gold, document_id=name) if name else None
    if isinstance(gold, GoldPart):
        return texts.part(gold)
    if isinstance(gold, GoldPassage):
        place = texts.find(gold.text)
        if place is None:
            return None
        text = texts.documents[place.document_id].text[place.start : place.end]
        if as_spans:
            return GoldSpan(*place, text, gold.grade)
        return gold if text.split() == gold.text.split() else replace(gold, text=text)
    place = texts.locate(gold)
    if place is None:
        return None
    text = texts.documents[place.document_id].text[place.start : place.end] if gold.text else ""
    return GoldSpan(*place, text, gold.grade)


def _is_elsewhere(before: Gold, now: Gold) -> bool:
    """Return whether gold is elsewhere or other than it was, not only in another form."""
    if isinstance(before, GoldPart):
        return isinstance(now, GoldSpan) and now.document_id != before.document_id
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


def _page(text: str, page: int) -> tuple[int, int] | None:
    parts = text.split(PAGE_BREAK)
    if page > len(parts):
        return None
    start = sum(len(part) + len(PAGE_BREAK) for part in parts[: page - 1])
    return start, start + len(parts[page - 1])
