"""Locate relevant passages in the current documents after they were moved, renamed or edited."""

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
"""The minimum length of a text that is searched in other documents or by similarity, in tokens."""

MIN_SIMILARITY = 0.7
"""The minimum similarity of an edited text, which is 1 - edit distance / length."""

_NUMBER = re.compile(r"\d+|[〇零一二两兩三四五六七八九十百千万萬亿億]+")

GoldWithIdT = TypeVar("GoldWithIdT", GoldDocument, GoldSpan)

Place = tuple[str, int, int]
"""The location of a text: document id, start and end."""


@dataclass(frozen=True, slots=True)
class GoldChange:
    """A relevant item of a question that is missing, or that has a new location or text.

    Attributes:
        question_id: The id of the question.
        gold: The relevant item as given in the data set.
        now: The relevant item in the current documents, or None if no document contains it.
        nearest: The most similar paragraph or document id if the item is missing. It may be empty.
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
    """Questions whose relevant items refer to the current documents.

    Attributes:
        dataset: The questions.
        moved: The relevant items that were found at a different location.
        missing: The relevant items that no document contains. They are removed from the questions.
    """

    dataset: Dataset
    moved: Sequence[GoldChange] = ()
    missing: Sequence[GoldChange] = ()


class DocumentTexts:
    """The texts of the current documents, in which ``locate_gold`` searches for relevant passages.

    Args:
        documents: A graph, or documents.
        document_key: The metadata field that contains the id of a document. See ``Matching``. If
            None, the document's own id is used.

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
        """Return the id of a document, given its id or its file name.

        If the file name is not unique, or if no document matches, the result is empty.
        """
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
        """Set the document and the position of a result, if a document contains its text.

        This allows results of other frameworks to be compared, which may use different document
        ids.
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
        """Return the location of a text in a document, or else in any other document.

        If the text occurs several times, the location nearest to ``near`` is returned. Differences
        in white space are ignored. Documents with the same file name are searched first. If no
        document contains the text, None is returned.
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
        """Return the location of the most similar text that contains the same numbers.

        Only documents with similar paragraphs are searched. For texts with fewer than
        ``MIN_TOKENS`` tokens, None is returned.
        """
        if count_tokens(text) < MIN_TOKENS:
            return None
        paragraphs = self._paragraphs.retrieve(text)
        names = [self.resolve_id(document), *(r.node.document_id for r in paragraphs)]
        best: Place | None = None
        best_similarity = 0.0
        for name in dict.fromkeys(names):
            if not name:
                continue
            content = self.documents[name].text
            similarity, start, end = similar_part(text, content)
            same_numbers = _NUMBER.findall(text) == _NUMBER.findall(content[start:end])
            is_better = similarity >= MIN_SIMILARITY and similarity > best_similarity
            if is_better and same_numbers:
                best = (name, start, end)
                best_similarity = similarity
        return best

    def nearest_gold(self, gold: Gold) -> str:
        """Return the paragraph or document id that is most similar to a missing item."""
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
    """Find the part of a longer text that is most similar to a given text.

    The result is the similarity, the start and the end of the part. The similarity is 1 - edit
    distance / length of the given text.

    Example:
        >>> similar_part("black tea", "We drink a blak tea.")
        (0.8888888888888888, 11, 19)
    """
    found = partial_ratio_alignment(text, content)
    if found is None:  # this can only happen with a score cutoff
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
    """Find relevant items in documents, even if they were moved, renamed or edited.

    Args:
        dataset: The questions.
        texts: The documents.
        as_spans: Whether passages are converted to spans. Every result that overlaps the span is
            then relevant.

    Returns:
        The questions with their current relevant items, the moved items and the missing items.

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
    """Return whether the location or the text of a relevant item has changed.

    If a passage was converted to a span, only a change of its words is considered.
    """
    if isinstance(gold, GoldPassage) and isinstance(now, GoldSpan):
        return gold.text.split() != now.text.split()
    return gold != now


def _locate(gold: Gold, texts: DocumentTexts, as_spans: bool) -> Gold | None:
    """Find a relevant item in the current documents.

    If no document contains it, None is returned.
    """
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
    """Replace the document id of a relevant item by the id of the current document.

    If the document does not exist, None is returned.
    """
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
