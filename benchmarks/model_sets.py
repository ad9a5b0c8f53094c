"""Data sets with questions for ``quality.py --models``.

Ordinary questions share words with their answers. They come from XQuAD, CMRC 2018, JSQuAD, Chroma,
HotpotQA and MuSiQue. With XQuAD, questions in one language are also asked about passages in another
language.

The data sets in ``other_words`` contain questions that use different words than their answers: a
help center (``faq``) and house rules (``house``), in English, German (``de``) and Chinese (``zh``).
They are searched alone and together with passages about other subjects. In data sets whose names
end with ``wrong``, words of the questions occur in wrong answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import harness
from passages import chroma as read_chroma

from nodekin.nodegraph import Document, NodeGraph, SentenceSplitter
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, load_squad

Read = Callable[[Path, int], Dataset]

HERE = Path(__file__).resolve().parent
OTHER_WORDS = HERE / "other_words"

LANGUAGES = ("de", "ru", "ar", "vi")
E5, MINILM = "e5", "minilm"

_JAPANESE_PASSAGES = 400
_CHUNK_TOKENS = 200  # number of tokens that MiniLM reads
_OTHERS = (0, 300, 1_500)
_CHINESE_OTHERS = (0, 300, 1_104)  # CMRC 2018 has 1,104 paragraphs


class QuestionSet(NamedTuple):
    """A data set with questions for one embedding model.

    Attributes:
        name: The name of the data set.
        model: The name of the embedding model, ``"e5"`` or ``"minilm"``.
        read: A function that reads the data set. It takes the folder of the data and the maximum
            number of questions.
    """

    name: str
    model: str
    read: Read


def question_sets() -> list[QuestionSet]:
    """Return all available data sets."""
    sets = [QuestionSet(f"xquad.{name}", E5, partial(xquad, name, name)) for name in LANGUAGES]
    for asked, searched in permutations(LANGUAGES, 2):
        read = partial(xquad, asked, searched)
        sets.append(QuestionSet(f"{asked}-{searched}", E5, read))
    sets.append(QuestionSet("cmrc", E5, cmrc))
    sets.append(QuestionSet("jsquad", E5, jsquad))
    sets.append(QuestionSet("hotpotqa", MINILM, hotpotqa))
    sets.append(QuestionSet("musique", MINILM, musique))
    sets.append(QuestionSet("chroma", MINILM, chroma))
    sets.extend(sets_in_other_words())
    return sets


def sets_in_other_words() -> Iterator[QuestionSet]:
    """Yield the data sets whose questions use different words than their answers."""
    for topic in ("faq", "house"):
        for others in _OTHERS:
            yield _among(topic, others, "en", MINILM)
        yield QuestionSet(f"{topic}wrong", MINILM, partial(other_words, f"{topic}wrong", 0, "en"))
        for others in _OTHERS[:2]:
            yield _among(topic, others, "en", E5)
        for others in _CHINESE_OTHERS:
            yield _among(f"{topic}zh", others, "zh", E5)
        yield QuestionSet(f"{topic}zhwrong", E5, partial(other_words, f"{topic}zhwrong", 0, "zh"))
    yield _among("housede", 0, "de", E5)
    yield _among("housede", 240, "de", E5)
    yield QuestionSet("housedewrong", E5, partial(other_words, "housedewrong", 0, "de"))


def selected(patterns: Sequence[str]) -> list[QuestionSet]:
    """Return the data sets whose names match one of the patterns, such as ``faq*``.

    Raises:
        ValueError: If a pattern does not match any data set.
    """
    sets = question_sets()
    for pattern in patterns:
        if not any(fnmatch(each.name, pattern) for each in sets):
            names = ", ".join(each.name for each in sets)
            raise ValueError(f"sets must be some of {names}; got {pattern!r}")
    return [each for each in sets if any(fnmatch(each.name, pattern) for pattern in patterns)]


def evenly(items: Sequence[Any], count: int) -> list[Any]:
    """Select at most ``count`` items that are evenly distributed over the list."""
    if len(items) <= count:
        return [*items]
    return [items[at * len(items) // count] for at in range(count)]


# Ordinary questions


def xquad(asked: str, searched: str, data: Path, count: int) -> Dataset:
    """Read questions in one language about 240 passages in the same or a different language."""
    of_passages = load_squad(data / "xquad" / f"xquad.{searched}.json")
    of_questions = load_squad(data / "xquad" / f"xquad.{asked}.json")
    texts = {question.id: question.text for question in of_questions.questions}
    questions = [
        Question(question.id, texts[question.id], question.gold)
        for question in of_passages.questions
    ]
    dataset = Dataset(questions, of_passages.documents, f"{asked}-{searched}")
    return _by_document(dataset, count)


def cmrc(data: Path, count: int) -> Dataset:
    """Read questions about 256 Chinese paragraphs."""
    return _by_document(harness.cmrc(data), count)


def jsquad(data: Path, count: int) -> Dataset:
    """Read questions about 400 Japanese paragraphs. Not all of them contain an answer."""
    path = data / "languages" / "jsquad_valid.json"
    dataset = _by_document(load_squad(path), count)
    gold = {gold.document_id for question in dataset.questions for gold in question.gold}
    others = [document for document in dataset.documents if document.id not in gold]
    kept = gold | {other.id for other in evenly(others, max(0, _JAPANESE_PASSAGES - len(gold)))}
    documents = [document for document in dataset.documents if document.id in kept]
    return Dataset(dataset.questions, documents, "jsquad")


def hotpotqa(data: Path, count: int) -> Dataset:
    """Read questions that require information from two passages."""
    return _first(harness.hotpotqa(data), count)


def musique(data: Path, count: int) -> Dataset:
    """Read questions that require information from two to four passages."""
    return _first(harness.musique(data), count)


def chroma(data: Path, count: int) -> Dataset:
    """Read questions about five corpora, which are split into chunks of 200 tokens.

    The expected results are the chunks that contain the longest part of each relevant excerpt.
    """
    task = read_chroma(data)
    graph = NodeGraph(progress=False)
    graph.add(task.documents)
    graph.create_node_group("chunk", SentenceSplitter, chunk_size=_CHUNK_TOKENS, chunk_overlap=0)
    chunks = graph.nodes("chunk")
    documents = [Document(chunk.text, id=str(at)) for at, chunk in enumerate(chunks)]
    questions = []
    for number, (query, excerpts) in enumerate(evenly(task.questions, count)):
        gold = dict.fromkeys(_longest_part(excerpt, chunks) for excerpt in excerpts)
        questions.append(Question(str(number), query, tuple(map(GoldDocument, gold))))
    return Dataset(questions, documents, "chroma")


def _longest_part(excerpt: tuple[str, int, int], chunks: Sequence[Any]) -> str:
    """Return the index of the chunk that contains the longest part of an excerpt."""
    document, start, end = excerpt

    def length(at: int) -> int:
        chunk = chunks[at]
        if chunk.document_id != document:
            return 0
        return min(end, chunk.end) - max(start, chunk.start)

    return str(max(range(len(chunks)), key=length))


def _by_document(dataset: Dataset, count: int) -> Dataset:
    """Replace the expected texts by document ids, and select some of the questions."""
    documents = [
        Document(document.text, id=str(at)) for at, document in enumerate(dataset.documents)
    ]
    ids = {document.text.strip(): document.id for document in documents}
    questions = []
    for question in dataset.questions:
        (gold,) = question.gold
        document_id = ids.get(gold.text.strip())
        if document_id is not None:  # The passages for two questions are missing in CMRC.
            questions.append(Question(question.id, question.text, (GoldDocument(document_id),)))
    return Dataset(evenly(questions, count), documents, dataset.name)


def _first(dataset: Dataset, count: int) -> Dataset:
    return Dataset(evenly(dataset.questions, count), dataset.documents, dataset.name)


# Questions that use different words than their answers


def other_words(name: str, others: int, language: str, data: Path, count: int) -> Dataset:
    """Read a data set whose questions differ in wording from the answers, and add other passages.

    Args:
        name: The name of the file.
        others: The number of passages about other subjects to add.
        language: The language of the added passages.
        data: The folder of the data.
        count: The maximum number of questions.
    """
    content = json.loads((OTHER_WORDS / f"{name}.json").read_text(encoding="utf-8"))
    documents = [Document(text, id=str(at)) for at, text in enumerate(content["texts"])]
    if others:
        texts = evenly(_other_texts(language, data), others)
        documents += [Document(text, id=f"other {at}") for at, text in enumerate(texts)]
    questions = [
        Question(str(at), query, (GoldDocument(str(gold)),))
        for at, (gold, query) in enumerate(content["questions"])
    ]
    return Dataset(evenly(questions, count), documents, name)


def _among(name: str, others: int, language: str, model: str) -> QuestionSet:
    """Return a data set to which passages about other subjects are added.

    Its questions use different words than their answers.
    """
    full = f"{name}+{others}" if others else name
    if language == "en" and model == E5:
        full = f"{full}.e5"
    return QuestionSet(full, model, partial(other_words, name, others, language))


def _other_texts(language: str, data: Path) -> list[str]:
    """Return passages in a language that come from other data sets, without duplicates."""
    if language == "zh":
        datasets = [harness.cmrc(data), harness.cmrc_dev(data)]
    elif language == "de":
        datasets = [load_squad(data / "xquad" / "xquad.de.json")]
    else:
        datasets = [harness.hotpotqa(data), harness.musique(data)]
    texts = [document.text for dataset in datasets for document in dataset.documents]
    return [*dict.fromkeys(texts)]
