"""Retrievers of others, by their names on the command line, beside ours."""

import json
import shutil
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[3]

MODULE = '''
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

TEXTS = {
    "docs/tea.md": "Green tea is steamed.",
    "docs/river.txt": "It runs to the sea, past Wuhan.",
}


def search(question):
    """A function from a question to texts."""
    return [text for text in TEXTS.values() if set(text.split()) & set(question[:-1].split())]


def numbered(query, top_k=1):
    return [{"text": t, "document_id": i, "score": 1.0} for i, t in TEXTS.items()][:top_k]


async def waits(query):
    return search(query)


class Called:
    """An object from a question to texts."""

    def __call__(self, question):
        return search(question)


called = Called()


class Chain(BaseRetriever):
    documents: list = []

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(d.text, metadata={"source": d.id}) for d in self.documents]


def chain(documents):
    """A function that makes a retriever of the documents that nodekin has read."""
    return Chain(documents=documents)


def fails(question):
    raise ConnectionError("the server is gone")


def broken():
    raise RuntimeError("no key is set")


number = 3
'''


@pytest.fixture
def measured(nodekin, here, monkeypatch):
    """Run the command beside a module with retrievers."""
    pytest.importorskip("langchain_core", reason="one of the retrievers is LangChain's")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine_for_tests", raising=False)
    (here / "mine_for_tests.py").write_text(MODULE, encoding="utf-8")
    passages = [["Green tea is steamed."], ["It runs to the sea, past Wuhan."]]
    texts = ["Which tea is steamed?", "Which runs past Wuhan?"]
    rows = [
        {"id": str(n), "question": text, "passages": gold}
        for n, (text, gold) in enumerate(zip(texts, passages, strict=True))
    ]
    lines = "\n".join(map(json.dumps, rows))
    (here / "q.jsonl").write_text(lines, encoding="utf-8")

    def run(*names, docs=("--docs", "docs")):
        sources = [name if name == "default" else f"mine_for_tests:{name}" for name in names]
        options = ("--data", "q.jsonl", *docs, "-m", "recall@2", "--match", "contains", "-q")
        return nodekin("eval", *sources, *options)

    return run


def test_retrievers_of_others_are_measured_beside_the_default(measured):
    ran = measured("search", "numbered", "waits", "chain", "called", "Called", "default")
    assert ran.status == 0, ran.err
    rows = [line.split() for line in ran.out.splitlines()[1:8]]
    assert [(row[0], row[1]) for row in rows] == [
        *(("search", "1.0000"), ("numbered", "1.0000"), ("waits", "1.0000")),
        *(("chain", "1.0000"), ("called", "1.0000"), ("Called", "1.0000"), ("default", "1.0000")),
    ]


def test_one_that_raises_fails_its_questions(measured):
    ran = measured("fails")
    assert ran.status == 1  # it has no figure
    assert "fails failed on 2 of 2 questions; question '0': ConnectionError: the server" in ran.out


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["serch"], "mine_for_tests has no 'serch'; there is 'search'"),
        (["number"], "mine_for_tests:number must be an object with retrieve()"),
        (["broken"], "mine_for_tests:broken: RuntimeError: no key is set"),
        (["search", "search"], "retrievers must be different, got mine_for_tests:search"),
    ],
)
def test_what_is_no_retriever_is_one_line(measured, names, error):
    ran = measured(*names)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert error in ran.err


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("search", "'search' must be MODULE:NAME, such as my_module:make_retriever"),
        ("no_such_module:search", "can't import 'no_such_module': ModuleNotFoundError"),
    ],
)
def test_name_that_is_not_an_object_raises(nodekin, measured, name, error):
    ran = nodekin("eval", name, "--data", "q.jsonl", "-q")
    assert (ran.status, error in ran.err) == (2, True), ran.err


def test_function_with_documents_and_none_to_give_raises(measured):
    ran = measured("chain", docs=())
    assert (ran.status, "there are no documents: name a folder with --docs" in ran.err) == (2, True)


@pytest.mark.slow
def test_the_examples_of_other_frameworks_are_measured(nodekin, here, monkeypatch):
    pytest.importorskip("langchain_community")
    pytest.importorskip("llama_index.core")
    shutil.copytree(REPO / "examples" / "evaluation", here / "evaluation")
    shutil.copytree(REPO / "examples" / "data", here / "data")
    monkeypatch.chdir(here / "evaluation")
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = {
        "langchain_faiss:faiss": 0.9250,
        "langchain_ensemble:ensemble": 1.0,
        "llama_index_vectors:vector_index": 0.8750,
        "llama_index_auto_merging:auto_merging": 0.7,
    }
    data = ("--docs", "../data/zh", "--data", "../data/zh_questions.jsonl")
    ran = nodekin("eval", *names, "default", *data, "--field", "answers=answer", "-q", "--json")
    assert ran.status == 0, ran.err
    figures = {name: f["answer_in_context@5"]["value"] for name, f in ran.json["figures"].items()}
    assert figures == {**{n.partition(":")[2]: v for n, v in names.items()}, "default": 1.0}
