"""Programs as LangChain's users write them, with nodekin in the place of LangChain's own part."""

import asyncio
import copy
import json
import pickle
from typing import ClassVar

import pytest
from blockbuster import blockbuster_ctx
from concurrency_gauge import ConcurrencyGauge
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableParallel
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_runs import FinishedRuns
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
from letters import Letters
from pydantic import Field

from nodekin.adapters.langchain import (
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    NodeTextSplitter,
    answer_tool,
    as_transform,
    decompose_query,
    retriever_tool,
    rewrite_query,
)
from nodekin.nodegraph import Embedder, EmbeddingError, LLMExtractor, NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, QueryEngine, Reranker, Retriever
from nodekin.retrievers.strategies.strategy_registry import (
    make_strategy,
    make_transform,
    simple_strategies,
)

LOADED = [
    Document("Green tea is steamed.", metadata={"source": "docs/tea.md", "page": 1}, id="1"),
    Document("Black tea is fermented.", metadata={"source": "docs/tea.md"}, id="2"),
    Document("红茶是发酵的。", metadata={"source": "docs/zh.md", "tags": ["茶"]}, id="3"),
    Document("Coffee is roasted.", metadata={"source": "docs/coffee.md", "score": 7}, id="4"),
]

QUERIES = ["What is tea?", "tea, black or green", "fermented leaves"]


@pytest.fixture
def theirs():
    store = InMemoryVectorStore(Letters())
    store.add_documents(LOADED)
    return store.as_retriever(search_kwargs={"k": 3})


@pytest.fixture
def graph():
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(LOADED)
    return graph


@pytest.fixture
def ours(graph):
    return NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine", top_k=3))


def phrasings():
    return FakeListChatModel(responses=["\n".join(QUERIES)])


def unique_union(rankings):
    """As in LangChain's "RAG from scratch"."""
    flat = [dumps(document) for ranking in rankings for document in ranking]
    return list(dict.fromkeys(flat))


def rag_fusion(rankings, k=60):
    """As in LangChain's "RAG fusion"."""
    scores = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking):
            text = dumps(document)
            scores[text] = scores.get(text, 0) + 1 / (rank + k)
    return sorted(scores.items(), key=lambda item: -item[1])


def test_d1_a_document_is_the_same_whatever_the_query(ours, theirs):
    for query in QUERIES:
        assert ours.invoke(query) == theirs.invoke(query)


def test_d1_langchains_multi_query_sees_that_documents_are_the_same(ours, theirs):
    found = MultiQueryRetriever.from_llm(retriever=ours, llm=phrasings()).invoke("tea")
    assert len({document.id for document in found}) == len(found)
    assert found == MultiQueryRetriever.from_llm(retriever=theirs, llm=phrasings()).invoke("tea")


@pytest.mark.parametrize("fuse", [unique_union, rag_fusion])
def test_d1_dumps_of_a_document_is_a_key(ours, theirs, fuse):
    assert fuse(ours.map().invoke(QUERIES)) == fuse(theirs.map().invoke(QUERIES))


def test_d1_langchains_ensemble_merges_with_its_own_retrievers(ours, theirs):
    both = EnsembleRetriever(retrievers=[ours, theirs], weights=[0.5, 0.5])
    assert both.invoke("green tea") == theirs.invoke("green tea")


def test_d1_documents_are_as_large_in_json_as_langchains(ours, theirs):
    def size(documents):
        return len(json.dumps([document.model_dump() for document in documents]))

    assert size(ours.invoke("tea")) == size(theirs.invoke("tea"))


def test_d1_a_field_of_one_document_does_not_come_into_another(ours):
    by_id = {document.id: document.metadata for document in ours.invoke("tea")}
    assert by_id == {d.id: d.metadata for d in LOADED if d.id in by_id}
    assert len({frozenset(metadata) for metadata in by_id.values()}) > 1


