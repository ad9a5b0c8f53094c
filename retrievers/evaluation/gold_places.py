"""Find gold in the current documents: moved, renamed or slightly edited."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from rapidfuzz.distance import Levenshtein
from rapidfuzz.fuzz import partial_ratio_alignment

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.splitters.chunking import count_tokens
from ...nodegraph.splitters.sentences import split_paragraphs
from ...nodegraph.text_forms import composed, in_stored_form
from ..retriever import Retriever
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan
from .metrics import RetrievedItem

MIN_TOKENS = 6
"""The minimum length of a text that is searched in other documents, or by similarity."""

MIN_SIMILARITY = 0.7
"""The minimum similarity of an edited text: 1 - edit distance / length."""

_NUMBER = re.compile(r"\d+|[〇零一二两兩三四五六七八九十百千万萬亿億]+")

GoldWithIdT = TypeVar("GoldWithIdT", GoldDocument, GoldSpan)

Place = tuple[str, int, int]
"""The document id, the start and the end of a text."""


@dataclass(frozen=True, slots=True)
class GoldChange:
    """Gold that is missing, or was found at another place or with another text.

    Attributes:
        question_id: The id of the question.
        gold: The gold of the question.
        now: The gold in the current documents. If None, it is in no document.
        nearest: The paragraph or document id that is most similar to missing gold. May be empty.
    """

    question_id: str
    gold: Gold
    now: Gold | None = None
    nearest: str = ""

    def __str__(self) -> str:
        if self.now is not None:
            return f"{self.question_id}: {_shown(self.gold)} is now {_shown(self.now)}"
        expected = self.gold.text if isinstance(self.gold, GoldPassage) else self.gold.document_id
        text = f"{self.question_id}: {expected!r:.120} is in no document"
        if self.nearest:
            text += f"; nearest: {self.nearest!r:.120}"
        return text


@dataclass(frozen=True, slots=True)
class LocatedGold:
    """Questions with the gold of the current documents.

    Attributes:
        dataset: The questions.
        moved: Gold that was found at another place.
        missing: Gold that is in no document. It is not in the questions.
    """

    dataset: Dataset
    moved: Sequence[GoldChange] = ()
    missing: Sequence[GoldChange] = ()


class DocumentTexts:
    """The texts of the current documents, in which ``locate_gold`` finds gold.

    Args:
        documents: A graph, or documents.
        document_key: The metadata field with the id of a document, see ``Matching``. None means the
            document's own id.

    Example:
        >>> from nodekin.nodegraph import Document
        >>> texts = DocumentTexts([Document("Rivers run. Tea is a drink.", id="docs/tea.md")])
        >>> texts.find("Tea is a drink."), texts.resolve_id("tea.md")
        (('docs/tea.md', 12, 27), 'docs/tea.md')
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
        self._places: dict[tuple[str, str], Place | None] = {}

    def resolve_id(self, name: str) -> str:
        """Return a document id, or the only id with the same file name, or an empty string."""
        form = in_stored_form(name, self.documents)
        if form is not None:
            return form
        file = composed(_file_of(name))
        if "." not in file:
            return ""
        same = [other for other in self.documents if composed(_file_of(other)) == file]
        if len(same) != 1:
            return ""
        return same[0]

    def place(self, item: RetrievedItem) -> RetrievedItem:
        """Return a result with its document and position, if its text is in a document.

        Results of other frameworks may have other document ids.
        """
        if not item.text or (item.start is not None and item.document_id in self.documents):
            return item
        key = item.document_id, item.text
        if key not in self._places:
            self._places[key] = self.find(item.text, item.document_id)
        if (place := self._places[key]) is not None:
            return replace(item, document_id=place[0], start=place[1], end=place[2])
        return replace(item, document_id=self.resolve_id(item.document_id) or item.document_id)

    def find(self, text: str, document: str = "", near: int = 0) -> Place | None:
        """Return the nearest position of a text in a document, else a position in any document.

        White space is ignored. Documents with the same file name come first.
        """
        if not text.strip():
            return None
        own = self.resolve_id(document)
        file = _file_of(document)
        names = [own] if own else []
        if not document or count_tokens(text) >= MIN_TOKENS:
            names += sorted(self.documents, key=lambda name: _file_of(name) != file)
        for name in names:
            content = self.documents[name].text
            if text in content:
                pattern = re.escape(text)
            elif " ".join(text.split()) in self._squeezed[name]:
                pattern = r"\s+".join([re.escape(word) for word in text.split()])
            else:
                continue
            matches = [match.span(1) for match in re.finditer(f"(?=({pattern}))", content)]
            return name, *min(matches, key=lambda span: abs(span[0] - near))
        return None

    @cached_property
    def _squeezed(self) -> dict[str, str]:
        return {name: " ".join(document.text.split()) for name, document in self.documents.items()}

    def similar(self, text: str, document: str = "") -> Place | None:
        """Return the most similar text with equal numbers, in the documents of similar paragraphs.

        Texts below ``MIN_TOKENS`` are too short for that.
        """
        if count_tokens(text) < MIN_TOKENS:
            return None
        paragraphs = self._paragraphs.retrieve(text)
        names = [self.resolve_id(document), *(r.node.document_id for r in paragraphs)]
        best: Place | None = None
        best_similarity = MIN_SIMILARITY
        for name in dict.fromkeys(names):
            if not name:
                continue
            content = self.documents[name].text
            similarity, start, end = similar_part(text, content)
            same_numbers = _NUMBER.findall(text) == _NUMBER.findall(content[start:end])
            if similarity >= best_similarity and same_numbers:
                best = (name, start, end)
                best_similarity = similarity
        return best

    def nearest_gold(self, gold: Gold) -> str:
        """Return the paragraph or document id that is most similar to missing gold."""
        if isinstance(gold, GoldPassage):
            return next((r.node.text for r in self._paragraphs.retrieve(gold.text)), "")
        return next(iter(difflib.get_close_matches(gold.document_id, self.documents, 1)), "")

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
    start = max(0, blocks[0].b - blocks[0].a)
    end = min(len(region), blocks[-1].b + len(text) - blocks[-1].a)
    distance = Levenshtein.distance(text, region[start:end])
    return 1 - distance / len(text), first + start, first + end


