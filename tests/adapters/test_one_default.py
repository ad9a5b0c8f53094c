"""Every way into a corpus searches it alike, if nothing is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
from support.command_line import here, nodekin
from support.page_client import Client
from support.scripted_server import ChatServer, serving

from nodekin import NodeGraph, as_retriever
from nodekin.adapters.cli.workspace import find_index, model_of, open_graph
from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.llama_index import NodeGraphIndex
from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document, Embedder
from nodekin.retrievers import CorpusTools, DefaultRetriever, Retriever

__all__ = ["here", "nodekin"]

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

KINDS = ("tea", "river", "violin", "castle", "bread", "comet", "horse", "glass", "whale", "paper")

TEXTS = {  # in the order of the files
    f"{kind}{n}": f"The {kind} of number {n} is known to all. Few have seen that {kind} {word}. "
    f"It is {word} in winter, as {other} is."
    for kind, other in sorted(zip(KINDS, [*KINDS[1:], KINDS[0]], strict=True))
    for n, word in enumerate(("dark", "cold", "bright"))
}

QUESTIONS = [
    *(f"Which {kind} is bright in winter?" for kind in KINDS),
    *(f"Who has seen the {kind} of number 1?" for kind in KINDS),
]

TOP_K = 6

Found = list[tuple[str, float]]
"""The documents of results, and their scores."""


def letters(texts: list[str]) -> list[list[float]]:
    return [[1.0, *(float(t.count(x)) for x in "aeio")] for t in texts]


@pytest.fixture
def files(here: Path) -> Path:
    for path in (here / "docs").iterdir():
        path.unlink()
    for name, text in TEXTS.items():
        (here / "docs" / f"{name}.txt").write_text(text, encoding="utf-8")
    rows = [
        {"id": str(n), "question": question, "document_ids": [f"docs/{KINDS[n % 10]}2.txt"]}
        for n, question in enumerate(QUESTIONS)
    ]
    (here / "q.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return here


def found(retriever: Any) -> list[Found]:
    searched = as_retriever(retriever)
    return [
        listed((r.node.document_id, r.score) for r in searched.retrieve(question, top_k=TOP_K))
        for question in QUESTIONS
    ]


def listed(results: Any) -> Found:
    return [(Path(document).stem, score) for document, score in results]


def check(runs: Iterator[tuple[str, list[Found]]], expected: list[Found]) -> None:
    """Check that results and scores are those; tools for models round them."""
    for entry, results in runs:
        error = 5e-5 if entry in ("mcp", "CorpusTools") else 1e-9
        for question, ours, theirs in zip(QUESTIONS, expected, results, strict=True):
            wanted = [(name, pytest.approx(score, abs=error)) for name, score in ours]
            assert theirs == wanted, (entry, question)


def commands(nodekin: Any) -> Iterator[tuple[str, list[Found]]]:
    """Yield the results printed by commands."""
    runs = [nodekin("search", question, "--json").json for question in QUESTIONS]
    yield "search", [listed((r["document"], r["score"]) for r in run["results"]) for run in runs]
    with serving(ChatServer()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        model = ("--json", "--model", "scripted")
        runs = [nodekin("ask", question, *model).json for question in QUESTIONS]
        chats = [nodekin("ask", "--chat", *model, input=question).json for question in QUESTIONS]
    for entry, told in (("ask", runs), ("ask --chat", chats)):
        yield entry, [listed((s["document"], s["score"]) for s in one["sources"]) for one in told]
    ran = nodekin("eval", "--data", "q.jsonl", "-m", f"recall@{TOP_K}", "--json")
    assert ran.status == 0, ran.err
    rows = ran.json["results"]["default"]
    yield (
        "eval",
        [listed((i["document_id"], i["score"]) for i in row["items"][:TOP_K]) for row in rows],
    )


def sessions() -> Iterator[tuple[str, list[Found]]]:
    """Yield the results of the sessions opened by other commands."""
    index = find_index(None)
    with open_graph(index, quiet=True, model=model_of(index)) as graph:
        client = Client(PageApp(DefaultRetriever(graph)))
        pages = [client.get("/search", query=question).text for question in QUESTIONS]
        shown = [re.findall(r'data-document="(.+?)" data-score="(.+?)"', page) for page in pages]
        yield (
            "serve",
            [listed((document, float(score)) for document, score in p[:TOP_K]) for p in shown],
        )
        yield "mcp", of_tools(CorpusTools(graph, max_tokens=2_000))


def of_tools(tools: CorpusTools) -> list[Found]:
    calls = [tools.call("search", {"query": question}) for question in QUESTIONS]
    return [listed((e["document"], e["score"]) for e in call.entries[:TOP_K]) for call in calls]


def programs(embed: Any) -> Iterator[tuple[str, list[Found]]]:
    """Yield the results of the Python API."""
    graph = NodeGraph("docs", embed=embed, progress=False)
    yield "as_retriever", found(graph)
    yield "CorpusTools", of_tools(CorpusTools(graph, max_tokens=2_000))
    with NodeGraph(store=".nodekin/graph.sqlite", embed=embed, progress=False) as stored:
        yield "as_retriever of the index", found(stored)
        assert "passage sentence" not in stored.groups
    documents = [LangChainDocument(text, id=name) for name, text in TEXTS.items()]
    yield "LangChain", found(NodeGraphRetriever.from_documents(documents, embed))
    if embed is not None:
        nodes = [LlamaIndexDocument(text=text, id_=name) for name, text in TEXTS.items()]
        yield "LlamaIndex", found(NodeGraphIndex(nodes, embed_model=embed, group="sentence"))


@pytest.mark.slow
@pytest.mark.parametrize("embeds", [False, True])
def test_every_entry_point_returns_equal_results(
    files: Path, nodekin: Any, monkeypatch: pytest.MonkeyPatch, embeds: bool, socket_enabled: None
) -> None:
    model = Embedder(letters, "letters") if embeds else None
    target = "nodekin.adapters.named_models.embedding_model"
    monkeypatch.setattr(target, lambda *arguments: model)
    assert nodekin("index", "docs", *(["--embed", "letters"] if embeds else [])).status == 0
    size = (files / ".nodekin" / "graph.sqlite").stat().st_size
    graph = NodeGraph(embed=model, progress=False)
    graph.add([Document(text, id=name) for name, text in TEXTS.items()])
    expected = found(graph)
    assert all(len(results) == TOP_K for results in expected)
    for runs in (commands(nodekin), sessions(), programs(model)):
        check(runs, expected)
    assert (files / ".nodekin" / "graph.sqlite").stat().st_size == size
    assert list(nodekin("status", "--json").json["groups"]) == ["ROOT", "passage", "sentence"]


def test_named_similarity_has_equal_scores_everywhere() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=name) for name, text in TEXTS.items()])
    expected = found(Retriever(graph, "ROOT", "bm25"))
    documents = [LangChainDocument(text, id=name) for name, text in TEXTS.items()]
    assert found(NodeGraphRetriever.from_documents(documents, similarity="bm25")) == expected
    nodes = [LlamaIndexDocument(text=text, id_=name) for name, text in TEXTS.items()]
    assert found(NodeGraphIndex(nodes, similarity="bm25")) == expected


ENCYCLOPAEDIA = {
    f"{name}{n}": f"# {name} {n}\n\n{name} {n} is a town. It lies near {name} {n + 1}."
    for name in ("Alder", "Birch", "Cedar")
    for n in range(8)
}


@pytest.fixture
def linked(here: Path) -> Path:
    for path in (here / "docs").iterdir():
        path.unlink()
    for name, text in ENCYCLOPAEDIA.items():
        (here / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    return here


def test_index_builds_links(linked: Path, nodekin: Any) -> None:
    assert nodekin("index", "docs", "--json").json["groups"]["passage entity"] == 24
    size = (linked / ".nodekin" / "graph.sqlite").stat().st_size
    ran = nodekin("search", "Which town is near Alder 3?", "--json")
    assert (ran.status, ran.err) == (0, "")
    assert "link" in str(ran.json["results"])
    assert (linked / ".nodekin" / "graph.sqlite").stat().st_size == size