@pytest.mark.parametrize("put", ["graph", "store", "index"])
@pytest.mark.parametrize("details", [False, True, "nested"])
@pytest.mark.parametrize("copied", [None, copy.deepcopy, copy.copy, "pickled", "reranked"])
def test_d1_an_edited_hit_that_is_put_back_pollutes_nothing(graph, put, details, copied):
    """The details that were asked for are not put back, what was edited is."""
    search = Retriever(graph, "ROOT", "bm25", top_k=3)
    (hit,) = NodeGraphRetriever(retriever=search, details=details).invoke("steamed", k=1)
    added = {False: set(), True: {"evidence", "start", "end"}, "nested": {"nodekin"}}[details]
    assert added <= hit.metadata.keys() - LOADED[0].metadata.keys()
    if copied == "pickled":
        hit = pickle.loads(pickle.dumps(hit))
    elif copied == "reranked":
        model = Reranker("ModuleReranker", model=lambda query, texts: [1.0] * len(texts))
        reranker = NodeGraphReranker(reranker=model, score_key="relevance_score")
        (hit,) = reranker.compress_documents([hit], "steamed")
        assert hit.metadata["relevance_score"] == 1.0
    elif copied:
        hit = copied(hit)
    hit.page_content = "Green tea is steamed, and dried."
    hit.metadata["checked"] = True
    add = {
        "graph": graph.add,
        "store": NodeGraphVectorStore(graph).add_documents,
        "index": NodeGraphIndex(graph=graph).upsert,
    }[put]
    add([hit])
    assert len(graph.nodes("ROOT")) == len(LOADED)
    node = graph.node("1")
    metadata = {**LOADED[0].metadata, "checked": True}
    assert (node.text, node.metadata) == (hit.page_content, metadata)


def test_d1_an_edited_piece_of_a_document_is_refused(graph):
    graph.create_node_group("sentence", split_sentences)
    (hit,) = NodeGraphRetriever(retriever=Retriever(graph, "sentence")).invoke("roasted")
    with pytest.raises(ValueError, match="taken by a node of group 'sentence'"):
        graph.add(hit)


def test_d1_every_face_returns_the_documents_as_they_were_added(graph, ours):
    by_id = {document.id: document for document in LOADED}
    query = "green tea"
    artifact = retriever_tool(ours, "search", "Search.").invoke(
        {"name": "search", "args": {"query": query}, "id": "1", "type": "tool_call"}
    )
    reranker = NodeGraphReranker(
        reranker=Reranker("ModuleReranker", model=lambda query, texts: [len(t) for t in texts])
    )
    for documents in (
        NodeGraphVectorStore(graph).similarity_search(query),
        NodeGraphIndex(graph=graph).invoke(query),
        reranker.compress_documents(LOADED, query),
        artifact.artifact,
    ):
        assert documents
        assert documents == [by_id[document.id] for document in documents]


# Models and prompts of a program that exists


class Recording(FakeListChatModel):
    """A chat model that shows what it was sent."""

    sent: list = Field(default_factory=list)

    def _call(self, messages, *args, **kwargs):
        self.sent.append([(message.type, message.content) for message in messages])
        return super()._call(messages, *args, **kwargs)

    def _stream(self, messages, *args, **kwargs):
        self.sent.append([(message.type, message.content) for message in messages])
        yield from super()._stream(messages, *args, **kwargs)

    async def _astream(self, messages, *args, **kwargs):
        for chunk in self._stream(messages, *args, **kwargs):
            yield chunk


class Broken(FakeListChatModel):
    def _call(self, *args, **kwargs):
        raise ConnectionError("the first model is down")


@pytest.fixture
def fallback():
    answering = FakeListChatModel(responses=["Which tea is green?"])
    return Broken(responses=[""]).with_fallbacks([answering])


@pytest.mark.parametrize(
    "name", [name for name, s in simple_strategies().items() if s.transform] + ["router"]
)
async def test_d4_a_model_with_fallbacks_in_every_transform(fallback, name):
    options = {"routes": {"Which tea is green?": "tea"}} if name == "router" else {}
    if name == "hyde":
        fallback.fallbacks[0].responses[0] = "Green tea is steamed."
    transform = make_transform(name, fallback, on_error="raise", **options)
    assert fallback.fallbacks[0].responses[0] in transform.transform("tea?")
    assert fallback.fallbacks[0].responses[0] in await transform.atransform("tea?")


