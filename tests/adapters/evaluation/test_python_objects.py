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
        options = [word for name in names for word in ("--retriever", f"mine_for_tests:{name}")]
        command = ("eval", "--data", "q.jsonl", *docs, "-m", "recall@2", "--match", "contains")
        return nodekin(*command, "-q", *options)

    return run


def test_retrievers_of_others_are_measured_beside_the_default(measured):
    ran = measured("search", "numbered", "waits", "chain", "called", "Called")
    assert ran.status == 0, ran.err
    rows = [line.split() for line in ran.out.splitlines()[1:8]]
    assert [(row[0], row[1]) for row in rows] == [
        *(("search", "1.0000"), ("numbered", "1.0000"), ("waits", "1.0000")),
        *(("chain", "1.0000"), ("called", "1.0000"), ("Called", "1.0000"), ("default", "1.0000")),
    ]


def test_one_that_raises_fails_its_questions(measured):
    ran = measured("fails")
    assert ran.status == 5
    assert "fails failed on 2 of 2 questions; question '0': ConnectionError: the server" in ran.out


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["serch"], "mine_for_tests has no 'serch'; there is 'search'"),
        (["number"], "--retriever mine_for_tests:number is an object with retrieve()"),
        (["broken"], "--retriever mine_for_tests:broken: RuntimeError: no key is set"),
        (["search", "search"], "two set-ups have one name among"),
    ],
)
def test_what_is_no_retriever_is_one_line(measured, names, error):
    ran = measured(*names)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert error in ran.err


def test_bad_names_and_settings_files_are_refused(nodekin, measured, here):
    command = ("eval", "--data", "q.jsonl", "--docs", "docs", "-q")
    for name, error in [
        ("search", "'search' is not of the form module:name"),
        ("no_such_module:search", "can't import 'no_such_module': ModuleNotFoundError"),
    ]:
        ran = nodekin(*command, "--retriever", name)
        assert (ran.status, error in ran.err) == (2, True), ran.err
    settings = '[eval]\nretriever = "mine_for_tests:search"\n'
    (here / "nodekin.toml").write_text(settings, encoding="utf-8")
    ran = nodekin(*command)
    assert (ran.status, "can't be in nodekin.toml" in ran.err) == (2, True), ran.err
    assert "mine_for_tests" not in sys.modules


def test_code_of_a_file_of_set_ups_is_run_where_that_was_typed(nodekin, measured, here):
    table = '[groups.a]\ntransform = "mine_for_tests:halves"\n[setups.a]\ntype = "Retriever"\n'
    (here / "setups.toml").write_text(table + 'group_name = "a"\n', encoding="utf-8")
    with (here / "mine_for_tests.py").open("a", encoding="utf-8") as module:
        module.write("\n\ndef halves(text):\n    return text.split('.')\n")
    command = ("eval", "setups.toml", "--data", "q.jsonl", "--docs", "docs", "-q")
    ran = nodekin(*command)
    assert (ran.status, "mine_for_tests" in sys.modules) == (2, False)
    assert "names the code 'mine_for_tests:halves', which would be run" in ran.err
    (here / "nodekin.toml").write_text("[eval]\ntrust-code = true\n", encoding="utf-8")
    ran = nodekin(*command)
    assert (ran.status, "can't be in nodekin.toml" in ran.err) == (2, True), ran.err
    ran = nodekin(*command, "--trust-code", "-m", "recall@5", "--match", "place")
    assert (ran.status, ran.out.splitlines()[1].split()[:2]) == (0, ["a", "1.0000"]), ran.err


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
    options = [word for name in names for word in ("--retriever", name)]
    data = ("--docs", "../data/zh", "--data", "../data/zh_questions.jsonl")
    ran = nodekin("eval", *data, "--field", "answers=answer", *options, "-q", "--json")
    assert ran.status == 0, ran.err
    figures = {name: f["answer_in_context@5"]["value"] for name, f in ran.json["figures"].items()}
    assert figures == {**{n.partition(":")[2]: v for n, v in names.items()}, "default": 1.0}
