"""A retriever that was built in Python, written down: the same when it is opened, or an error."""

import pytest

from nodekin.nodegraph import LLM, Document, NodeGraph, PassageSplitter, split_sentences
from nodekin.retrievers import (
    AutoMergeRetriever,
    Bm25,
    DefaultRetriever,
    FusionRetriever,
    HyDERetriever,
    LinkRetriever,
    QueryEngine,
    RecursiveRetriever,
    Reranker,
    RerankRetriever,
    Retriever,
    RetrieverSettings,
    SubQuestionRetriever,
    WindowRetriever,
    register_reranker,
    register_similarity,
)
from nodekin.retrievers.evaluation import SetupFile, SetupOpener
from nodekin.retrievers.evaluation.setups.describing import describe_setup
from nodekin.retrievers.similarities import registry

MODEL = LLM(lambda prompt: "1. green tea\n2. black tea", "scripted")
MODELS = {"small": MODEL, "scorer": lambda query, texts: [float(len(text)) for text in texts]}
TEXTS = {
    "tea": "Green tea is steamed. It stays green.",
    "black": "Black tea is fermented for hours.",
}


@pytest.fixture
def graph():
    return fresh()


def fresh():
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=id) for id, text in TEXTS.items()])
    return graph


def with_groups(graph):
    graph.create_node_group("passage8", PassageSplitter(8))
    graph.create_node_group("line", split_sentences, parent="passage8")
    return Retriever(graph, "line", target="passage8")


class Shortest:
    name = "shortest"

    def __init__(self, least=0):
        self.least = least

    def rerank(self, results, query):
        results = [result for result in results if len(result.node.text) >= self.least]
        return sorted(results, key=lambda result: len(result.node.text))


def every_second(nodes):
    return nodes[::2]


RETRIEVERS = {
    "words": lambda g: Retriever(
        g, "line", Bm25(k1=1.2), target="ROOT", top_k=9, settings=RetrieverSettings(lift="sum")
    ),
    "default": lambda g: DefaultRetriever(g, top_k=1),
    "fusion": lambda g: FusionRetriever([with_groups(g), Retriever(g, "ROOT")], "relative", [3, 1]),
    "limit": lambda g: RerankRetriever(with_groups(g), Reranker("TokenLimit", max_tokens=9)),
    "scored": lambda g: RerankRetriever(
        with_groups(g), "ModuleReranker", model=MODELS["scorer"], top_k=2
    ),
    "mine": lambda g: RerankRetriever(with_groups(g), Reranker(Shortest(least=9), top_k=2)),
    "function": lambda g: RerankRetriever(
        with_groups(g), Reranker(register_reranker(every_second, batch=True))
    ),
    "references": lambda g: RecursiveRetriever(
        g, ["line"], target="ROOT", references={"mine": with_groups(g)}
    ),
    "recursive": lambda g: RecursiveRetriever(g, ["line", "passage8"], target="ROOT"),
    "merged": lambda g: AutoMergeRetriever(with_groups(g), ratio=0.7),
    "window": lambda g: WindowRetriever(with_groups(g), before=0),
    "hyde": lambda g: HyDERetriever(with_groups(g), MODEL),
    "parts": lambda g: SubQuestionRetriever(with_groups(g), MODEL, limit=2),
    "links": lambda g: LinkRetriever(with_groups(g), g, top_k=3),
    "engine": lambda g: QueryEngine(with_groups(g), MODEL),
}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_what_is_written_returns_the_same_on_another_graph(name, graph):
    with_groups(graph)
    retriever = RETRIEVERS[name](graph)
    text = describe_setup(retriever, name, MODELS).to_toml()
    again = SetupOpener(SetupFile.parse(text, trust_code=True), fresh(), MODELS).open(name)
    if name == "engine":
        assert (
            again.query("Which tea is green?").text == retriever.query("Which tea is green?").text
        )
        return
    for query in ("green tea", "fermented"):
        first, second = (
            [(result.node.text, result.score) for result in one.retrieve(query)]
            for one in (retriever, again)
        )
        assert first == second
        assert first


@pytest.mark.parametrize("words", ["bm25", Bm25(k1=0.9)])
def test_the_words_of_the_default_retriever_are_written_down(words, graph):
    retriever = DefaultRetriever(graph, words=words)
    text = describe_setup(retriever).to_toml()
    assert ("k1 = 0.9" in text) == (words != "bm25")
    again = SetupOpener(SetupFile.parse(text), fresh()).open()
    first, second = (
        [(result.node.text, result.score) for result in one.retrieve("steamed tea")]
        for one in (retriever, again)
    )
    assert first == second


def test_words_that_no_file_can_name_are_an_error(graph, monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", {})

    @register_similarity
    def common(query, node):
        return float(len(set(query) & set(node.text)))

    with pytest.raises(ValueError, match=r"the DefaultRetriever, words is .* can't say"):
        describe_setup(DefaultRetriever(graph, words="common"))


def halves(text):
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def test_a_transform_of_ones_own_is_named_by_its_module(graph):
    graph.create_node_group("half", halves)
    text = describe_setup(Retriever(graph, "half")).to_toml()
    assert f'transform = "{halves.__module__}:halves"' in text
    with pytest.raises(ValueError, match="names the code"):
        SetupFile.parse(text)
    opened = SetupOpener(SetupFile.parse(text, trust_code=True), fresh()).open()
    assert [result.node.text for result in opened.retrieve("hours")] == [TEXTS["black"][16:]]


class Other:
    name = "mine"

    def retrieve(self, query, *, top_k=None, filters=None):
        return []

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return []


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda g: Other(), "the Other is no retriever that a file can declare"),
        (lambda g: FusionRetriever([Other(), Retriever(g, "ROOT")]), "retrievers is no retriever"),
        (
            lambda g: HyDERetriever(Retriever(g, "ROOT"), lambda prompt: ""),
            "needs a name: give mod",
        ),
        (lambda g: Retriever(g, "lambda"), "the group 'lambda' is made by <function"),
        (lambda g: Retriever([g, fresh()], "ROOT"), "a set-up searches one graph"),
    ],
)
def test_what_can_not_be_written_is_named(make, error, graph):
    graph.create_node_group("lambda", lambda text: [text])
    with pytest.raises(ValueError, match=error):
        describe_setup(make(graph), models={"small": MODEL})
