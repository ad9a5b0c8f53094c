"""What a retriever or an engine is restricted to holds for everything that it returns."""

import asyncio
import unicodedata
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest
from support.fixed_retriever import FixedRetriever, fixed, texts
from support.streams import finish

from nodekin.nodegraph import Document, EntityExtractor, Node, NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    MultiStepRetriever,
    QaRetriever,
    QueryEngine,
    RecursiveRetriever,
    Retriever,
    RouterRetriever,
    as_retriever,
    restrict,
    trace,
)
from nodekin.retrievers.call import Call
from nodekin.retrievers.restricted_retriever import RestrictedRetriever

OURS = {"tenant": "a"}


@pytest.fixture
def graph() -> NodeGraph:
    """Return documents of two tenants, and a document with lines of both tenants."""
    graph = NodeGraph(progress=False)

    def lines(node: Node) -> list[Node]:
        tenants = ["a", "b"] if node.id == "mixed" else [node.metadata["tenant"]] * 2
        parts = zip(node.text.split("\n"), tenants, strict=True)
        return [Node(text, {"tenant": tenant}) for text, tenant in parts]

    graph.create_node_group("line", lines, trans_node=True)
    for tenant in "ab":
        text = f"Tea of {tenant} is green.\nMilk of {tenant}."
        graph.add(Document(text, {"tenant": tenant}, id=tenant))
    graph.add(Document("Tea one of a.\nTea two of b.", {}, id="mixed"))
    return graph


def ids(results: Any) -> set[str]:
    return {result.node.id for result in results}


def test_restrict_drops_documents_without_field(graph: NodeGraph) -> None:
    retriever = Retriever(graph, "line", target="ROOT")
    assert ids(retriever("tea")) == {"a", "b", "mixed"}
    # The hit must meet a filter, and the document must meet it for existing fields only.
    assert ids(retriever("tea", filters=OURS)) == {"a", "mixed"}
    for restricted in (restrict(retriever, OURS), RestrictedRetriever(retriever, OURS)):
        assert ids(restricted("tea")) == {"a"}
        assert ids(restricted.batch(["tea", "milk"])[0]) == {"a"}
        assert ids(asyncio.run(restricted.aretrieve("tea"))) == {"a"}
    merging = AutoMergeRetriever(Retriever(graph, "line", filters={"tenant": ["a", "b"]}))
    assert "mixed" in ids(merging("tea"))
    found = restrict(merging, {"tenant": ["a", "b"]})("tea")
    assert "mixed" not in ids(found)
    assert "Tea one of a." in texts(found)


def test_filters_of_call_cannot_widen_restriction(graph: NodeGraph) -> None:
    retriever = restrict(Retriever(graph, "line"), OURS)
    for filters, tenants in (
        ({"tenant": "b"}, set()),
        ({"tenant": ["a", "b"]}, {"a"}),
        ({"or": [{"tenant": "b"}, {"tenant": "a"}]}, {"a"}),
        ({"not": {"tenant": "a"}}, set()),
        ({}, {"a"}),
        (None, {"a"}),
    ):
        results = retriever("tea milk", filters=filters)
        assert {result.node.metadata["tenant"] for result in results} == tenants
    results = retriever.with_filters(None)("tea milk")
    assert {result.node.metadata["tenant"] for result in results} == {"a"}
    assert restrict(retriever, {"tenant": "b"})("tea") == []


def test_restriction_ignores_later_changes_of_argument(graph: NodeGraph) -> None:
    conditions = {"tenant": "a"}
    restricted = [
        restrict(Retriever(graph, "line"), conditions),
        restrict(FusionRetriever([Retriever(graph, "line")]), conditions),
    ]
    conditions["tenant"] = "b"
    for retriever in restricted:
        assert {r.node.metadata["tenant"] for r in retriever("tea")} == {"a"}


class Forgetful:
    """A foreign retriever that claims to accept filters, but ignores them."""

    takes_filters = True

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.seen: list[str] = []

    def retrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        results = self.inner.retrieve(query, top_k=top_k)
        self.seen += texts(results)
        return results

    async def aretrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        results = await self.inner.aretrieve(query, top_k=top_k)
        self.seen += texts(results)
        return results