@pytest.mark.parametrize("name", simple_strategies())
def test_d4_a_model_with_fallbacks_in_every_strategy(graph, fallback, name):
    if name == "hyde":  # takes a passage and no question
        fallback.fallbacks[0].responses[0] = "Green tea is steamed."
    inner = Retriever(graph, "ROOT", "cosine")
    retriever = make_strategy(name, inner, fallback, on_error="raise")
    assert NodeGraphRetriever(retriever=retriever).invoke("Is tea green, and is coffee?")


def test_d4_a_model_with_fallbacks_in_an_engine_and_an_extractor(graph, fallback):
    engine = NodeGraphQueryEngine(engine=QueryEngine(Retriever(graph, "ROOT"), fallback))
    assert engine.invoke("green tea") == "Which tea is green?"
    assert "".join(engine.stream("green tea")) == "Which tea is green?"
    graph.create_node_group("question", LLMExtractor(fallback, "questions"))
    assert {node.text for node in graph.nodes("question")} == {"Which tea is green?"}


TEMPLATES = [
    "Search for: {question}",
    "Search for: {query}",
    PromptTemplate.from_template("Search for: {question}"),
    ChatPromptTemplate.from_template("Search for: {question}"),
    ChatPromptTemplate([("system", "You search."), ("human", "Search for: {question}")]),
]


@pytest.mark.parametrize("name", [name for name in simple_strategies() if name != "multi_step"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_d11_langchains_prompts_in_every_strategy(graph, template, name):
    model = Recording(responses=["Which tea is green?"])
    inner = Retriever(graph, "ROOT", "cosine")
    retriever = make_strategy(name, inner, model, prompt=template)
    assert NodeGraphRetriever(retriever=retriever).invoke("tea?")
    *system, (role, text) = model.sent[0]
    assert (role, text) == ("human", "Search for: tea?")
    assert system == ([("system", "You search.")] if template is TEMPLATES[-1] else [])


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_d11_langchains_prompt_in_a_query_engine(graph, way):
    """As in LangChain's RAG tutorials."""
    prompt = ChatPromptTemplate(
        [
            ("system", "Use the context to answer.\n\n{context}"),
            ("human", "{input}"),
        ]
    )
    model = Recording(responses=["It is steamed."])
    search = Retriever(graph, "ROOT", "bm25", top_k=1)
    engine = QueryEngine(search, model, prompts={"answer": prompt})
    answers = NodeGraphQueryEngine(engine=engine)
    call = getattr(answers, way)("green tea")
    if way == "astream":
        answer = "".join([text async for text in call])
    else:
        answer = "".join(call if way in ("invoke", "stream") else await call)
    assert answer == "It is steamed."
    (((system, context), (human, question)),) = model.sent
    assert (system, human, question) == ("system", "human", "green tea")
    assert context.startswith("Use the context to answer.\n\n")
    assert "Green tea is steamed." in context


def test_d11_langchains_prompt_in_an_extractor(graph):
    prompt = ChatPromptTemplate([("system", "Summarize."), ("human", "{context}")])
    model = Recording(responses=["A summary."])
    graph.create_node_group("summary", LLMExtractor(model, "summary", prompt=prompt))
    assert {node.text for node in graph.nodes("summary")} == {"A summary."}
    assert sorted(text for _, (_, text) in model.sent) == sorted(d.page_content for d in LOADED)


def test_d11_langchains_prompt_in_a_step_of_a_chain():
    model = Recording(responses=["green tea"])
    step = rewrite_query(model, prompt=TEMPLATES[-1])
    assert step.invoke("gren tea") == "green tea"
    assert model.sent == [[("system", "You search."), ("human", "Search for: gren tea")]]


def test_d11_a_prompt_without_a_place_for_the_query_says_what_to_write():
    with pytest.raises(ValueError, match=r"no place for 'query'; write \{query\} in it"):
        rewrite_query(Recording(responses=[""]), prompt=PromptTemplate.from_template("Search."))
    with pytest.raises(ValueError, match=r"a place 'topic', which nothing fills; .*\.partial\("):
        rewrite_query(
            Recording(responses=[""]), prompt=PromptTemplate.from_template("{topic} {query}")
        )


# Config


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2, None])
async def test_d9_max_concurrency_holds_for_the_model_calls_of_an_answer(way, limit):
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document(f"{name} tea is a drink.", metadata={"source": f"{name}.md"})
            for name in ("Green", "Black", "White", "Red")
        ]
    )
    gauge = ConcurrencyGauge(least=limit or 4)
    engine = QueryEngine(Retriever(graph, "ROOT"), gauge, "map_reduce")
    runnable = NodeGraphQueryEngine(engine=engine)
    call = getattr(runnable, way)("tea", {"max_concurrency": limit} if limit else {})
    assert call if way == "invoke" else await call
    assert gauge.calls == 5
    assert gauge.most == (limit or 4)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2, None])
