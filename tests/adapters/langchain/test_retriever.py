"""NodeGraphRetriever: arguments, documents, and the methods of a Runnable."""

import asyncio
import pickle
import threading

import pytest
from blockbuster import blockbuster_ctx
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import MultiVectorRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableLambda,
)
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.stores import InMemoryStore
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError
from support import langchain_peers as peers
from support.langchain_peers import ids, plain_retriever, texts
from support.langchain_runs import call
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.langchain.documents import to_document
from nodekin.nodegraph import Node, NodeGraph, UnknownGroupError
from nodekin.retrievers import (
    FusionRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    ScoredNode,
)

QUESTION = "Which tea is fermented?"


def equal_scores(query, passages):
    return [1.0] * len(passages)


async def test_documents_equal_native_results(native, mode):
    found = native.retrieve(QUESTION)
    documents = await call(plain_retriever(native, score_key="score"), mode, QUESTION)
    assert ids(documents) == [each.node.id for each in found]
    assert texts(documents) == [each.node.content for each in found]
    assert [d.metadata["score"] for d in documents] == [each.score for each in found]


async def test_k_limits_documents(native, mode):
    for k, of_call, expected in ((2, {}, 2), (2, {"k": 1}, 1), (2, {"k": 3}, 3), (None, {}, 3)):
        assert len(await call(plain_retriever(native, k=k), mode, "tea", **of_call)) == expected


async def test_filter_of_call_is_added(native, mode):
    tea, others = {"topic": "tea"}, {"topic": ["rivers", "printing"]}
    for filter, of_call, query, expected in (
        (tea, None, "tea", ["tea"]),
        (tea, others, "tea", []),
        (tea, {"topic": ["rivers", "tea"]}, "tea", ["tea"]),
        (others, None, "tea", ["rivers", "press"]),
        (tea, {"language": "zh"}, "茶", ["茶"]),
    ):
        found = await call(plain_retriever(native, filter=filter), mode, query, filter=of_call)
        assert ids(found) == expected


async def test_score_threshold_drops_low_scores(native, mode):
    found = native.retrieve("tea by rivers")
    best = found[0].score
    assert best > found[-1].score
    retriever = plain_retriever(native, score_threshold=best)
    for of_call, expected in ((None, 1), (-1, len(found)), (best + 1, 0)):
        documents = await call(retriever, mode, "tea by rivers", score_threshold=of_call)
        assert len(documents) == expected


def test_score_threshold_without_results_is_logged_once(native, caplog):
    for _ in range(2):
        assert plain_retriever(native, score_threshold=77.5).invoke("tea by rivers") == []
    (message,) = caplog.messages
    assert message.endswith(", below the minimum score 77.5")


async def test_fetch_k_limits_hits_before_lifting(native, mode):
    for k, fetch_k, of_call, expected in (
        (1, None, {}, [("tea", 1)]),
        (1, 3, {}, [("tea", 3)]),
        (1, 3, {"k": 9, "fetch_k": 1}, [("tea", 1)]),
    ):
        retriever = plain_retriever(native, evidence=True, k=k, fetch_k=fetch_k)
        documents = await call(retriever, mode, QUESTION, **of_call)
        assert [(d.id, len(d.metadata["evidence"])) for d in documents] == expected


