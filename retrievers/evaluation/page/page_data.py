"""The questions of an evaluation, packed for a page: each text once, and the words beside it."""

from __future__ import annotations

import base64
import functools
import gzip
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import combinations
from typing import Any, Literal, Protocol, TypeAlias, get_args

from ...validation import choice
from ..dataset import Dataset, Gold, GoldDocument, GoldPart, GoldPassage, MissingGold, Question
from ..intervals import Difference, Figure
from ..matching import Matching, NotJudgedError, RetrievalCase, RetrievedItem
from ..metrics import Judgement, Metric
from ..records import Record


class EvaluationLike(Protocol):
    """Describe an evaluation: records, what metrics say of them, and what they took."""

    @property
    def dataset(self) -> Dataset:
        """The questions."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics by name."""

    @property
    def records(self) -> Mapping[str, Mapping[str, Record]]:
        """What was returned, by set-up and question id."""

    @property
    def matching(self) -> Matching:
        """When a result is gold."""

    @property
    def missing_gold(self) -> Sequence[MissingGold]:
        """Gold that is in no document."""

    @property
    def judgements(self) -> Mapping[str, Mapping[str, Mapping[str, Judgement]]]:
        """Judgements by metric, set-up and question id."""

    @property
    def figures(self) -> Mapping[str, Mapping[str, Figure]]:
        """Figures by set-up and metric."""

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return by how much a second set-up differs from a first."""

    def costs(self, setup: str) -> Mapping[str, float]:
        """Return what a set-up took."""

    def notes(self) -> list[str]:
        """Return what a reader has to know."""


_NUMERAL = re.compile(r"(?<![\d.])(-?\d+\.\d{4})(?!\d)")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_NOT_CHINESE = re.compile("[^\x00-\x7f\u4e00-\u9fa5、。《》「」“”‘’…！（），：；？～]")
_SIGNS = re.compile("[\x01-\x03]")
_QUESTION, _NUMERAL_SIGN, _SCORE = "\x01", "\x02", "\x03"  # where an explanation has what
MAX_PAIRS = 10
"""Where set-ups make more pairs than that, only those with the first have intervals."""


Template: TypeAlias = tuple[str, Sequence[str]]
"""A line of an explanation with marks for question, score and numbers, and these numbers."""

Limits: TypeAlias = tuple[int, int | None]
"""How many lines of an explanation, and how many characters of a text, a page has at most."""

LIMITS: tuple[Limits, ...] = (
    *((40, None), (40, 4000), (20, 2000), (10, 1000), (8, 650), (6, 550), (6, 450), (5, 380)),
    *((4, 380), (4, 320), (3, 320), (3, 260), (3, 200), (2, 200), (2, 150), (2, 100), (1, 60)),
)
"""From all there is (of texts) to what is least."""


@dataclass(frozen=True, slots=True)
class PackedQuestions:
    """Hold the questions of an evaluation as a page has them.

    Attributes:
        text: Base 85 of gzip of JSON.
        size: How many bytes the gzip has.
        encoding: Of the JSON.
        limits: How it was cut.
    """

    text: str
    size: int
    encoding: str
    limits: Limits


def pack(
    evaluation: EvaluationLike, differences: Iterable[Difference], size: int
) -> PackedQuestions:
    """Return the questions with their results, cut to a size.

    Args:
        evaluation: The evaluation.
        differences: Those between pairs of set-ups that the page has.
        size: How many bytes they should have at most. Where even the least is larger, it is that.
    """
    differences = list(differences)
    templates = {
        (setup, identity): [_templates(item, record.question) for item in record.items]
        for setup, records in evaluation.records.items()
        for identity, record in records.items()
    }
    layouts: dict[int, tuple[PageData, dict[str, Any]]] = {}

    @functools.cache
    def packed(limits: Limits) -> PackedQuestions:
        lines, characters = limits
        if lines not in layouts:
            data = PageData(evaluation, templates, lines)
            layouts[lines] = data, data.as_dict(differences)
        data, values = layouts[lines]
        return _packed({**values, "rows": data.cut(characters)}, limits)

    if len(packed(LIMITS[0]).text) <= size:
        return packed(LIMITS[0])
    position = bisect_left(LIMITS, True, lo=1, key=lambda limits: len(packed(limits).text) <= size)
    return packed(LIMITS[min(position, len(LIMITS) - 1)])


def _packed(data: Mapping[str, Any], limits: Limits) -> PackedQuestions:
    """Return data as text: in GBK where most of it is Chinese, which compresses best.

    Characters of which browsers might have another idea are written as JSON escapes, and so are
    halves of characters. Base 85 (RFC 1924) has a comma instead of what starts a tag.
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    foreign = len(_NOT_CHINESE.findall(text))
    if len(_NOT_ASCII.findall(text)) > 2 * foreign:
        encoding = "gbk"
        text = _NOT_CHINESE.sub(lambda letter: json.dumps(letter[0])[1:-1], text)
    else:
        encoding = "utf-8"
        text = re.sub("[\ud800-\udfff]", lambda half: json.dumps(half[0])[1:-1], text)
    zipped = gzip.compress(text.encode(encoding), 9, mtime=0)
    encoded = base64.b85encode(zipped, pad=True).decode("ascii").replace("<", ",")
    return PackedQuestions(encoded, len(zipped), encoding, limits)