async def test_d9_max_concurrency_holds_for_the_branches_of_a_fusion(way, limit):
    gauge = ConcurrencyGauge(least=limit or 8)
    retriever = NodeGraphRetriever(retriever=FusionRetriever([gauge] * 8))
    call = getattr(retriever, way)("tea", {"max_concurrency": limit} if limit else {})
    assert (call if way == "invoke" else await call) == []
    assert gauge.calls == 8
    assert gauge.most == (limit or 8)


class Gauged(BaseRetriever):
    """A retriever of LangChain's that counts how many of its calls run at once."""

    gauge: object

    def _get_relevant_documents(self, query, *, run_manager):
        return self.gauge.retrieve(query)

    async def _aget_relevant_documents(self, query, *, run_manager):
        return await self.gauge.aretrieve(query)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2])
async def test_d9_max_concurrency_holds_for_langchains_own_retrievers(way, limit):
    """As for branches of a chain of LangChain, which in async code are not limited."""
    config = {"max_concurrency": limit}
    for make in (
        lambda branch: NodeGraphRetriever(retriever=FusionRetriever([branch] * 8)),
        lambda branch: RunnableParallel({str(n): branch for n in range(8)}),
    ):
        gauge = ConcurrencyGauge(least=limit)
        runnable = make(Gauged(gauge=gauge))
        if way == "invoke":
            runnable.invoke("tea", config)
        elif isinstance(runnable, BaseRetriever):
            await runnable.ainvoke("tea", config)
        else:
            continue
        assert (gauge.calls, gauge.most) == (8, limit)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_d9_max_concurrency_holds_for_all_branches_and_sub_questions_together(way):
    gauge = ConcurrencyGauge()
    phrases = [FakeListChatModel(responses=["One tea?\nTwo teas?\nMany teas?"]) for _ in range(3)]
    searches = [make_strategy("multi_query", gauge, model) for model in phrases]
    retriever = NodeGraphRetriever(retriever=FusionRetriever(searches))
    call = getattr(retriever, way)("tea", {"max_concurrency": 4})
    assert (call if way == "invoke" else await call) == []
    assert gauge.calls == 12
    assert gauge.most <= 4


# What a trace, or a page that shows sources, sees


class Retrievals(BaseCallbackHandler):
    """Notes the query and the documents of each retriever run, as pages that show sources do."""

    def __init__(self):
        self.queries, self.ended = {}, []

    def on_retriever_start(self, serialized, query, *, run_id, name=None, **kwargs):
        self.queries[run_id] = (name, query)

    def on_retriever_end(self, documents, *, run_id, **kwargs):
        self.ended.append((*self.queries[run_id], documents))


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_d6_a_query_engine_has_one_retriever_run_with_its_documents(graph, way):
    model = FakeListChatModel(responses=["It is steamed [1]."])
    engine = QueryEngine(Retriever(graph, "ROOT", "bm25", top_k=2), model)
    answers = NodeGraphQueryEngine(engine=engine, output="dict")
    seen = Retrievals()
    call = getattr(answers, way)("green tea", {"callbacks": [seen]})
    if way == "astream":
        chunks = [chunk async for chunk in call]
    else:
        chunks = list(call) if way == "stream" else [call if way == "invoke" else await call]
    (context,) = (chunk["context"] for chunk in chunks if "context" in chunk)
    assert seen.ended == [("retrieve", "green tea", context)]


