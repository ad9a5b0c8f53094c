"""Freeze outputs in the folder ``frozen``, with one JSON file for each kind of output.

- ``splitters``: the ids and spans of the nodes that each built-in splitter creates from the texts
  in ``frozen/texts``.
- ``files``: the length and a hash of the text that is extracted from each sample file.
- ``commands``: the JSON output of each command with ``--json`` for three small files.
- ``tools``: the schema and the results of each MCP tool for the same texts.
- ``figures``: the results of ``evaluate`` for the first 300 questions of CMRC 2018.
- ``abstain``: how well scores separate questions about a corpus from other questions (AUC).

``PYTHONPATH=tests python -m support.frozen_outputs changes [KIND ...]`` prints all changes. With
``write`` instead of ``changes``, the files are also regenerated. The data sets are read from the
folder NODEKIN_DATA. Paths, dates, sizes on disk and times are masked, and scores are rounded to
four digits.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodekin.nodegraph import (
    Document,
    EntityExtractor,
    MarkdownSplitter,
    NodeGraph,
    PassageSplitter,
    RecursiveSplitter,
    SentenceSplitter,
    split_paragraphs,
    split_sentences,
)
from nodekin.retrievers import CorpusTools, Retriever, as_retriever
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldPassage,
    Matching,
    Question,
    evaluate,
)

FOLDER = Path(__file__).with_name("frozen")
DATA = Path(os.environ.get("NODEKIN_DATA") or "data")


# Splitters

SPLITTERS: dict[str, Any] = {
    "sentences": split_sentences,
    "paragraphs": split_paragraphs,
    "SentenceSplitter(1024, 100)": SentenceSplitter(),
    "SentenceSplitter(40, 10)": SentenceSplitter(40, 10),
    "SentenceSplitter(80, 20, len)": SentenceSplitter(80, 20, length=len),
    "RecursiveSplitter(1024, 100)": RecursiveSplitter(),
    "RecursiveSplitter(40, 10)": RecursiveSplitter(40, 10),
    "MarkdownSplitter()": MarkdownSplitter(),
    "MarkdownSplitter(2, 30, 5)": MarkdownSplitter(2, chunk_size=30, chunk_overlap=5),
    "PassageSplitter(320)": PassageSplitter(),
    "PassageSplitter(40)": PassageSplitter(40),
}

PREDEFINED = ("CoarseChunk", "MediumChunk", "FineChunk", "section", "page", "table", "symbol")


def splitters(data: Path) -> dict[str, Any]:
    """Return the text ``id start-end`` for each node, keyed by text and splitter."""
    made: dict[str, Any] = {}
    for path in sorted((FOLDER / "texts").iterdir()):
        name = "code.py" if path.name == "code.txt" else path.name
        document = Document(path.read_bytes().decode(), {"file_name": name}, id=name)
        with NodeGraph(progress=False) as graph:
            graph.add(document)
            for splitter, transform in SPLITTERS.items():
                graph.create_node_group(splitter, transform)
            graph.create_node_group("entity", EntityExtractor())
            groups = {group: graph.nodes(group) for group in (*SPLITTERS, *PREDEFINED)}
            made[name] = {
                group: [f"{node.id} {node.start}-{node.end}" for node in nodes]
                for group, nodes in groups.items()
                if nodes
            }
            entities = graph.nodes("entity")
            made[name]["entity"] = [f"{n.id} {n.text} {hashed(str(n.content))}" for n in entities]
    return made


# Files


def files(data: Path) -> dict[str, Any]:
    """Return the length and the hash of the text of each document, keyed by id."""
    from support.office_files import FIXTURES
    from support.sample_files import sample_files

    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples"
        sample_files(samples)
        with NodeGraph([samples, FIXTURES], progress=False, on_error="skip") as graph:
            texts = {node.document_id: node.text for node in graph.nodes("ROOT")}
    return {name: f"{len(text)} {hashed(text)}" for name, text in sorted(texts.items())}


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Commands and tools

TEXTS = {
    "tea.md": "# Tea\n\nGreen tea is steamed. It stays green.\n\n"
    "## Black tea\n\nIt is fermented. Lu Yu wrote about Green tea.\n",
    "river.txt": "The Yangtze is long.\n\nIt runs to the sea, past Wuhan. Green tea grows there.\n",
    "茶.md": "# 茶\n\n陆羽写了《茶经》。他生活在唐代。\n\n绿茶不经过发酵。\n",
}

QUESTIONS = """
{"id": "1", "question": "Which tea is steamed?", "document_ids": ["docs/tea.md"]}
{"id": "2", "question": "Which river runs past Wuhan?", "document_ids": ["docs/river.txt"]}
"""

RETRIEVER = """
from nodekin import NodeGraph, Retriever