class PageData:
    """Lay out an evaluation for the page's script: arrays, with places for texts.

    Beside a node's text stand the lines of explanations of it, where a compressor sees what they
    share. Of two nodes with the same text the second has the place of the first.

    Args:
        evaluation: The evaluation.
        templates: The explanations of the results, by set-up and question id.
        lines: How many lines of the explanation of a result there are at most.
    """

    def __init__(
        self,
        evaluation: EvaluationLike,
        templates: Mapping[tuple[str, str], Sequence[Sequence[Template]]],
        lines: int,
    ) -> None:
        self.evaluation = evaluation
        self.templates = templates
        self.lines = lines
        self._texts: dict[str, int] = {}
        self._nodes: dict[tuple[object, ...], int] = {}
        self._rows: list[list[Any]] = []  # a text or the place of one; of a node more
        self._lines: dict[int, dict[str, int]] = {}
        self._unabridged: set[int] = set()  # the texts of questions
        self._documents = {d.id: d.text for d in evaluation.dataset.documents}
        self._missing = {(m.question_id, m.gold): m.nearest for m in evaluation.missing_gold}

    def as_dict(self, differences: Iterable[Difference]) -> dict[str, Any]:
        """Return it as plain values, without the rows of texts."""
        evaluation = self.evaluation
        return {
            "setups": list(evaluation.records),
            "metrics": [[m.name, m.k, m.higher_is_better] for m in evaluation.metrics.values()],
            "differences": [self._difference(entry) for entry in differences],
            "questions": [self._question(question) for question in evaluation.dataset.questions],
        }

    def cut(self, characters: int | None) -> list[list[Any]]:
        """Return the rows, their texts cut, each with how many characters were cut."""
        rows = []
        for position, (text, *node) in enumerate(self._rows):
            stop = len(text) if isinstance(text, str) else 0
            if characters is not None and stop > characters + 20:
                stop = max(characters, 300) if position in self._unabridged else characters
            more = len(text) - stop if isinstance(text, str) else 0
            rows.append([text[:stop] if more > 0 else text, max(more, 0), *node])
        return rows

    def _text(self, text: str) -> int:
        """Return the place of a text, which is there once."""
        if text not in self._texts:
            self._texts[text] = len(self._rows)
            self._rows.append([text])
        return self._texts[text]

    def _difference(self, entry: Difference) -> list[Any]:
        """Return metric, first, second, numbers as they are written, questions and the better."""
        metrics, setups = list(self.evaluation.metrics), list(self.evaluation.records)
        positions = [
            metrics.index(entry.metric),
            setups.index(entry.first),
            setups.index(entry.second),
        ]
        numbers = None if entry.value is None else entry.numbers()
        better = None if entry.better is None else setups.index(entry.better)
        return [*positions, numbers, entry.questions, better]

    def _question(self, question: Question) -> list[Any]:
        records = [self.evaluation.records[setup][question.id] for setup in self.evaluation.records]
        text = self._text(question.text)
        self._unabridged.add(text)
        return [
            question.id,
            text,
            list(map(self._text, question.answers)),
            [self._gold(question.id, gold) for gold in question.gold],
            [self._record(question, record) for record in records],
        ]

    def _gold(self, question_id: str, gold: Gold) -> list[Any]:
        """Return its text, document, place in it, grade, and what is nearest where it's missing."""
        nearest = self._missing.get((question_id, gold))
        ends = [None if gold.grade == 1 else gold.grade, self._optional(nearest)]
        if isinstance(gold, GoldPassage):
            return [self._text(gold.text), None, None, None, *ends]
        document = self._text(gold.document_id)
        if isinstance(gold, GoldPart):
            part = gold.heading or f"{gold.document_id}, {gold.page}"
            return [self._text(part), document, None, None, *ends]
        if isinstance(gold, GoldDocument):
            text = self._documents.get(gold.document_id)
            return [self._optional(text), document, None, None, *ends]
        return [self._optional(gold.text or None), document, gold.start, gold.end, *ends]

    def _record(self, question: Question, record: Record) -> list[Any]:
        case = RetrievalCase(question, record.items, self.evaluation.matching)
        matched: Sequence[frozenset[int]] = [frozenset()] * len(record.items)
        unknown = None
        try:
            matched = case.matched if question.gold else matched
        except NotJudgedError as error:
            unknown = str(error)
        judgements = self.evaluation.judgements
        return [
            [
                self._item(item, gold, templates)
                for item, gold, templates in zip(
                    record.items, matched, self.templates[record.setup, question.id], strict=True
                )
            ],
            [self._judgement(judgements[m][record.setup][question.id]) for m in judgements],
            round(1000 * record.seconds, 2),
            record.model_calls,
            self._optional(record.error or None),
            self._optional(record.answer),
            self._optional(unknown),
        ]

    def _item(
        self, item: RetrievedItem, gold: frozenset[int], templates: Sequence[Template]
    ) -> list[Any]:
        """Return its node, score and gold, and the lines of its explanation."""
        node = self._node(item)
        return [node, round(item.score, 4), sorted(gold) or 0, *self._explanation(node, templates)]

    def _node(self, item: RetrievedItem) -> int:
        """Return the row of a node: its text, document and place in it, then lines about it."""
        document = item.document_id or item.id
        key = (item.text, document, item.start, item.end)
        if key not in self._nodes:
            existing = self._texts.get(item.text)
            position = self._text(item.text) if existing is None else len(self._rows)
            if existing is not None:
                self._rows.append([existing])
            self._nodes[key] = position
            self._lines[position] = {}
            self._rows[position] += [self._text(document), item.start, item.end]
        return self._nodes[key]

    def _explanation(self, node: int, templates: Sequence[Template]) -> list[Any]:
        """Return the places of its lines beside the node, behind each the numbers in it."""
        positions = self._lines[node]
        result: list[Any] = []
        for template, numbers in templates[: self.lines]:
            if template not in positions:
                positions[template] = len(positions)
                self._rows[node].append(template)
            result += [positions[template], *numbers]
        more = len(templates) - self.lines
        return [*result, -more] if more > 0 else result

    def _judgement(self, judgement: Judgement) -> list[Any]:
        words = self._text(judgement.evidence if judgement.judged else judgement.reason)
        weight = [] if judgement.denominator == 1 else [judgement.denominator]
        return [judgement.numerator, words, *weight]

    def _optional(self, text: str | None) -> int | None:
        return None if text is None else self._text(text)