async def test_d6_events_can_be_filtered_by_retrievers(graph):
    model = FakeListChatModel(responses=["It is steamed [1]."])
    answers = NodeGraphQueryEngine(engine=QueryEngine(Retriever(graph, "ROOT"), model))
    events = [
        event
        async for event in answers.astream_events(
            "green tea", version="v2", include_types=["retriever"]
        )
    ]
    assert [event["event"] for event in events] == ["on_retriever_start", "on_retriever_end"]
    assert events[1]["data"]["output"][0] == LOADED[0]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_d6_a_fusion_shows_what_each_branch_found_as_langchains_does(graph, way):
    searches = [Retriever(graph, "ROOT", name, top_k=2) for name in ("bm25", "cosine")]
    branches = [NodeGraphRetriever(retriever=search) for search in searches]
    theirs = EnsembleRetriever(retrievers=branches, weights=[0.5, 0.5])
    ours = NodeGraphRetriever(retriever=FusionRetriever(searches))
    seen = {}
    for name, retriever in (("theirs", theirs), ("ours", ours)):
        handler = Retrievals()
        call = getattr(retriever, way)("green tea", {"callbacks": [handler]})
        documents = call if way == "invoke" else await call
        *branch_runs, (_, _, fused) = handler.ended
        assert fused == documents
        seen[name] = sorted([d.id for d in found] for _, _, found in branch_runs)
    assert seen["ours"] == seen["theirs"]
    assert len(seen["ours"]) == 2


def test_d6_each_phrasing_of_a_strategy_shows_what_it_found(graph):
    model = FakeListChatModel(responses=["steamed tea\nroasted beans"])
    strategy = make_strategy("multi_query", Retriever(graph, "ROOT", "bm25"), model)
    seen = Retrievals()
    NodeGraphRetriever(retriever=strategy).invoke("drinks", {"callbacks": [seen]})
    by_query = {query: [d.id for d in found] for name, query, found in seen.ended[:-1]}
    assert by_query == {"drinks": [], "steamed tea": ["1", "2"], "roasted beans": ["4"]}


def test_d6_a_single_search_shows_its_documents_once(ours):
    seen = Retrievals()
    documents = ours.invoke("tea", {"callbacks": [seen]})
    assert seen.ended == [("NodeGraphRetriever", "tea", documents)]


def test_d6_a_batch_shows_the_documents_of_each_query(ours):
    seen = Retrievals()
    rankings = ours.batch(["tea", "coffee"], {"callbacks": [seen]})
    assert [(query, found) for _, query, found in seen.ended] == [
        ("tea", rankings[0]),
        ("coffee", rankings[1]),
    ]


def test_d6_a_search_that_fails_ends_its_run(graph):
    class Failing(BaseCallbackHandler):
        errors: ClassVar[list] = []

        def on_retriever_error(self, error, *, run_id, **kwargs):
            self.errors.append(str(error))

    class Down:
        def retrieve(self, query, *, top_k=None, filters=None):
            raise ConnectionError("down")

        async def aretrieve(self, query, *, top_k=None, filters=None):
            raise ConnectionError("down")

    answers = NodeGraphQueryEngine(engine=QueryEngine(Down(), FakeListChatModel(responses=["x"])))
    with pytest.raises(ConnectionError):
        answers.invoke("tea", {"callbacks": [Failing()]})
    assert Failing.errors == ["down"]


# Inputs


@pytest.fixture
def answers(graph):
    model = FakeListChatModel(responses=["It is steamed [1]."])
    return NodeGraphQueryEngine(engine=QueryEngine(Retriever(graph, "ROOT", "bm25"), model))


@pytest.mark.parametrize(
    "given",
    [
        "green tea",
        {"question": "green tea"},
        {"input": "green tea", "chat_history": []},
        {"messages": [HumanMessage("green tea")]},
        [HumanMessage("green tea")],
        [("human", "green tea")],
        HumanMessage("green tea"),
        ChatPromptTemplate.from_template("{x}").invoke({"x": "green tea"}),
        PromptTemplate.from_template("{x}").invoke({"x": "green tea"}),
    ],
)
def test_d8_inputs_are_validated_as_a_host_does(answers, given):
    validated = answers.get_input_schema().model_validate(given).root
    assert validated == given
    assert answers.invoke(validated) == "It is steamed [1]."
    assert answers.get_input_jsonschema()["anyOf"]