def make_retriever():
    return Retriever(NodeGraph("docs"), "ROOT", "bm25")
"""

COMMANDS = {
    "index": "index docs",
    "search": "search green tea -k 2",
    "search, nothing found": "search xylophone",
    "ask": "ask what is green tea -k 2",
    "list": "list",
    "show": "show docs/tea.md",
    "show, lines": "show docs/tea.md:3",
    "eval": "eval own:make_retriever default --data q.jsonl --docs docs -m recall@1 -m mrr@5",
    "remove": "remove docs/river.txt",
}

CALLS: dict[str, dict[str, Any]] = {
    "search": {"query": "green tea"},
    "grep": {"pattern": "Green tea"},
    "outline": {},
    "read": {"document": "tea.md"},
    "related": {"document": "tea.md"},
    "cite": {"draft": 'They say that "Green tea is steamed" and "Green tea is boiled".'},
}

LEFT_OUT = {"eval": {"results", "moved_gold"}}
"""The fields whose contents are not frozen, keyed by command."""

MASKED = {"bytes", "costs", "version", "seconds", "file_size"}


def commands(data: Path) -> dict[str, Any]:
    """Return the masked JSON output of each command."""
    from click.testing import CliRunner

    from nodekin.adapters.cli.app import app
    from support.scripted_server import ChatServer, serving

    made = {}
    with serving(ChatServer()) as server, folder_of_texts() as folder:
        server.text = "It is steamed [1]."
        own = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "scripted"}
        others = dict.fromkeys(name for name in os.environ if name.startswith("NODEKIN_"))
        for name, arguments in COMMANDS.items():
            ran = CliRunner(env={**others, **own}).invoke(app, [*arguments.split(), "--json"])
            if not ran.stdout.startswith("{"):
                raise RuntimeError(f"nodekin {arguments}: {ran.output}") from ran.exception
            written = json.loads(ran.stdout)
            kept = {key: written[key] for key in written if key not in LEFT_OUT.get(name, ())}
            made[name] = masked(kept, folder)
    return made


@contextmanager
def folder_of_texts() -> Iterator[str]:
    """Change to a folder with the texts, the questions and a retriever, and yield its path."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder).resolve()
        (here / "docs").mkdir()
        for name, text in TEXTS.items():
            (here / "docs" / name).write_text(text, encoding="utf-8")
        (here / "q.jsonl").write_text(QUESTIONS.lstrip(), encoding="utf-8")
        (here / "own.py").write_text(RETRIEVER, encoding="utf-8")
        os.chdir(here)
        try:
            yield str(here)
        finally:
            os.chdir(before)
            sys.modules.pop("own", None)


