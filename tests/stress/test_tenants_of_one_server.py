"""Graphs of many tenants on one server, in threads of one process, never share texts.

All graphs use equal document ids and queries, one index folder and shared connections, which are
closed at random. Node ids of another graph are unknown.
"""

from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
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
QUERIES = ("green tea", "river bank", "who has milk", "the mark")
TOPICS = ("green tea", "the river bank", "milk and money")


def letters(texts: list[str]) -> list[list[float]]:
    return [[*(text.count(letter) for letter in "aegkrtmi"), 0.1] for text in texts]


class Tenant:
    """A graph, its mark in all texts, and random calls."""

    def __init__(self, address: str, number: int) -> None:
        self.address, self.number, self.mark = address, number, f"mark{number:03d}x"
        self.graph = self.opened()
        self.graph.add([self.document(f"d{n}", topic) for n, topic in enumerate(TOPICS)])
        self.ids = [node.id for node in self.graph.nodes("line")]

    def opened(self) -> NodeGraph:
        model = Embedder(letters, "letters")
        graph = NodeGraph(store=self.address, embed=model, progress=False)
        graph.create_node_group("line", str.splitlines)
        return graph

    def document(self, name: str, topic: str) -> Document:
        lines = [f"{topic} {self.mark} {n}" for n in range(3)]
        return Document("\n".join(lines), {"topic": topic, "owner": self.mark}, id=name)

    def check(self, shown: object, *allowed: str) -> None:
        """Check that a value has no other marks."""
        assert {*re.findall(r"mark\d{3}x", repr(shown))} <= {self.mark, *allowed}, self.mark

    def check_results(self, results: list[Any], *allowed: str) -> None:
        for result in results:
            assert self.mark in result.node.text
            self.check(result.explain(), *allowed)
            for node in (result.node, *(evidence.node for evidence in result.evidence)):
                self.check([node.text, dict(node.metadata)])
            with suppress(LookupError):  # removed by another thread
                self.check([parent.text for parent in self.graph.find("ROOT")(result)])

    def search(self, other: Tenant, rng: random.Random) -> None:
        filters = rng.choice([None, {"topic": TOPICS[0]}, {"owner": {"like": "mark%"}}])
        options: dict[str, Any] = {"target": rng.choice([None, "ROOT"]), "filters": filters}
        similarities = rng.choice([["bm25"], ["cosine"], ["bm25", "cosine"]])
        parts = [Retriever(self.graph, "line", s, **options) for s in similarities]
        with trace() as traced:
            for results in FusionRetriever(parts).batch([*QUERIES, other.mark]):
                self.check_results(results, other.mark)
        self.check([span.attributes for span in (traced, *traced.children)], other.mark)
        assert parts[0].retrieve("tea", filters={"owner": other.mark}) == []

    def search_a_second_graph(self, other: Tenant, rng: random.Random) -> None:
        second = copy(self)
        with self.opened() as second.graph:  # with the index files of all tenants
            second.search(other, rng)

    def read(self, other: Tenant, rng: random.Random) -> None:
        node = self.graph.node(rng.choice(("d0", "d1")))
        self.check([node.text, dict(node.metadata), node.links])
        self.check([kin.text for kin in self.graph.find("line")(node)])
        self.check(node.embedding().tolist())
        foreign = rng.choice(other.ids)
        with pytest.raises(LookupError) as caught:
            self.graph.node(foreign)
        self.check(str(caught.value))
        with pytest.raises(LookupError):
            self.graph.link("d0", foreign)
        assert self.graph.linked(foreign) == []

    def change(self, other: Tenant, rng: random.Random) -> None:
        name = f"more{rng.randrange(3)}"
        if rng.random() < 0.5:
            self.graph.add(self.document(name, rng.choice(TOPICS)))
        elif rng.random() < 0.8:
            with suppress(LookupError):
                self.graph.remove(name)
        else:
            self.graph.close()


@pytest.mark.slow
def test_nothing_of_another_tenant_is_returned(
    postgres_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synced_index, "_UNSAVED", 3)  # store small indexes
    monkeypatch.setattr(synced_index, "_WORTH_SAVING", 0)
    tally = Tally("tenants of one server")
    base = postgres_server.address()
    tenants = [Tenant(f"{base}_tenant_{n}&cache={tmp_path}", n) for n in range(TENANTS)]
    calls = [Tenant.search, Tenant.read, Tenant.change, Tenant.search_a_second_graph]

    def work(seed: int) -> None:
        rng = random.Random(seed)
        tenant, other = rng.sample(tenants, 2)
        (call,) = rng.choices(calls, [40, 25, 15, 1])
        with tally.trying((call.__name__, tenant.number)):
            try:
                call(tenant, other, rng)
            except StoreError as error:
                tenant.check(str(error))
                tally.note("calls whose connection was ended")
        if rng.random() < 0.01:
            with psycopg.connect(postgres_server.uri) as db:
                pids = [pid for (pid,) in db.execute(f"SELECT pid {OURS}")]
                db.execute("SELECT pg_terminate_backend(%s)", [rng.choice(pids or [0])])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(amount(300, 100_000))))
    tally.check()
    with psycopg.connect(postgres_server.uri) as db:
        ((connections,),) = db.execute(f"SELECT count(*) {OURS}").fetchall()
    assert connections <= 50  # a pool grows to its maximum if connections break
    for tenant in tenants:
        tenant.graph.close()
    assert len({file.parent for file in tmp_path.rglob("*.index")}) == TENANTS


OURS = "FROM pg_stat_activity WHERE application_name = 'nodekin'"