@pytest.mark.filterwarnings("ignore:This API is in beta")
async def test_d8_an_engine_is_a_tool(answers):
    tool = answers.as_tool(name="ask_tea", description="About tea.")
    assert list(tool.args) == ["question"]
    assert tool.invoke({"question": "green tea"}) == "It is steamed [1]."
    assert await tool.ainvoke({"question": "green tea"}) == "It is steamed [1]."


async def test_d8_an_engine_is_a_node_of_a_langgraph_graph(answers):
    langgraph = pytest.importorskip("langgraph.graph", reason="the test needs langgraph")
    steps = langgraph.StateGraph(langgraph.MessagesState)
    steps.add_node("answer", answers | (lambda text: {"messages": [("ai", text)]}))
    steps.add_edge(langgraph.START, "answer")
    app = steps.compile()
    state = {"messages": [("human", "Hello."), ("ai", "Hello."), ("human", "green tea")]}
    for result in (app.invoke(state), await app.ainvoke(state)):
        assert result["messages"][-1].content == "It is steamed [1]."


# What loaders and splitters write


def test_d7_sources_are_titles_and_citations(graph, answers):
    full = answers.model_copy(update={"output": "dict"})
    answer = full.invoke("green tea")
    assert next(source["title"] for source in answer["sources"]) == "tea.md"
    tool = answer_tool(answers, "ask_tea", "About tea.")
    assert tool.invoke({"question": "green tea"}).endswith("Sources:\n[1] tea.md")


def test_d7_the_passages_of_a_prompt_are_named_by_their_source(graph):
    model = Recording(responses=["It is steamed [1]."])
    QueryEngine(Retriever(graph, "ROOT", "bm25", top_k=1), model).query("green tea")
    assert "[1] tea.md\n" in model.sent[0][0][1]


def test_d7_file_patterns_match_sources(graph):
    graph.add(
        [
            Document("a,b", metadata={"source": "https://example.com/data/tea.csv?raw=1"}),
            Document("Rivers run.", metadata={"source": "notes/rivers.txt"}),
        ]
    )
    graph.create_node_group(
        "part",
        [
            ("docs/zh*", lambda text: [f"zh {text}"]),
            ("*.md", lambda text: [f"md {text}"]),
            ("*.csv", lambda text: [f"csv {text}"]),
            ("*", lambda text: [f"other {text}"]),
        ],
    )
    texts = [node.text for node in graph.nodes("part")]
    assert [text.split()[0] for text in texts] == ["md", "md", "zh", "md", "csv", "other"]


def test_d7_a_changed_source_changes_the_pattern():
    graph = NodeGraph(progress=False)
    rules = [("*.md", lambda text: ["md"]), ("*", lambda text: ["other"])]
    graph.create_node_group("sentence", split_sentences)
    graph.create_node_group("part", rules, parent="sentence")
    for name, text in (("tea.md", "md"), ("tea.txt", "other"), ("tea.md", "md")):
        graph.add(Document("Tea.", id="tea", metadata={"source": name}))
        assert [node.text for node in graph.nodes("part")] == [text]


def test_d7_headers_of_langchains_markdown_splitter_are_headings():
    text = "# Tea\n\nAll of it.\n\n## Green\n\nIt is steamed.\n\n## Black\n\nIt is fermented."
    splitter = MarkdownHeaderTextSplitter([("#", "Header 1"), ("##", "Header 2")])
    graph = NodeGraph(progress=False)
    graph.add([Document(text, metadata={"source": "docs/tea.md"}), *splitter.split_text(text)])
    graph.create_node_group("section", as_transform(splitter))
    for group in ("section", "ROOT"):
        search = Retriever(graph, group, "bm25", top_k=1)
        model = Recording(responses=["Steamed [1]."])
        answer = QueryEngine(search, model).query("Green, and how is it steamed?")
        assert answer.sources[0].title.endswith("Tea › Green")
    # The heading is searched with the text, which does not repeat it.
    (result,) = Retriever(graph, "section", "bm25", top_k=1).retrieve("green")
    assert result.node.text == "It is steamed."


