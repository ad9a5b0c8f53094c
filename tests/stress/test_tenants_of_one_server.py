"""Fifty graphs on one server, in eight threads of one process, never return each other's texts.

All graphs use equal document ids and queries, one index folder and shared connections, which are
closed at random. Passing node ids of another graph is an error.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.postgres_server import RunningServer
from support.stress import LONG, Tally, amount

from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.retrievers import FusionRetriever, Retriever, trace
from nodekin.retrievers.indexes import synced_index

TENANTS = 50 if LONG else 12
THREADS = 8
CALLS = amount(500, 100_000)
QUERIES = ("green tea", "river bank", "who has milk", "the mark")
TOPICS = ("green tea", "the river bank", "milk and money")


def letters(texts: list[str]) -> list[list[float]]:
    return [[*(text.count(letter) for letter in "aegkrtmi"), 0.1] for text in texts]


MODEL = Embedder(letters, "letters")


@dataclass
class Tenant:
    """A graph and its queries."""

    number: int
    address: str
    graph: NodeGraph
    ids: list[str]

    @property
    def mark(self) -> str:
        return f"mark{self.number:03d}x"

    def document(self, name: str, topic: str) -> Document:
        lines = [f"{topic} {self.mark} {n}" for n in range(3)]
        return Document("\n".join(lines), {"topic": topic, "owner": self.mark}, id=name)

    def check(self, shown: object, query: str = "") -> None:
        """Check that a value contains no mark of another tenant except the query's mark."""
        marks = {*re.findall(r"mark\d{3}x", repr(shown))}
        assert marks <= {self.mark, query}, (self.mark, marks)

    def check_results(self, results: list[Any], query: str = "") -> None:
        for result in results:
            assert self.mark in result.node.text
            self.check([result.node.text, dict(result.node.metadata)])
            self.check(result.explain(), query)
            self.check([(e.node.text, dict(e.node.metadata)) for e in result.evidence])
            with suppress(LookupError):  # another thread has removed it since
                self.check([parent.text for parent in self.graph.find("ROOT")(result)])


def opened(address: str) -> NodeGraph:
    graph = NodeGraph(store=address, embed=MODEL, progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


def tenant_at(address: str, number: int) -> Tenant:
    tenant = Tenant(number, address, opened(address), [])
    documents = [tenant.document(f"d{n}", topic) for n, topic in enumerate(TOPICS)]
    tenant.graph.add(documents)
    tenant.ids = [node.id for node in tenant.graph.nodes("line")]
    return tenant


def search(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    similarity = rng.choice(["bm25", "cosine"])
    filters = rng.choice([None, {"topic": TOPICS[0]}, {"owner": {"like": "mark%"}}])
    retriever = Retriever(
        tenant.graph, "line", similarity, target=rng.choice([None, "ROOT"]), filters=filters
    )
    with trace() as traced:
        tenant.check_results(retriever(rng.choice(QUERIES)))
    tenant.check([span.attributes for span in (traced, *traced.children)])


def search_for_another(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    other = rng.choice(others)
    for similarity in ("bm25", "cosine"):
        retriever = Retriever(tenant.graph, "line", similarity)
        tenant.check_results(retriever(other.mark), other.mark)
        assert retriever.retrieve("tea", filters={"owner": other.mark}) == []


def batch(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    words = Retriever(tenant.graph, "line")
    both = FusionRetriever([words, Retriever(tenant.graph, "line", "cosine")])
    for results in both.batch(QUERIES):
        tenant.check_results(results)


def read(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    node = tenant.graph.node(rng.choice(("d0", "d1")))
    tenant.check([node.text, dict(node.metadata), tenant.graph.links(node)])
    tenant.check([kin.text for kin in tenant.graph.find("line")(node)])
    tenant.check(tenant.graph.embedding(node).tolist())


def read_of_another(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    stolen = rng.choice(rng.choice(others).ids)
    with pytest.raises(LookupError) as caught:
        tenant.graph.node(stolen)
    tenant.check(str(caught.value))
    with pytest.raises(LookupError):
        tenant.graph.link("d0", stolen)
    assert tenant.graph.links(stolen) == []


def change(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    name = f"more{rng.randrange(3)}"
    if rng.random() < 0.5:
        tenant.graph.add(tenant.document(name, rng.choice(TOPICS)))
    elif name in tenant.graph.reader.document_ids():
        try:
            tenant.graph.remove(name)
        except LookupError as error:  # another thread was quicker
            tenant.check(str(error))


def fail(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    with pytest.raises(TypeError) as refused:
        tenant.graph.add(Document("text", {"bad": object()}))
    with pytest.raises(LookupError) as unknown:
        tenant.graph.remove("nothing")
    tenant.check([str(refused.value), str(unknown.value)])


def open_again(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    """Search a graph that is new here, and finds the index of words in the folder of all."""
    again = replace(tenant, graph=opened(tenant.address))
    try:
        search(again, others, rng)
    finally:
        again.graph.close()


def close(tenant: Tenant, others: list[Tenant], rng: random.Random) -> None:
    if rng.random() < 0.2:
        tenant.graph.close()


WORK: list[tuple[Callable[..., None], int]] = [
    *((search, 40), (search_for_another, 10), (batch, 8), (read, 15), (read_of_another, 10)),
    *((change, 10), (fail, 5), (open_again, 1), (close, 2)),
]


@pytest.mark.slow
def test_nothing_of_another_tenant_is_returned(
    postgres_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synced_index, "_UNSAVED", 3)  # store small indexes
    monkeypatch.setattr(synced_index, "_WORTH_SAVING", 0)
    tally = Tally("tenants of one server")
    base = postgres_server.address()
    addresses = [f"{base}_tenant_{number}&cache={tmp_path}" for number in range(TENANTS)]
    tenants = [tenant_at(address, number) for number, address in enumerate(addresses)]
    numbers = iter(range(CALLS))
    turn = threading.Lock()
    works, weights = zip(*WORK, strict=True)

    def work(thread: int) -> None:
        rng = random.Random(thread)
        while True:
            with turn:
                if next(numbers, None) is None:
                    return
            tenant = rng.choice(tenants)
            others = [other for other in tenants if other is not tenant]
            call = rng.choices(works, weights)[0]
            with tally.trying((call.__name__, tenant.number)):
                try:
                    call(tenant, others, rng)
                except StoreError as error:  # its connection was ended
                    tenant.check(str(error).replace(f"_tenant_{tenant.number}", ""))
                    tally.note("calls whose connection was ended")
            if rng.random() < 0.01:
                end_a_connection(postgres_server.uri, rng)

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(work, thread) for thread in range(THREADS)]:
            future.result()
    with psycopg.connect(postgres_server.uri) as db:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nodekin'"
        ((connections,),) = db.execute(query).fetchall()
    assert connections <= 40  # not a few for each tenant
    for tenant in tenants:
        tenant.graph.close()
    stored = [*tmp_path.rglob("*.index")]
    assert len({file.parent for file in stored}) == TENANTS
    tally.check()


def end_a_connection(uri: str, rng: random.Random) -> None:
    with psycopg.connect(uri) as db:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'nodekin'"
        if pids := [pid for (pid,) in db.execute(query)]:
            db.execute("SELECT pg_terminate_backend(%s)", [rng.choice(pids)])