def masked(value: Any, folder: str = "") -> Any:
    """Replace values that differ between runs in JSON data."""
    if isinstance(value, dict):
        return {
            key: f"<{key}>" if key in MASKED or key.endswith("_date") else masked(part, folder)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [masked(part, folder) for part in value]
    if isinstance(value, str) and folder:
        return value.replace(folder, "<folder>")
    return round(value, 4) if isinstance(value, float) else value


def tools(data: Path) -> dict[str, Any]:
    """Return the schema and the result of each MCP tool."""
    return asyncio.run(called_tools())


async def called_tools() -> dict[str, Any]:
    """Call each tool through the MCP protocol in memory."""
    from mcp import Client

    from nodekin.adapters.mcp.mcp_server import CorpusServer

    made = {}
    with NodeGraph(progress=False) as graph:
        graph.add([Document(text, {"file_name": name}, id=name) for name, text in TEXTS.items()])
        server = CorpusServer(lambda: CorpusTools(graph))
        async with Client(server.server) as client:
            for tool in (await client.list_tools()).tools:
                result = await client.call_tool(tool.name, CALLS[tool.name])
                made[tool.name] = {
                    "arguments": types_of(tool.input_schema["properties"]),
                    "required": tool.input_schema.get("required", []),
                    "is_error": bool(result.is_error),
                    "text": [part.text for part in result.content],
                    "data": masked(result.structured_content),
                }
    return made


def types_of(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the types of arguments, without their descriptions."""
    return {
        name: {key: part for key, part in schema.items() if key != "description"}
        for name, schema in properties.items()
    }


# Figures


def figures(data: Path) -> dict[str, Any]:
    """Return the evaluation results of three searches for the first 300 questions of CMRC 2018."""
    folder = data / "cmrc2018"
    paths = sorted(folder.glob("kb/part_*.txt"), key=lambda path: int(path.stem[5:]))
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
    texts = [line for line in lines if line.strip()]
    rows = (folder / "questions.jsonl").read_text("utf-8").splitlines()[:300]
    questions = [
        Question(str(at), row["question"], (GoldPassage(row["context"]),), tuple(row["answers"]))
        for at, row in enumerate(map(json.loads, rows))
    ]
    documents = [Document(text, id=str(at)) for at, text in enumerate(texts)]
    with NodeGraph(progress=False) as graph:
        graph.add(documents)
        graph.create_node_group("sentence", split_sentences)
        searches = {
            "default": as_retriever(graph),
            "bm25": Retriever(graph, "ROOT", "bm25"),
            "sentence -> ROOT": Retriever(graph, "sentence", "bm25", target="ROOT"),
        }
        metrics = ["recall@1", "recall@3", "recall@5", "mrr@5"]
        dataset = Dataset(questions, documents, "CMRC 2018")
        matching = Matching("place")  # the returned passages are parts of paragraphs
        measured = evaluate(searches, dataset, metrics, top_k=5, matching=matching, progress=False)
        return {
            name: {
                metric: round(measured.figure(name, metric).value or 0.0, 4) for metric in metrics
            }
            for name in searches
        }


def abstain(data: Path) -> dict[str, Any]:
    """Return the AUC of the score of the first result, keyed by data set and search."""
    script = data.parent / "benchmarks" / "abstain.py"
    if not script.exists():
        raise FileNotFoundError(2, "no script", str(script))
    measure = runpy.run_path(str(script))
    made: dict[str, Any] = {}
    for name, texts, own, others in measure["sets"](data):
        with NodeGraph(progress=False) as graph:
            # Half of the corpus is a set, whose order differs between processes.
            graph.add([Document(text, id=str(at)) for at, text in enumerate(sorted(texts))])
            searches = {
                "default": as_retriever(graph),
                "bm25": Retriever(graph, "ROOT", "bm25"),
            }
            for kind, retriever in searches.items():
                scores = [
                    [
                        results[0].score if (results := retriever.retrieve(q, top_k=1)) else 0.0
                        for q in questions
                    ]
                    for questions in (own, others)
                ]
                made[f"{name}, {kind}"] = round(measure["auc"](*scores), 4)
    return made


# The files

KINDS: dict[str, Callable[[Path], dict[str, Any]]] = {
    function.__name__: function
    for function in (splitters, files, commands, tools, figures, abstain)
}


def changes(kind: str, data: Path, write: bool = False) -> list[str]:
    """Return the changed values of a kind of output, and optionally regenerate its file."""
    path = FOLDER / f"{kind}.json"
    new = json.loads(json.dumps(KINDS[kind](data)))
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if write:
        text = json.dumps(new, ensure_ascii=False, indent=1)
        path.write_text(f"{text}\n", encoding="utf-8")
    return differences(old, new)


def differences(old: Any, new: Any) -> list[str]:
    """Return the paths of values that differ, together with both values."""
    before, after = dict(leaves(old)), dict(leaves(new))
    missing = "missing"
    return [
        f"{path}: {before.get(path, missing)!r:.200} -> {after.get(path, missing)!r:.200}"
        for path in dict.fromkeys([*before, *after])
        if not equal(before.get(path, missing), after.get(path, missing))
    ]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values in JSON data with their paths."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        if isinstance(part, dict | list) and part:
            yield from leaves(part, f"{path}/{key}")
        else:
            yield f"{path}/{key}", part


def equal(old: Any, new: Any) -> bool:
    is_rounded = isinstance(old, float) and isinstance(new, float)
    return abs(old - new) < 1.5e-4 if is_rounded else bool(old == new)


if __name__ == "__main__":
    command, *kinds = sys.argv[1:]
    for name in kinds or KINDS:
        for line in changes(name, DATA, command == "write"):
            sys.stdout.write(f"{name}{line}\n")