def test_restriction_holds_if_wrapper_drops_filters(graph: NodeGraph) -> None:
    forgetful = Forgetful(Retriever(graph, "line"))
    restricted = restrict(FusionRetriever([forgetful]), OURS)
    assert {r.node.metadata["tenant"] for r in restricted("tea")} == {"a"}
    assert {r.node.metadata["tenant"] for r in asyncio.run(restricted.aretrieve("tea"))} == {"a"}
    assert forgetful.seen
    assert all("of b" not in text for text in forgetful.seen)
    assert not restrict(forgetful, OURS).has_windows  # an optional attribute
    assert restrict(DefaultRetriever(graph, "line"), OURS).has_windows


def test_restriction_checks_returned_results(graph: NodeGraph) -> None:
    class Own(FixedRetriever):
        takes_filters = True

    own = Own(fixed(graph.nodes("line")).results)
    assert {r.node.metadata["tenant"] for r in restrict(own, OURS)("tea")} == {"a"}


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: inner,
        lambda inner: FusionRetriever([inner]),
        lambda inner: RouterRetriever({"x": FusionRetriever([inner])}, lambda prompt: "x"),
        lambda inner: QueryEngine(AutoMergeRetriever(inner), lambda prompt: "x"),
        lambda inner: RecursiveRetriever(NodeGraph(), ["ROOT"], references={"x": inner}),
    ],
)
def test_restrict_unfilterable_inner_retriever_raises(around: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"FixedRetriever.* does not take them"):
        restrict(around(fixed([])), OURS)


def test_evidence_and_traces_meet_restriction() -> None:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document("Brand\nA play by Henrik Ibsen.", {"tenant": "a"}, id="brand"),
            Document("Henrik Ibsen\nBorn in Skien.", {"tenant": "a"}, id="ibsen"),
            Document("Henrik Ibsen\nOf the other tenant.", {"tenant": "b"}, id="other"),
        ]
    )
    graph.create_node_group("entity", EntityExtractor())
    links = LinkRetriever(Retriever(graph, "ROOT", top_k=1), graph, via="entity")
    assert "entity" in {e.group for r in links("Who wrote Brand?") for e in r.evidence}
    with trace() as traced:
        results = restrict(links, OURS)("Who wrote Brand?")
    assert ids(results) == {"brand", "ibsen"}
    assert {e.node.id for r in results for e in r.evidence} == {"brand"}
    (linking,) = [span for span in traced.children if span.name == "follow links"]
    assert linking.attributes["passages"] == 2


# Engines