# Words


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"k": 0}, ValueError, "^k must be 1 or more, not 0"),
        ({"k": "3"}, TypeError, "^k is a whole number, not '3'"),
        ({"child_k": 0}, ValueError, "^child_k must be 1 or more"),
        ({"score_threshold": "a"}, TypeError, "^score_threshold is a number, not 'a'"),
        ({"kk": 1}, TypeError, r"no argument 'kk'; there is k, child_k, filter, score_threshold"),
        ({"top_k": 1}, TypeError, r"no argument 'top_k'; there is k, "),
    ],
)
async def test_d11_errors_of_a_retriever_are_in_langchains_words(ours, arguments, error, says):
    with pytest.raises(error, match=says):
        ours.invoke("tea", **arguments)
    with pytest.raises(error, match=says):
        await ours.ainvoke("tea", **arguments)
    with pytest.raises(error, match=says):
        ours.batch(["tea", "coffee"], **arguments)


def test_d11_errors_of_an_engine_and_a_store_are_in_langchains_words(answers, graph):
    store = NodeGraphVectorStore(graph)
    for call in (answers.invoke, store.similarity_search, store.max_marginal_relevance_search):
        with pytest.raises(ValueError, match=r"^k must be 1 or more, not 0"):
            call("tea", k=0)
        with pytest.raises(TypeError, match=r"no argument 'kk'; there is k, .*filter"):
            call("tea", kk=1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda made: made.from_documents(LOADED, None, collection_name="a"),
         r"^from_documents\(\) has no argument 'collection_name'; there is ids, store, group"),
        (lambda made: made.from_texts(["a"], None, persist_directory="./db"),
         r"^from_texts\(\) has no argument 'persist_directory'; there is ids, store, group"),
        (lambda made: made.from_documents(LOADED).as_retriever(k=1),
         r"^as_retriever\(\) has no argument 'k'; there is search_type, search_kwargs"),
        (lambda made: made.from_documents(LOADED).similarity_search("a", score_threshold=0.5),
         r"^similarity_search\(\) has no argument 'score_threshold'; there is k, filter"),
        (lambda made: made.from_documents(LOADED[0]), r"a list of LangChain documents, .*write \["),
        (lambda made: made.from_texts("tea"), r"^texts is a list of texts, not 'tea'"),
    ],
)  # fmt: skip
def test_d11_first_lines_of_other_stores_are_errors_that_say_what_there_is(call, says):
    """LangChain's own stores pass over some of them, or take a text for its letters."""
    with pytest.raises(TypeError, match=says):
        call(NodeGraphVectorStore)


async def test_d11_a_vector_store_of_documents_needs_no_model():
    for store in (
        NodeGraphVectorStore.from_documents(LOADED),
        await NodeGraphVectorStore.afrom_documents(LOADED),
        NodeGraphVectorStore.from_documents(LOADED, Letters(), target="ROOT"),
    ):
        assert store.similarity_search("coffee roasted", k=1) == [LOADED[3]]
    theirs = InMemoryVectorStore.from_documents(LOADED, Letters())
    ours = NodeGraphVectorStore.from_documents(LOADED, Letters())
    assert ours.similarity_search("tea") == theirs.similarity_search("tea")


def test_a_starred_line_between_numbered_ones_is_a_sub_question():
    model = FakeListChatModel(responses=["1. What is tea?\n* What is coffee?\n2. What is milk?"])
    questions = decompose_query(model).invoke("What are tea, coffee and milk?")
    assert questions == ["What is tea?", "What is coffee?", "What is milk?"]


@pytest.mark.parametrize("size", [40, 1000])
def test_the_size_of_a_chunk_is_in_characters_as_in_langchains_splitters(size):
    text = "Green tea is steamed, and black tea is fermented. " * 60
    theirs = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0)
    ours = NodeTextSplitter(chunk_size=size, chunk_overlap=0)
    for splitter in (theirs, ours):
        chunks = splitter.split_text(text)
        assert all(len(chunk) <= size for chunk in chunks)
        assert max(map(len, chunks)) > size / 2