async def test_call_arguments_reach_inner_retrievers(native, graph, mode):
    fusion = FusionRetriever(
        [
            native,
            Retriever(graph, "sentence", target="ROOT", lift="sum"),
        ]
    )
    retriever = plain_retriever(RerankRetriever(fusion, "ModuleReranker", model=equal_scores))
    assert ids(await call(retriever, mode, QUESTION, k=5, fetch_k=1)) == ["tea"]
    others = {"filter": {"topic": ["rivers", "printing"]}}
    assert len(await call(retriever, mode, "tea", k=1, **others)) == 1
    assert {*ids(await call(retriever, mode, "tea", k=9, **others))} == {"rivers", "press"}


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"k": 0}, ValueError, "^k must be 1 or more, got 0"),
        ({"k": "3"}, TypeError, "^k must be an integer, got '3'"),
        ({"k": True}, TypeError, "^k must be an integer, got True"),
        ({"fetch_k": 0}, ValueError, "must be 1 or more"),
        ({"score_threshold": "a"}, TypeError, "^score_threshold must be a number or None, got 'a'"),
        (
            {"score_threshold": float("nan")},
            ValueError,
            "must be a number, got nan",
        ),
        ({"filter": "topic"}, TypeError, "filters map metadata fields"),
        ({"kk": 1}, TypeError, r"no argument 'kk'; it has 'k', 'fetch_k', 'filter'"),
        ({"top_k": 1}, TypeError, "invoke has no argument 'top_k'; use k="),
    ],
)
async def test_wrong_call_arguments_raise(retriever, arguments, error, says, mode):
    with pytest.raises(error, match=says):
        await call(retriever, mode, "tea", **arguments)
    with pytest.raises(error, match=says):
        retriever.batch(["tea", "coffee"], **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"top_k": 1}, TypeError, "has no argument 'top_k'; use k="),
        ({"child_k": 1}, TypeError, "use fetch_k="),
        ({"min_score": 1}, TypeError, "use score_threshold="),
        (
            {"search_kwargs": {"top_k": 1}},
            TypeError,
            "search_kwargs has no argument 'top_k'; use k",
        ),
        ({"embedding": 1}, TypeError, r"'embedding'; write from_documents\(documents, embedding\)"),
        ({"k": 0}, ValidationError, "greater than or equal to 1"),
        ({"k": "3"}, ValidationError, "valid integer"),
        ({"fetch_k": 0}, ValidationError, "fetch_k"),
        ({"score_threshold": float("nan")}, ValueError, "score_threshold must be a number"),
        ({"graph": "graph"}, ValidationError, "graph"),
    ],
)
def test_constructor_checks_arguments(native, arguments, error, says):
    with pytest.raises(error, match=says):
        NodeGraphRetriever(native, **arguments)


# The documents


def test_changed_document_does_not_change_graph(graph):
    graph.add(Document("Tea with tags.", metadata={"tags": ["a"], "topic": "tags"}, id="tags"))
    retriever = plain_retriever(Retriever(graph, "sentence", target="ROOT"))
    before, spoilt = retriever.invoke("tags"), retriever.invoke("tags")
    spoilt[0].metadata["tags"].append("b")
    spoilt[0].metadata["topic"] = spoilt[0].page_content = "spoilt"
    assert retriever.invoke("tags") == before
    assert graph.node("tags").metadata == {"tags": ["a"], "topic": "tags"}


def test_evidence_lists_matches(native, graph):
    query = "Do rivers dry out?"
    retriever = NodeGraphRetriever(native, evidence=True, score_key="relevance_score")
    (document,) = retriever.invoke(query, k=1)
    (match, *_) = document.metadata["evidence"]
    expected = ("Some rivers dry out.", "sentence", "bm25", query)
    assert tuple(match[name] for name in ("text", "group", "similarity", "query")) == expected
    assert match["score"] == document.metadata["relevance_score"]
    assert graph.node("rivers").text[match["start"] : match["end"]] == match["text"]
    assert graph.node(match["id"]).parent.id == document.id


class Fixed:
    """A user's retriever without a base class."""

    def __init__(self, *found):
        self.found = list(found)

    def retrieve(self, query, *, top_k=None, filters=None):
        self.config = var_child_runnable_config.get()
        return self.found[:top_k]

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await asyncio.to_thread(self.retrieve, query, top_k=top_k, filters=filters)


async def test_any_object_with_retrieve_is_a_retriever(mode):
    node = Node("Tea", {"page": 1}, id="n1")
    retriever = plain_retriever(Fixed(ScoredNode(node, -2)))
    assert await call(retriever, mode, "tea") == [to_document(ScoredNode(node, -2.0))]
    many = plain_retriever(Fixed(*(ScoredNode(Node("Tea", id=str(n)), 1.0) for n in range(99))))
    assert len(await call(many, mode, "tea")) == 99


async def test_config_context_holds_during_search(mode):
    values = {"configurable": {"user": "u1"}, "max_concurrency": 3, "tags": ["t"]}
    retriever = plain_retriever(Fixed())
    await call(retriever, mode, "x", {**values, "metadata": {"m": 1}, "run_name": "outer"})
    assert values.items() <= retriever.retriever.config.items()
    assert "run_name" not in retriever.retriever.config
    assert var_child_runnable_config.get() is None