def pairs(evaluation: EvaluationLike) -> Iterator[Difference]:
    """Yield the differences between set-ups: of all pairs, where these are few."""
    setups = list(evaluation.records)
    chosen = list(combinations(setups, 2))
    if len(chosen) > MAX_PAIRS:
        chosen = [(setups[0], other) for other in setups[1:]]
    for first, second in chosen:
        for metric in evaluation.metrics:
            yield evaluation.difference(metric, first, second)


def _templates(item: RetrievedItem, question: str) -> list[Template]:
    """Return the lines of an explanation. Of the first, on the result itself, without its text."""
    quoted, score = f'"{_quoted_question(question)}"', f"{item.score:.4f}"
    first, *lines = _SIGNS.sub("\ufffd", item.explanation).split("\n")
    templates: list[Template] = []
    for line in [first.partition('  "')[0], *lines] if first else []:
        text = line.replace(quoted, _QUESTION)
        template = _NUMERAL.sub(lambda n: _SCORE if n[0] == score else _NUMERAL_SIGN, text)
        templates.append((template, [n for n in _NUMERAL.findall(text) if n != score]))
    return templates


def _quoted_question(text: str) -> str:
    """Return a question as explanations quote it: in a line, and cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


PageLanguage = Literal["en", "zh"]
"""A language that the page and the plots speak."""

Attributes: TypeAlias = Mapping[str, str | float]
"""Of an element: texts, and numbers, which are written with a digit behind the point."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Wording:
    """Write the page's own words in one language, as markup that can change to another.

    Args:
        language: ``"en"`` or ``"zh"``.

    Raises:
        ValueError: If the page does not speak the language.
    """

    language: PageLanguage = "en"

    def __post_init__(self) -> None:
        choice(self.language, "language", get_args(PageLanguage))

    def text(self, key: str, **values: str) -> str:
        """Return the words of a key, with values in their places."""
        return words()[self.language][key].format(**values)

    def attributes(self, key: str, **values: str) -> dict[str, str]:
        """Return the attributes by which the page's script rewrites the words."""
        data = {"data-word": key}
        if values:
            data["data-values"] = json.dumps(values, ensure_ascii=False)
        return data

    def span(self, key: str, **values: str) -> str:
        """Return the words as an HTML element."""
        return element("span", markup(self.text(key, **values)), self.attributes(key, **values))