# Embeddings


class AsyncLetters(Embeddings):
    """A model whose client is async only."""

    def __init__(self):
        self.passages = []

    def embed_documents(self, texts):
        raise NotImplementedError("async only")

    def embed_query(self, text):
        raise NotImplementedError("async only")

    async def aembed_documents(self, texts):
        await asyncio.sleep(0)
        self.passages += texts
        return Letters().embed_documents(texts)

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return Letters().embed_query(text)


async def test_d10_async_only_embeddings_work_as_in_langchains_store():
    model = AsyncLetters()
    theirs = InMemoryVectorStore(AsyncLetters())
    await theirs.aadd_documents(LOADED)
    store = NodeGraphVectorStore(NodeGraph(embed=model))
    await store.aadd_documents(LOADED)
    with blockbuster_ctx():
        assert await store.asimilarity_search("tea") == await theirs.asimilarity_search("tea")
        vector = Letters().embed_query("coffee")
        found = await store.asimilarity_search_by_vector(vector, k=1)
        assert found == await theirs.asimilarity_search_by_vector(vector, k=1)
        assert await store.amax_marginal_relevance_search("tea", k=2, fetch_k=4)
    assert sorted(model.passages) == sorted(document.page_content for document in LOADED)


async def test_d10_passages_are_embedded_once_however_many_ask():
    model = AsyncLetters()
    graph = NodeGraph(embed=Embedder(model, batch_size=2), progress=False)
    graph.add(LOADED)
    graph.create_node_group("sentence", split_sentences)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "sentence", "cosine", target="ROOT"))
    await asyncio.gather(*(retriever.ainvoke(query) for query in QUERIES))
    assert len(model.passages) == len(set(model.passages)) == len(LOADED)
    graph.add(Document("Milk is white.", id="5"))
    (hit,) = await retriever.ainvoke("milk is white", k=1)
    assert hit.id == "5"
    assert len(await retriever.abatch(QUERIES)) == len(QUERIES)
    assert model.passages[-1] == "Milk is white."
    assert len(model.passages) == len(LOADED) + 1


async def test_d10_a_trace_has_one_search_that_does_not_fail():
    graph = NodeGraph(embed=AsyncLetters(), progress=False)
    graph.add(LOADED)
    tracer = FinishedRuns()
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine"))
    await retriever.ainvoke("tea", {"callbacks": [tracer]})
    assert [(run.name, run.error) for run in tracer.roots[0].child_runs] == [("search", None)]


async def test_d10_a_model_that_fails_is_named_and_asked_again():
    class Failing(AsyncLetters):
        fails = True

        async def aembed_documents(self, texts):
            if self.fails:
                raise ConnectionError("down")
            return await super().aembed_documents(texts)

    model = Failing()
    graph = NodeGraph(embed=model, progress=False)
    graph.add(LOADED)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine"))
    with pytest.raises(EmbeddingError, match=r"Failing.* failed on 4 texts.*ConnectionError: down"):
        await retriever.ainvoke("tea")
    model.fails = False
    assert await retriever.ainvoke("tea")


def test_d10_sync_code_says_that_the_model_is_async_only():
    graph = NodeGraph(embed=AsyncLetters(), progress=False)
    graph.add(LOADED)
    with pytest.raises(EmbeddingError, match="async only"):
        NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine")).invoke("tea")


async def test_d10_an_async_function_embeds_in_both_kinds_of_code():
    async def embed(texts):
        await asyncio.sleep(0)
        return Letters().embed_documents(texts)

    graph = NodeGraph(embed=Embedder(embed, "letters"), progress=False)
    graph.add(LOADED)
    search = Retriever(graph, "ROOT", "cosine")
    found = [result.node.id for result in await search.aretrieve("green tea")]
    other = NodeGraph(embed=Embedder(embed, "letters"), progress=False)
    other.add(LOADED)
    alone = Retriever(other, "ROOT", "cosine")
    assert [result.node.id for result in alone.retrieve("green tea")] == found
