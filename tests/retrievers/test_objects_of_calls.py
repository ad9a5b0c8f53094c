"""Objects made inside of a call keep neither its restriction, nor its budget, nor its trace."""

from collections.abc import Callable
from typing import Any

import pytest

from nodekin import retrievers
from nodekin.nodegraph import Document, EntityExtractor, NodeGraph, split_sentences
from nodekin.retrievers import (
    AutoMergeRetriever,
    BaseRetriever,
    CorpusTools,
    DefaultRetriever,
    Do,
    FusionRetriever,
    GraphNodesRetriever,
    HyDERetriever,
    LinkRetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QaRetriever,
    QueryEngine,
    QueryRewrite,
    QueryRewriteRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    RouterRetriever,
    SelfQueryRetriever,
    SubQuestionRetriever,
    TransformRetriever,
    WindowRetriever,
    as_retriever,
    restrict,
    trace,
)

TENANTS = {"tenant": ["a", "b", "c"]}
QUERY = "green tea"

Search = Callable[[str], Any]


def model(prompt: str) -> str:
    return "green tea"


def letters(texts: Any) -> list[list[float]]:
    return [[text.count(letter) + 1.0 for letter in "aeiou"] for text in texts]


def filled() -> NodeGraph:
    """Return a graph with documents of three tenants. Nothing was searched in it."""
    graph = NodeGraph(embed=letters, progress=False)
    for tenant in "abc":
        text = f"Green tea of {tenant}. It is steamed soon after the harvest."
        graph.add(Document(text, {"tenant": tenant}, id=tenant))
    graph.create_node_group("sentence", split_sentences)
    graph.create_node_group("name", EntityExtractor())
    return graph


@pytest.fixture
def graph() -> NodeGraph:
    return filled()


def plain(graph: NodeGraph, **options: Any) -> Retriever:
    return Retriever(graph, "sentence", "bm25", top_k=6, **options)


MAKERS: dict[str, Callable[[NodeGraph], Search]] = {
    "graph.search": lambda graph: lambda query: graph.search(query, 6),
    "graph": as_retriever,
    "engine": lambda graph: QueryEngine(plain(graph), model).retriever,
    "tools": lambda graph: CorpusTools(graph).retriever,
    "filters": lambda graph: plain(graph, filters=TENANTS),
    "copy with filters": lambda graph: plain(graph).with_filters(TENANTS),
    "copy with fetch_k": lambda graph: plain(graph, target="ROOT").with_fetch_k(6),
    "vectors": lambda graph: Retriever(graph, "sentence", "cosine", top_k=6),
    "both": lambda graph: Retriever(graph, "sentence", "auto", top_k=6),
    "lifted": lambda graph: plain(graph, target="ROOT"),
    "restricted": lambda graph: restrict(plain(graph), TENANTS),
    "restricted by function": lambda graph: restrict(plain(graph), lambda: TENANTS),
    "AutoMergeRetriever": lambda graph: AutoMergeRetriever(plain(graph)),
    "DefaultRetriever": DefaultRetriever,
    "DefaultRetriever with links": lambda graph: DefaultRetriever(graph, follow_links=True),
    "FusionRetriever": lambda graph: FusionRetriever([plain(graph), plain(graph)]),
    "GraphNodesRetriever": lambda graph: GraphNodesRetriever(plain(graph), graph),
    "SelfQueryRetriever": lambda graph: SelfQueryRetriever(plain(graph), model),
    "HyDERetriever": lambda graph: HyDERetriever(plain(graph), model),
    "LinkRetriever": lambda graph: LinkRetriever(plain(graph, target="ROOT"), graph, via="name"),
    "MultiQueryRetriever": lambda graph: MultiQueryRetriever(plain(graph), model),
    "MultiStepRetriever": lambda graph: MultiStepRetriever(plain(graph), model),
    "QaRetriever": lambda graph: QaRetriever(graph, "sentence"),
    "QueryRewriteRetriever": lambda graph: QueryRewriteRetriever(plain(graph), model),
    "RecursiveRetriever": lambda graph: RecursiveRetriever(graph, ["sentence"], "ROOT", "bm25"),
    "RerankRetriever": lambda graph: RerankRetriever(
        plain(graph), "ModuleReranker", model=lambda query, texts: [1.0] * len(texts)
    ),
    "Retriever": plain,
    "RouterRetriever": lambda graph: RouterRetriever({"one": plain(graph)}, model, default="one"),
    "SubQuestionRetriever": lambda graph: SubQuestionRetriever(plain(graph), model),
    "TransformRetriever": lambda graph: TransformRetriever(plain(graph), QueryRewrite(model)),
    "WindowRetriever": lambda graph: WindowRetriever(plain(graph)),
}


class Lazy(BaseRetriever):
    """A retriever that makes its search at the first call, as a tool does."""

    def __init__(self, make: Callable[[], Search]) -> None:
        super().__init__()
        self.make = make
        self.made: Search | None = None

    async def search_all(self, queries: Any, limit: Any, filters: Any) -> Any:
        def search() -> list[Any]:
            if self.made is None:
                self.made = self.make()
            return [self.made(query) for query in queries]

        return await Do(search, kind="work")


def found(results: Any) -> list[tuple[str, str]]:
    return sorted((result.node.document_id, result.text) for result in results)


def test_makers_cover_every_public_retriever() -> None:
    public = [getattr(retrievers, name) for name in retrievers.__all__]
    classes = [item for item in public if isinstance(item, type)]
    names = {item.__name__ for item in classes if issubclass(item, BaseRetriever)}
    assert names - {"BaseRetriever"} <= MAKERS.keys()


@pytest.mark.parametrize("name", MAKERS)
def test_retriever_made_in_call_forgets_its_settings(graph: NodeGraph, name: str) -> None:
    whole = found(MAKERS[name](filled())(QUERY))
    assert {document for document, _ in whole} == {"a", "b", "c"}
    lazy = Lazy(lambda: MAKERS[name](graph))
    with trace() as traced:
        inside = restrict(lazy, {"tenant": "a"}).retrieve(QUERY, max_tokens=4, order="document")
    assert {result.node.document_id for result in inside} == {"a"}
    recorded = str(traced)
    assert lazy.made is not None
    assert found(lazy.made(QUERY)) == whole
    assert str(traced) == recorded


@pytest.mark.parametrize("name", MAKERS)
def test_retriever_made_outside_obeys_later_call(graph: NodeGraph, name: str) -> None:
    search = MAKERS[name](graph)
    lazy = Lazy(lambda: search)
    inside = restrict(lazy, {"tenant": "a"}).retrieve(QUERY)
    assert {result.node.document_id for result in inside} == {"a"}