@cache
def words() -> Mapping[str, Mapping[str, str]]:
    """Return the words by language and key."""
    loaded: dict[str, dict[str, str]] = json.loads(asset("words.json"))
    return loaded


@cache
def phrases() -> Mapping[str, Sequence[Sequence[str]]]:
    """Return by language what is made of what evaluations say: patterns, and what to write.

    What ``$1`` stands for is translated in the same way.
    """
    loaded: dict[str, list[list[str]]] = json.loads(asset("phrases.json"))
    return loaded


def translated(text: str, language: str) -> str:
    """Return a note, a reason or evidence in a language, unchanged if there is no pattern.

    Example:
        >>> translated("the set-up failed: OSError", "zh")
        '方案失败：OSError'
    """
    for pattern, wording in phrases().get(language, ()):
        if match := re.fullmatch(pattern, text, re.DOTALL):
            parts = ["", *(translated(part, language) for part in match.groups(""))]
            texts = re.split(r"\$(\d)", wording)  # texts, and between them numbers of parts
            return "".join(parts[int(t)] if n % 2 else t for n, t in enumerate(texts))
    return text


def asset(name: str) -> str:
    """Return a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def stylesheet() -> str:
    """Return the page's style, for other pages that look like it."""
    return asset("page.css")


def markup(text: str) -> str:
    """Return a text as markup: escaped, without what HTML and XML can't hold."""
    return escape(_UNPRINTABLE.sub("\ufffd", text))


def element(name: str, content: str = "", attributes: Attributes | None = None) -> str:
    """Return an element of HTML or SVG, its attributes escaped.

    Args:
        name: Of the element.
        content: Markup.
        attributes: Its attributes.
    """
    pairs = (
        f' {key}="{markup(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")}"'
        for key, value in (attributes or {}).items()
    )
    return f"<{name}{''.join(pairs)}>{content}</{name}>"