class Model:
    """A model that records its prompts."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return "Tea is green [1]."


@pytest.fixture
def engine(graph: NodeGraph) -> tuple[QueryEngine, Model]:
    def pairs(node: Node) -> list[Node]:
        tenant = node.metadata.get("tenant", "nobody")
        return [Node("Who has tea?", {"answer": f"{tenant} has"})]

    graph.create_node_group("pairs", pairs, trans_node=True)
    model = Model()
    step = MultiStepRetriever(
        Retriever(graph, "line", target="ROOT"),
        lambda prompt: model(prompt) and "Answered: no\nNext question: Whose milk is it?",
    )
    return QueryEngine(step, model, qa=QaRetriever(graph, "pairs")), model


def test_restricted_engine_answers_from_tenant_passages(engine: tuple[QueryEngine, Model]) -> None:
    whole, model = engine
    mine = restrict(whole, OURS)
    assert isinstance(mine, QueryEngine)
    answers = [
        mine.query("Which tea is green?"),
        mine.query("Which tea is green?", filters={"tenant": "b"}),
        asyncio.run(mine.aquery("Which tea is green?")),
        finish(mine.stream("Which tea is green?")),
        mine.query("Which tea is green?", history=[("Whose milk?", "b's")]),
        mine.query("who has tea"),
    ]
    assert answers[-1].text == "a has"
    assert mine.query("who has tea", filters={"tenant": "b"}).preset is None
    sources = [source.result for answer in answers for source in answer.sources]
    assert {r.node.metadata["tenant"] for r in sources} == {"a"}
    assert all("of b" not in prompt for prompt in model.prompts)
    assert any("of a" in prompt for prompt in model.prompts)
    assert Call.begin() == Call()
    whole.query("Which tea is green?")
    assert "of b" in model.prompts[-1]


def test_restricted_inner_engine_answers_from_tenant_passages(
    engine: tuple[QueryEngine, Model],
) -> None:
    whole, model = engine
    retriever = RouterRetriever({"engine": whole}, lambda prompt: "engine")
    (result,) = restrict(retriever, OURS)("Which tea is green?")
    assert result.node.text == "Tea is green [1]."
    sources = [match.node for match in result.evidence if match.node is not result.node]
    assert {node.metadata["tenant"] for node in sources} == {"a"}
    assert all("of b" not in prompt for prompt in model.prompts)
    assert restrict(retriever, {"tenant": "c"})("Which tea is green?") == []

    class Wrong:
        """An engine that takes filters, and answers from everything."""

        def query(self, question: str, *, filters: Any = None) -> Any:
            return whole.query(question)

        async def aquery(self, question: str, *, filters: Any = None) -> Any:
            return await whole.aquery(question)

    inside = restrict(FusionRetriever([Wrong()]), OURS)("Which tea is green?")
    assert all("of b" not in prompt for prompt in model.prompts)
    assert len(inside) == 1


# What it takes


def test_restrict_with_invalid_argument_raises(graph: NodeGraph) -> None:
    retriever = Retriever(graph, "line")
    wrong: Any = "tenant"
    for target in (retriever, FusionRetriever([retriever])):
        with pytest.raises(ValueError, match="has no condition"):
            restrict(target, {})
        with pytest.raises(TypeError, match="filters map"):
            restrict(target, wrong)
    with pytest.raises(TypeError, match="object with retrieve"):
        restrict(wrong, OURS)


TENANT: ContextVar[str] = ContextVar("tenant")


async def test_restriction_function_is_evaluated_per_call(graph: NodeGraph) -> None:
    """One object serves concurrent users. Without conditions, a call raises."""
    retriever = Retriever(graph, "line", target="ROOT")
    shared = restrict(retriever, lambda: {"tenant": TENANT.get()})
    engine = QueryEngine(shared, lambda prompt: "Green [1].")
    fused = FusionRetriever([shared, Retriever(graph, "ROOT", filters={"tenant": "b"})])

    async def search(tenant: str) -> list[set[str]]:
        TENANT.set(tenant)
        answer = await engine.aquery("Which tea is green?")
        return [
            ids(shared.retrieve("tea", filters={"tenant": ["a", "b"]})),
            {source.result.node.id for source in answer.sources},
            ids(await fused.aretrieve("tea")),
            ids(fused.retrieve("tea")),
        ]

    found = await asyncio.gather(*map(asyncio.create_task, map(search, "abab")))
    assert found == [[{t}, {t}, {t, "b"}, {t, "b"}] for t in "abab"]
    with pytest.raises(LookupError):
        shared.retrieve("tea")
    for nothing in (None, {}):
        with pytest.raises(ValueError, match="has no condition"):
            restrict(retriever, lambda nothing=nothing: nothing).retrieve("tea")


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize(
    ("condition", "found"),
    [("eq", ["José"]), ("in", ["José"]), ("ne", ["Bob"]), ("nin", ["Bob"])],
)
def test_restriction_ignores_unicode_form(
    stored: Any, asked: Any, condition: str, found: list[str]
) -> None:
    graph = NodeGraph(progress=False)
    for author in ("José", "Bob"):
        name = unicodedata.normalize(stored, author)
        graph.add(Document(f"Signed by {author}.", {"author": name}))
    name = unicodedata.normalize(asked, "José")
    operand = [name] if condition.endswith("in") else name
    restricted = restrict(DefaultRetriever(graph), {"author": {condition: operand}})
    authors = [result.node.metadata["author"] for result in restricted("signed")]
    assert authors == [unicodedata.normalize(stored, author) for author in found]


@pytest.mark.parametrize(("tenants", "count"), [("aa", 1), ("ab", 0), ("bb", 0), ("", 0)])
def test_foreign_answer_needs_sources_of_its_tenant(tenants: str, count: int) -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    nodes = [schema.TextNode(text=f"Tea of {t}.", metadata={"tenant": t}) for t in tenants]
    sources = [schema.NodeWithScore(node=node, score=1.0) for node in nodes]

    class Foreign:
        """An engine that accepts filters, but ignores them."""

        def query(self, question: str, *, filters: Any = None) -> Any:
            return SimpleNamespace(response="Tea is green.", source_nodes=sources)

        async def aquery(self, question: str, *, filters: Any = None) -> Any:
            return self.query(question)

    assert len(restrict(FusionRetriever([Foreign()]), OURS)("Which tea is green?")) == count
    # The retriever around the engine ignores the filters, too.
    answers = FixedRetriever(as_retriever(Foreign()).retrieve("Which tea is green?"))
    answers.takes_filters = True
    assert len(restrict(answers, OURS)("Which tea is green?")) == count
