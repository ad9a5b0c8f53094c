"""The public sets that are there, as data sets of ``nodekin.retrievers.evaluation``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import cmrc as read_cmrc

from nodekin.nodegraph import Document
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Question,
    load_squad,
)


def cmrc(data: Path) -> Dataset:
    """Read CMRC 2018's 256 paragraphs, each a document, and 1002 questions; gold is a paragraph.

    Ends with a word about where to get them, if they are not there.
    """
    paragraphs, _ = read_cmrc(data)
    rows = (data / "cmrc2018" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [
        Question(str(at), row["question"], (GoldPassage(row["context"]),), tuple(row["answers"]))
        for at, row in enumerate(map(json.loads, rows))
    ]
    documents = [Document(text, id=str(at)) for at, text in enumerate(paragraphs)]
    return Dataset(questions, documents, "CMRC 2018")


def cmrc_files(data: Path) -> list[Document]:
    """Return the files of CMRC 2018's paragraphs, some ten of them in each."""
    paths = sorted((data / "cmrc2018").glob("kb/part_*.txt"), key=lambda path: int(path.stem[5:]))
    return [Document(path.read_text(encoding="utf-8"), id=path.name) for path in paths]


def cmrc_answers(data: Path) -> Dataset:
    """Read the same questions over the files; gold is the place of the answer in its file."""
    files = cmrc_files(data)
    begins: dict[str, tuple[str, int]] = {}
    for file in files:
        at = 0
        for line in file.text.split("\n"):
            begins.setdefault(line.strip(), (file.id, at + len(line) - len(line.lstrip())))
            at += len(line) + 1
    rows = (data / "cmrc2018" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = []
    for number, row in enumerate(map(json.loads, rows)):
        paragraph, answer = row["context"].strip(), row["answers"][0]
        name, at = begins[paragraph]
        places = [match.start() for match in re.finditer(re.escape(answer), paragraph)]
        start = at + min(places, key=lambda place, row=row: abs(place - row["answer_starts"][0]))
        gold = GoldSpan(name, start, start + len(answer), answer)
        questions.append(Question(str(number), row["question"], (gold,), tuple(row["answers"])))
    return Dataset(questions, files, "CMRC 2018, places of answers")


def cmrc_dev(data: Path) -> Dataset:
    """Read CMRC's development set: 848 paragraphs, 3219 questions.

    Raises:
        FileNotFoundError: If it is not there.
    """
    dataset = load_squad(data / "cmrc2018" / "dev.json")
    return _numbered(Dataset(dataset.questions, dataset.documents, "CMRC 2018, development"))


def xquad(data: Path) -> Iterator[Dataset]:
    """Read XQuAD in each language that is there: 240 paragraphs and 1190 questions."""
    for path in sorted((data / "xquad").glob("xquad.*.json")):
        dataset = load_squad(path)
        name = path.suffixes[-2][1:]
        yield _numbered(Dataset(dataset.questions, dataset.documents, name))


def hotpotqa(data: Path) -> Dataset:
    """Read 100 questions of HotpotQA over 994 passages; the ids of documents are titles.

    Raises:
        FileNotFoundError: If it is not there.
    """
    rows, corpus = _read(data, "hotpotqa")
    documents = [
        Document("".join(sentences), {"title": title}, id=title)
        for title, sentences in corpus.items()
    ]
    gold = [sorted({title for title, _ in row["supporting_facts"]}) for row in rows]
    return _of_documents("HotpotQA", [row["question"] for row in rows], gold, documents)


def musique(data: Path) -> Dataset:
    """Read 100 questions of MuSiQue over 1890 passages; the ids are places in the corpus.

    Raises:
        FileNotFoundError: If it is not there.
    """
    rows, corpus = _read(data, "musique")
    ids = {(row["title"], row["text"]): str(at) for at, row in enumerate(corpus)}
    documents = [
        Document(row["text"], {"title": row["title"]}, id=str(at)) for at, row in enumerate(corpus)
    ]
    gold = [
        sorted(
            {
                ids[one["title"], one["paragraph_text"]]
                for one in row["paragraphs"]
                if one["is_supporting"]
            }
        )
        for row in rows
    ]
    return _of_documents("MuSiQue", [row["question"] for row in rows], gold, documents)


def multi_hop(data: Path) -> Iterator[Dataset]:
    """Read the sets whose questions need several passages; one that is missing is named."""
    for read in (hotpotqa, musique):
        try:
            yield read(data)
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")


def size(dataset: Dataset) -> str:
    """Return a data set's name and how large it is, in words."""
    return f"{dataset.name}: {len(dataset.documents)} passages, {len(dataset.questions)} questions"


def every(dataset: Dataset, few: int) -> Dataset:
    """Return a data set with about so many of its questions, evenly chosen."""
    step = max(1, len(dataset) // few)
    return Dataset(dataset.questions[::step], dataset.documents, dataset.name)


def _numbered(dataset: Dataset) -> Dataset:
    """Give documents their places as ids, and no titles, which are those of whole articles."""
    documents = [Document(one.text, id=str(at)) for at, one in enumerate(dataset.documents)]
    return Dataset(dataset.questions, documents, dataset.name)


def _of_documents(
    name: str, texts: list[str], gold: list[list[str]], documents: list[Document]
) -> Dataset:
    questions = [
        Question(str(at), text, tuple(map(GoldDocument, ids)))
        for at, (text, ids) in enumerate(zip(texts, gold, strict=True))
    ]
    return Dataset(questions, documents, name)


def _read(data: Path, name: str) -> list[Any]:
    files = (f"{name}_train.json", f"{name}_train_corpus.json")
    return [json.loads((data / name / file).read_text(encoding="utf-8")) for file in files]