def locate_gold(dataset: Dataset, texts: DocumentTexts, *, as_spans: bool = False) -> LocatedGold:
    """Find the gold of questions in documents: moved, renamed or slightly edited.

    Args:
        dataset: The questions.
        texts: The documents.
        as_spans: Convert passages to spans, so that each result that overlaps one is relevant.

    Returns:
        The questions with the current gold, the moved gold and the missing gold.

    Example:
        >>> from nodekin.nodegraph import Document
        >>> from nodekin.retrievers.evaluation import Question
        >>> span = GoldSpan("tea.md", 0, 15, "Tea is a drink.")
        >>> data = Dataset([Question("1", "What is tea?", (span,))])
        >>> texts = DocumentTexts([Document("Rivers run. Tea is a drink.", id="tea.md")])
        >>> print(locate_gold(data, texts).moved[0])
        1: 'Tea is a drink.' at tea.md:0-15 is now 'Tea is a drink.' at tea.md:12-27
    """
    changes: list[GoldChange] = []
    questions = []
    located: dict[Gold, Gold | None] = {}
    for question in dataset.questions:
        golds: list[Gold] = []
        for gold in question.gold:
            if gold not in located:
                located[gold] = _locate(gold, texts, as_spans)
            now = located[gold]
            if now is None:
                changes.append(GoldChange(question.id, gold, None, texts.nearest_gold(gold)))
                continue
            golds.append(now)
            if _has_moved(gold, now):
                changes.append(GoldChange(question.id, gold, now))
        questions.append(replace(question, gold=tuple(dict.fromkeys(golds))))
    return LocatedGold(
        Dataset(questions, dataset.documents, dataset.name),
        [change for change in changes if change.now],
        [change for change in changes if not change.now],
    )


def _has_moved(gold: Gold, now: Gold) -> bool:
    """Return whether gold has another place or text. A passage as a span has other words only."""
    if isinstance(gold, GoldPassage) and isinstance(now, GoldSpan):
        return gold.text.split() != now.text.split()
    return gold != now


def _locate(gold: Gold, texts: DocumentTexts, as_spans: bool) -> Gold | None:
    """Return the gold of the current documents. None means missing."""
    if isinstance(gold, GoldDocument):
        return _with_current_id(gold, texts)
    if isinstance(gold, GoldSpan) and not gold.text:
        span = _with_current_id(gold, texts)
        if span is None or span.end > len(texts.documents[span.document_id].text):
            return None
        return span
    document = ""
    near = 0
    if isinstance(gold, GoldSpan):
        document = gold.document_id
        near = gold.start
    place = texts.find(gold.text, document, near) or texts.similar(gold.text, document)
    if place is None:
        return None
    name, start, end = place
    text = texts.documents[name].text[start:end]
    if isinstance(gold, GoldSpan) or as_spans:
        return GoldSpan(name, start, end, text, gold.grade)
    if text.split() == gold.text.split():
        return gold
    return replace(gold, text=text)


def _with_current_id(gold: GoldWithIdT, texts: DocumentTexts) -> GoldWithIdT | None:
    """Return gold with the id of the current document. None means that there is none."""
    name = texts.resolve_id(gold.document_id)
    if not name:
        return None
    return replace(gold, document_id=name)


def _shown(gold: Gold) -> str:
    if isinstance(gold, GoldPassage):
        return f"{gold.text!r:.80}"
    if isinstance(gold, GoldSpan):
        return f"{gold.text!r:.60} at {gold.document_id}:{gold.start}-{gold.end}"
    return repr(gold.document_id)


def _file_of(name: str) -> str:
    return re.split(r"[/\\]", name)[-1]