async def test_ainvoke_does_not_block_while_building(graph, retriever):
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("fermented tea", k=1)) == ["tea"]
    turned = threading.Event()

    def slow(text):
        assert turned.wait(300), "the loop was blocked"
        return text.split()

    graph.create_node_group("slow", slow)
    task = asyncio.create_task(plain_retriever(Retriever(graph, "slow")).ainvoke("tea"))
    for _ in range(6):
        await asyncio.sleep(0.005)
    assert not task.done()
    turned.set()
    assert await task


def test_retriever_is_picklable_and_not_serializable(retriever, graph):
    again = pickle.loads(pickle.dumps(retriever.model_copy(update={"filter": {"topic": "tea"}})))
    assert ids(again.invoke("fermented tea")) == ["tea"]
    assert not NodeGraphRetriever.is_lc_serializable()
    assert dumpd(retriever)["type"] == "not_implemented"
    graph.create_node_group("words", lambda text: text.split())
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(plain_retriever(Retriever(graph, "words")))


# Runnable methods


def test_retriever_has_schemas_and_repr(retriever):
    assert retriever.get_input_jsonschema()["type"] == "string"
    assert retriever.get_output_jsonschema()["type"] == "array"
    assert repr(retriever).startswith("NodeGraphRetriever(retriever=Retriever('sentence' -> 'ROOT'")


async def test_with_config_listeners_and_bind_work(retriever, mode):
    seen = []
    named = retriever.with_config(run_name="look up", tags=["t"]).with_listeners(
        on_start=lambda run: seen.append((run.name, run.tags))
    )
    assert ids(await call(named, mode, "fermented tea", k=1)) == ["tea"]
    assert seen == [("look up", ["t"])]
    bound = retriever.bind(k=1, filter={"topic": "rivers"})
    assert ids(await call(bound, mode, "tea")) == ["rivers"]
    assert ids(await call(RunnableLambda(str.lower) | bound, mode, "TEA")) == ["rivers"]


async def test_configurable_fields_and_alternatives_work(retriever, native, graph, mode):
    names = ("k", "filter", "score_threshold", "retriever")
    configurable = retriever.configurable_fields(**{n: ConfigurableField(id=n) for n in names})
    config = {"configurable": {"k": 2, "filter": {"topic": "printing"}}}
    assert ids(await call(configurable, mode, "tea", config)) == ["press"]
    prepared, _ = configurable.prepare({"configurable": {"k": 1}})
    assert prepared.retriever is native
    lines = plain_retriever(Retriever(graph, "sentence"))
    either = retriever.configurable_alternatives(
        ConfigurableField(id="answer_with"), default_key="documents", sentences=lines
    )
    config = {"configurable": {"answer_with": "sentences"}}
    assert await call(either, mode, "fermented tea") == retriever.invoke("fermented tea")
    assert await call(either, mode, "fermented tea", config) == lines.invoke("fermented tea")


async def test_retrieval_chains_answer(retriever, native, mode):
    question = QUESTION
    answer = "Black tea is fermented."
    model = FakeListChatModel(responses=[answer])
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {input}")
    expected = [each.node.id for each in native.retrieve(question)]
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    result = await call(chain, mode, {"input": question})
    assert (result["answer"], ids(result["context"])) == (answer, expected)
    asked = ChatPromptTemplate([("placeholder", "{chat_history}"), ("user", "{input}")])
    rewriter = FakeListChatModel(responses=[question])
    aware = create_history_aware_retriever(rewriter, retriever, asked)
    history = {"input": "And this one?", "chat_history": [("user", "Tea?")]}
    assert ids(await call(aware, mode, history)) == expected


async def test_create_retriever_tool_works(retriever, mode):
    documents = retriever.invoke("fermented tea")
    tool = create_retriever_tool(retriever, "tea", "Tea.", response_format="content_and_artifact")
    message = {"type": "tool_call", "id": "1", "name": "tea", "args": {"query": "fermented tea"}}
    result = await call(tool, mode, message)
    assert result.artifact == documents
    assert result.content == "\n\n".join(texts(documents))


# Creation from documents

TEA = [
    Document("Green tea is steamed. Black tea is fermented.", id="tea", metadata={"year": 1610}),
    Document("Coffee is roasted. It comes from beans.", id="coffee", metadata={"year": 1685}),
]


def test_score_and_place_are_added_on_request(tmp_path):
    (tmp_path / "tea.md").write_text("# Kinds\n\nBlack tea is fermented.\n\n# Trade\n\nBy ship.")
    graph = NodeGraph(tmp_path / "tea.md", progress=False)
    retriever = NodeGraphRetriever.from_graph(
        graph, target="ROOT", place=True, score_key="relevance_score"
    )
    (document,) = retriever.invoke("fermented tea")
    assert document.metadata["place"] == "tea.md, line 3, Kinds"
    assert document.metadata["file_name"] == "tea.md"
    assert 0 < document.metadata["relevance_score"] <= 1
    retriever.add_documents([document])
    (node,) = graph.nodes("ROOT")
    assert {"place", "relevance_score"}.isdisjoint(node.metadata)
    options = {"place": True, "score_key": "score"}
    (document,) = NodeGraphRetriever.from_documents(TEA, **options).invoke("fermented tea", k=1)
    assert document.metadata.keys() == {"year", "score", "place"}
    assert NodeGraphRetriever.from_documents(TEA).invoke("fermented tea", k=1) == TEA[:1]


def test_own_place_field_is_kept():
    place = Document("Tea.", id="t", metadata={"place": "Assam", "source": "t.md"})
    retriever = NodeGraphRetriever.from_documents([place], place=True)
    (found,) = retriever.invoke("tea")
    assert found.metadata["place"] == "Assam"
    retriever.add_documents([found])
    assert retriever.graph.node("t").metadata == place.metadata


@pytest.mark.parametrize("group", [None, "FineChunk"])
@pytest.mark.parametrize("score_key", ["relevance_score", "score", None])
def test_added_results_do_not_multiply(group, score_key):
    options = {"group": group, "target": group, "score_key": score_key, "evidence": True}
    options["place"] = True
    retriever = NodeGraphRetriever.from_documents(TEA, **options)
    found = retriever.invoke("tea, beans")
    assert retriever.add_documents(found) == ids(found)
    assert [node.id for node in retriever.graph.nodes("ROOT")] == ["tea", "coffee"]
    assert retriever.graph.node("tea").metadata == {"year": 1610}
    assert ids(retriever.invoke("tea, beans")) == ids(found)


@pytest.mark.parametrize("field", [{"place": "Assam"}, {"evidence": ["p. 3"]}, {"page_label": "7"}])
def test_new_field_of_an_update_is_stored(field):
    retriever = NodeGraphRetriever.from_documents(TEA)
    (found,) = retriever.invoke("green tea", k=1)
    found.metadata.update(field)
    retriever.add_documents([found])
    assert retriever.graph.node("tea").metadata == {"year": 1610, **field}


async def test_add_documents_updates_by_id():
    retriever = NodeGraphRetriever.from_texts(["Tea."], ids=["a"], metadatas=[{"n": 1}])
    assert await retriever.aadd_documents([Document("Tea is hot.", id="a")]) == ["a"]
    assert retriever.add_documents([Document("Rivers.")], ids=["b"]) == ["b"]
    assert [(n.id, n.text) for n in retriever.graph.nodes("ROOT")] == [
        ("a", "Tea is hot."),
        ("b", "Rivers."),
    ]


@pytest.mark.parametrize(
    ("create", "error", "says"),
    [
        (lambda: NodeGraphRetriever.from_documents(["text"]), TypeError, "use from_texts or add_"),
        (lambda: NodeGraphRetriever.from_documents(TEA, ids=["a"]), ValueError, "same length"),
        (lambda: NodeGraphRetriever.from_texts("text"), TypeError, r"write \[text\]"),
        (lambda: NodeGraphRetriever.from_texts(["a"], None, [{}] * 2), ValueError, "same length"),
        (lambda: NodeGraphRetriever.from_graph("graph"), TypeError, "graph must be a NodeGraph"),
        (lambda: NodeGraphRetriever(lambda query: []).add_documents(TEA), ValueError, "a graph"),
        (lambda: NodeGraphRetriever.from_documents(TEA, group="Fine"), UnknownGroupError, "FineC"),
        (lambda: NodeGraphRetriever(), TypeError, "retriever must be an object with retrieve"),
        (lambda: NodeGraphRetriever(max, filter={"n": {"$b": 1}}), ValueError, "takes one or more"),
    ],
)
def test_wrong_documents_raise(create, error, says):
    with pytest.raises(error, match=says):
        create()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"persist_directory": "x"},
            r"from_documents\(\) .*'persist_directory' is called 'store'",
        ),
        ({"embedding_function": 1}, "'embedding_function' is called 'embedding' here"),
        ({"embed": 1}, "'embed' is called 'embedding' here"),
        ({"collection_name": "x"}, "a store= holds one collection"),
        ({"preprocess_func": str.split}, r"similarity=Bm25\(analyzer="),
        ({"top_k": 3}, "'top_k' is called 'k' here"),
        ({"filters": {}}, "'filters' is called 'filter' here"),
        ({"simularity": "bm25"}, "simularity"),
        ({"strategy": "rewrite"}, "strategy= and llm= must be given together"),
    ],
)
def test_from_documents_names_the_right_argument(options, says):
    with pytest.raises(TypeError, match=says):
        NodeGraphRetriever.from_documents(TEA, **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["coffee"]),
        ({"k": 1}, ["coffee"]),
        ({"group": "ROOT", "similarity": "bm25"}, ["coffee"]),
        ({"group": "FineChunk"}, ["coffee"]),
        ({"filter": {"year": {"$lt": 1650}}}, []),
        ({"search_kwargs": {"filter": {"year": 1685}, "k": 1}}, ["coffee"]),
        ({"score_threshold": 1.0}, []),
        ({"embedding": Letters(), "similarity": "cosine", "k": 1}, ["coffee"]),
    ],
)
def test_from_documents_options_select_the_search(options, expected):
    assert ids(NodeGraphRetriever.from_documents(TEA, **options).invoke("roasted")) == expected


@pytest.mark.parametrize(
    "strategy", ["rewrite", "multi_query", "hyde", "sub_question", "multi_step"]
)
async def test_strategy_queries_the_model(strategy, mode):
    model = FakeListChatModel(responses=["1. roasted beans"] * 9)
    retriever = NodeGraphRetriever.from_documents(TEA, strategy=strategy, llm=model, k=1)
    assert ids(await call(retriever, mode, "a hot drink?")) == ["coffee"]


async def test_self_query_adds_conditions_of_the_question(mode):
    reply = '{"query": "coffee or tea", "filters": {"year": {"gte": 1685}}}'
    model = FakeListChatModel(responses=[reply] * 9)
    retriever = NodeGraphRetriever.from_documents(TEA, strategy="self_query", llm=model, k=3)
    assert ids(await call(retriever, mode, "coffee or tea since 1685")) == ["coffee"]
    retriever = NodeGraphRetriever.from_documents(
        TEA, strategy="self_query", llm=model, filter={"year": {"$lt": 1685}}
    )
    assert ids(await call(retriever, mode, "coffee or tea since 1685")) == ["tea"]


# Parents of chunks


@pytest.mark.parametrize("question", peers.QUESTIONS)
@pytest.mark.parametrize("kinds", [("child", "ROOT"), ("child", "title"), ("title", "ROOT")])
def test_recursive_search_equals_multi_vector_retriever(peer_graph, question, kinds):
    def title(node):
        return [f"All about {node.metadata['topic']}"]

    def parts(document, kind):
        if kind == "child":
            return peers.splitter().split_text(document.page_content)
        return [document.page_content] if kind == "ROOT" else title(document)

    both = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(peers.Pairs()), docstore=InMemoryStore(),
        id_key="of", search_kwargs={"k": 100},
    )  # fmt: skip
    for kind in kinds:
        for document in peers.DOCUMENTS:
            both.vectorstore.add_documents(
                [Document(part, metadata={"of": document.id}) for part in parts(document, kind)]
            )
    both.docstore.mset([(document.id, document) for document in peers.DOCUMENTS])
    peer_graph.create_node_group("title", title, trans_node=True)
    search = RecursiveRetriever(peer_graph, kinds, "ROOT", "cosine", top_k=4)
    assert plain_retriever(search).invoke(question) == both.invoke(question)


def test_parent_splitter_searches_sentences_by_default():
    retriever = NodeGraphRetriever.from_documents(
        peers.DOCUMENTS, parent_splitter=peers.splitter(50), evidence=True
    )
    (document,) = retriever.invoke("fermented")
    assert document.page_content == "Green tea is steamed. Black tea is fermented."
    assert document.metadata["evidence"][0]["text"] == "Black tea is fermented."
    parents = {node.parent_id for node in retriever.graph.nodes("parent sentence")}
    assert parents == set(ids(retriever.graph.nodes("parent")))
