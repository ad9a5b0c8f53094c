import asyncio
import inspect
import pickle
import threading

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import ValidationError

from nodekin.adapters.langchain import NodeGraphRetriever, to_document
from nodekin.nodegraph import Node, NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, RerankRetriever, Retriever, ScoredNode


def ids(documents):
    return [document.id for document in documents]


# What is found


def test_documents_are_the_native_results(retriever, native):
    found = native.retrieve("Which tea is fermented?")
    documents = retriever.invoke("Which tea is fermented?")
    assert ids(documents) == [each.node.id for each in found]
    assert [d.page_content for d in documents] == [each.node.content for each in found]
    detailed = NodeGraphRetriever(retriever=native, details=True)
    documents = detailed.invoke("Which tea is fermented?")
    assert [d.metadata["score"] for d in documents] == [each.score for each in found]


async def test_sync_and_async_find_the_same(retriever):
    assert await retriever.ainvoke("tea by the rivers") == retriever.invoke("tea by the rivers")


def test_chinese(native):
    detailed = NodeGraphRetriever(retriever=native, details=True)
    (document, *_) = detailed.invoke("红茶发酵吗？")
    assert document.id == "茶"
    assert document.metadata["evidence"] == "红茶是全发酵的茶。"


@pytest.mark.parametrize("query", ["", "  \n", "　"])
async def test_a_blank_query_finds_nothing(retriever, query):
    assert retriever.invoke(query) == []
    assert await retriever.ainvoke(query) == []


def test_no_match_finds_nothing(retriever):
    assert retriever.invoke("zeppelin") == []


def test_nodes_with_the_same_text_all_count():
    graph = NodeGraph(progress=False)
    graph.add([("Tea. " * 3).strip()])
    graph.create_node_group("sentence", split_sentences)
    documents = NodeGraphRetriever(retriever=Retriever(graph, "sentence")).invoke("tea")
    assert [d.page_content for d in documents] == ["Tea."] * 3
    assert len(set(ids(documents))) == 3


# Arguments


async def test_k_in_the_constructor_and_in_the_call(native):
    retriever = NodeGraphRetriever(retriever=native, k=2)
    assert len(retriever.invoke("tea")) == 2
    assert len(retriever.invoke("tea", k=1)) == 1
    assert len(await retriever.ainvoke("tea", k=3)) == 3
    assert len(NodeGraphRetriever(retriever=native).invoke("tea")) == 3


async def test_weights_of_a_fusion_in_the_call(graph):
    tea = Retriever(graph, "ROOT", "bm25", filters={"topic": "tea"})
    all_documents = Retriever(graph, "ROOT", "bm25")
    fusion = NodeGraphRetriever(retriever=FusionRetriever([tea, all_documents]))
    query = "Which tea is by the rivers?"
    only_tea, everything = (
        fusion.invoke(query, weights=[1, 0]),
        fusion.invoke(query, weights=[0, 1]),
    )
    assert ids(only_tea) == [result.node.id for result in tea.retrieve(query)]
    assert ids(everything) == [result.node.id for result in all_documents.retrieve(query)]
    assert only_tea != everything
    assert await fusion.ainvoke(query, weights=[1, 0]) == only_tea
    assert fusion.batch([query] * 2, weights=[1, 0]) == [only_tea] * 2
    assert await fusion.abatch([query] * 2, weights=[1, 0]) == [only_tea] * 2
    assert ids(fusion.invoke(query)) == [r.node.id for r in fusion.retriever.retrieve(query)]
    with pytest.raises(ValueError, match="are 3, for 2 retrievers"):
        fusion.invoke(query, weights=[1, 2, 3])
    with pytest.raises(TypeError, match="weights are for a FusionRetriever or a DefaultRetriever"):
        NodeGraphRetriever(retriever=tea).invoke(query, weights=[1, 2])


async def test_weights_in_the_call_reach_a_fusion_within(graph):
    tea = Retriever(graph, "ROOT", "bm25", filters={"topic": "tea"})
    fusion = FusionRetriever([tea, Retriever(graph, "ROOT", "bm25")])
    query = "Which tea is by the rivers?"
    reranked = RerankRetriever(
        fusion, "ModuleReranker", model=lambda query, texts: [1.0] * len(texts)
    )
    retriever = NodeGraphRetriever(retriever=reranked)
    only_tea = [result.node.id for result in tea.retrieve(query)]
    assert ids(retriever.invoke(query, weights=[1, 0])) == only_tea != ids(retriever.invoke(query))
    assert ids(await retriever.ainvoke(query, weights=[1, 0])) == only_tea
    default = NodeGraphRetriever.from_graph(graph, details="nested")
    for weights, group in (([1, 0], "sentence"), ([0, 1], "ROOT")):
        (document,) = default.invoke(query, weights=weights, k=1)
        evidence = document.metadata["nodekin"]["evidence"]
        assert {match["group"] for match in evidence} == {group}


async def test_filter_in_the_constructor_and_in_the_call(native):
    retriever = NodeGraphRetriever(retriever=native, filter={"topic": "tea"})
    assert ids(retriever.invoke("tea")) == ["tea"]
    assert retriever.invoke("tea", filter={"topic": ["rivers", "printing"]}) == []
    assert ids(retriever.invoke("tea", filter={"topic": ["rivers", "tea"]})) == ["tea"]
    others = retriever.model_copy(update={"filter": {"topic": ["rivers", "printing"]}})
    assert ids(others.invoke("tea")) == ["rivers", "press"]
    assert await retriever.ainvoke("tea", filter={"language": "zh"}) == []
    assert ids(await retriever.ainvoke("茶", filter={"language": "zh"})) == ["茶"]


def test_filters_of_the_native_retriever_hold_too(graph):
    native = Retriever(graph, "sentence", target="ROOT", filters={"language": "en"})
    retriever = NodeGraphRetriever(retriever=native)
    assert ids(retriever.invoke("tea", filter={"topic": "rivers"})) == ["rivers"]


async def test_score_threshold_in_the_constructor_and_in_the_call(native):
    found = native.retrieve("tea by rivers")
    best = found[0].score
    assert best > found[-1].score
    retriever = NodeGraphRetriever(retriever=native, score_threshold=best)
    assert ids(retriever.invoke("tea by rivers")) == [found[0].node.id]
    assert len(await retriever.ainvoke("tea by rivers", score_threshold=-1)) == len(found)
    assert await retriever.ainvoke("tea by rivers", score_threshold=best + 1) == []


@pytest.mark.parametrize("typo", ["top_k", "filters", "K", "threshold", "childk"])
async def test_a_typo_in_a_call_is_a_type_error(retriever, typo):
    with pytest.raises(TypeError, match=typo):
        retriever.invoke("tea", **{typo: 1})
    with pytest.raises(TypeError, match=typo):
        await retriever.ainvoke("tea", **{typo: 1})


def test_sync_and_async_declare_the_same_arguments():
    sync = inspect.signature(NodeGraphRetriever._get_relevant_documents).parameters
    async_ = inspect.signature(NodeGraphRetriever._aget_relevant_documents).parameters
    assert list(sync) == list(async_)
    assert {"k", "child_k", "filter", "score_threshold"} <= set(sync)


@pytest.mark.parametrize("typo", ["top_k", "filters", "search_kwargs"])
def test_an_unknown_constructor_argument_is_refused(native, typo):
    with pytest.raises(ValidationError, match=typo):
        NodeGraphRetriever(retriever=native, **{typo: 1})


@pytest.mark.parametrize("k", [0, -1])
async def test_k_below_one_is_refused(native, retriever, k):
    with pytest.raises(ValueError, match="must be 1 or more"):
        retriever.invoke("tea", k=k)
    with pytest.raises(ValueError, match="must be 1 or more"):
        await retriever.ainvoke("tea", k=k)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        NodeGraphRetriever(retriever=native, k=k)


@pytest.mark.parametrize("k", [True, "3", 2.0])
def test_k_is_a_whole_number(native, retriever, k):
    with pytest.raises(TypeError, match="whole number"):
        retriever.invoke("tea", k=k)
    with pytest.raises(ValidationError, match="valid integer"):
        NodeGraphRetriever(retriever=native, k=k)


def test_a_threshold_that_is_nan_is_refused(native, retriever):
    with pytest.raises(ValueError, match="NaN"):
        retriever.invoke("tea", score_threshold=float("nan"))
    with pytest.raises(ValidationError, match="finite"):
        NodeGraphRetriever(retriever=native, score_threshold=float("nan"))


def test_what_is_no_filter_is_refused_by_the_core(retriever):
    with pytest.raises(TypeError, match="filters map metadata fields"):
        retriever.invoke("tea", filter="topic")


def test_what_is_no_retriever_is_refused(graph):
    with pytest.raises(TypeError, match=r"retriever is an object with retrieve.*not 3"):
        NodeGraphRetriever(retriever=3)


@pytest.mark.parametrize("details", ["flat", "yes", 2, None])
def test_details_of_no_kind_are_refused(native, details):
    with pytest.raises(ValidationError, match=r"details\n.*False, True or 'nested'"):
        NodeGraphRetriever(retriever=native, details=details)


def test_construction_does_not_touch_the_engine(graph):
    class Untouchable:
        def retrieve(self, query, *, top_k=None, filters=None):
            raise AssertionError

        aretrieve = retrieve

        def __deepcopy__(self, memo):
            raise AssertionError

        def __iter__(self):
            raise AssertionError

        def __len__(self):
            raise AssertionError

    engine = Untouchable()
    assert NodeGraphRetriever(retriever=engine).retriever is engine


async def test_child_k_in_the_constructor_and_in_the_call(native):
    def matches(documents):
        return [(d.id, len(d.metadata["nodekin"]["evidence"])) for d in documents]

    query, nested = "Which tea is fermented?", {"retriever": native, "details": "nested"}
    assert matches(NodeGraphRetriever(**nested, k=1).invoke(query)) == [("tea", 1)]
    retriever = NodeGraphRetriever(**nested, k=1, child_k=3)
    assert matches(retriever.invoke(query)) == [("tea", 3)]
    assert matches(await retriever.ainvoke(query)) == [("tea", 3)]
    assert matches(retriever.invoke(query, k=9, child_k=1)) == [("tea", 1)]
    assert len(await retriever.ainvoke(query, k=9, child_k=99)) == 3


async def test_arguments_of_a_call_reach_what_others_hold(native, graph):
    fusion = FusionRetriever([native, Retriever(graph, "sentence", target="ROOT", lift="sum")])
    retriever = NodeGraphRetriever(
        retriever=RerankRetriever(
            fusion, "ModuleReranker", model=lambda query, texts: [1.0] * len(texts)
        )
    )
    asked = {"k": 5, "child_k": 1}
    assert ids(retriever.invoke("Which tea is fermented?", **asked)) == ["tea"]
    assert ids(await retriever.ainvoke("Which tea is fermented?", **asked)) == ["tea"]
    asked = {"k": 1, "filter": {"topic": ["rivers", "printing"]}}
    assert len(retriever.invoke("tea", **asked)) == 1
    assert set(ids(await retriever.ainvoke("tea", **{**asked, "k": 9}))) == {"rivers", "press"}


@pytest.mark.parametrize("child_k", [0, True, "3"])
def test_child_k_is_a_whole_number_from_one(native, retriever, child_k):
    with pytest.raises((TypeError, ValueError), match="child_k"):
        retriever.invoke("tea", child_k=child_k)
    with pytest.raises(ValidationError, match="child_k"):
        NodeGraphRetriever(retriever=native, child_k=child_k)


# The documents


def test_every_document_has_an_id_and_a_float_score(native):
    for document in NodeGraphRetriever(retriever=native, details=True).invoke("tea 茶 rivers"):
        assert document.id
        assert type(document.metadata["score"]) is float


def test_changing_a_result_changes_nothing_else(graph):
    graph.add(Document("Tea with tags.", metadata={"tags": ["a"], "topic": "tags"}, id="tags"))
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "sentence", target="ROOT"))
    before = retriever.invoke("tags")
    spoilt = retriever.invoke("tags")
    assert before == spoilt
    assert before[0] is not spoilt[0]
    spoilt[0].metadata["tags"].append("b")
    spoilt[0].metadata["topic"] = "spoilt"
    spoilt[0].page_content = "spoilt"
    assert retriever.invoke("tags") == before
    assert graph.node("tags").metadata == {"tags": ["a"], "topic": "tags"}


def test_documents_have_the_metadata_of_their_nodes(retriever, graph):
    (document,) = retriever.invoke("dry rivers")
    assert document.metadata == graph.node("rivers").metadata


def test_evidence_tells_what_matched(native, graph):
    query = "Do rivers dry out?"
    (document,) = NodeGraphRetriever(retriever=native, details="nested").invoke(query, k=1)
    (match, *_) = document.metadata["nodekin"]["evidence"]
    assert match["text"] == "Some rivers dry out."
    assert match["group"] == "sentence"
    assert match["similarity"] == "bm25"
    assert match["query"] == "Do rivers dry out?"
    assert match["score"] == document.metadata["nodekin"]["score"]
    assert graph.node("rivers").text[match["start"] : match["end"]] == match["text"]
    assert graph.node(match["id"]).parent.id == document.id


# Any retriever


class Fixed:
    """A retriever of a user's own: subclassing is not required."""

    def __init__(self, *found):
        self.found = list(found)

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.found[:top_k]

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


async def test_any_object_with_the_two_methods_will_do():
    node = Node("Tea", {"page": 1}, id="n1")
    retriever = NodeGraphRetriever(retriever=Fixed(ScoredNode(node, 2)))
    assert retriever.invoke("tea") == [to_document(ScoredNode(node, 2.0))]
    assert await retriever.ainvoke("tea") == retriever.invoke("tea")


async def test_negative_scores_pass_without_a_threshold():
    found = [ScoredNode(Node(t, id=t), s) for t, s in (("a", -1.0), ("b", -2.0))]
    retriever = NodeGraphRetriever(retriever=Fixed(*found))
    assert ids(retriever.invoke("x")) == ["a", "b"]
    assert ids(retriever.invoke("x", score_threshold=-1.5)) == ["a"]


# Asynchronous life


async def test_nothing_blocks_the_event_loop(retriever):
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("fermented tea", k=1)) == ["tea"]
        assert len(await retriever.abatch(["tea", "rivers", "茶"])) == 3


async def test_the_loop_runs_while_a_group_is_built(graph):
    turned = threading.Event()

    def slow(text):
        assert turned.wait(300), "the loop was blocked"
        return text.split()

    graph.create_node_group("slow", slow)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "slow"))
    call = asyncio.create_task(retriever.ainvoke("tea"))
    for _ in range(6):
        await asyncio.sleep(0.005)
    assert not call.done()
    turned.set()
    assert await call


async def test_many_at_once(retriever):
    queries = ["fermented tea", "dry rivers", "红茶", "printing press"] * 10
    found = await asyncio.gather(*(retriever.ainvoke(query, k=1) for query in queries))
    assert [ids(each)[0] for each in found] == ["tea", "rivers", "茶", "press"] * 10


class Nosy(Fixed):
    """Notes the LangChain config around it."""

    def retrieve(self, query, *, top_k=None, filters=None):
        self.config = var_child_runnable_config.get()
        return []

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await asyncio.to_thread(self.retrieve, query)


async def test_the_config_surrounds_the_search():
    config = {
        "configurable": {"user": "u1"},
        "max_concurrency": 3,
        "tags": ["t"],
        "metadata": {"m": 1},
        "run_name": "outer",
    }
    nosy = Nosy()
    retriever = NodeGraphRetriever(retriever=nosy)
    for call in ("sync", "async"):
        nosy.config = None
        retriever.invoke("x", config) if call == "sync" else await retriever.ainvoke("x", config)
        assert nosy.config["configurable"] == {"user": "u1"}
        assert nosy.config["max_concurrency"] == 3
        assert nosy.config["tags"] == ["t"]
        assert "run_name" not in nosy.config
        assert var_child_runnable_config.get() is None


# Serialisation


def test_pickle_round_trip():
    retriever = NodeGraphRetriever(
        retriever=Fixed(ScoredNode(Node("Tea", {"page": 1}, id="n1"), 1.0)), k=2, filter={"a": 1}
    )
    again = pickle.loads(pickle.dumps(retriever))
    assert again.invoke("tea") == retriever.invoke("tea")
    assert (again.k, again.filter) == (2, {"a": 1})


def test_pickle_round_trip_with_its_graph(retriever):
    retriever.invoke("tea")
    again = pickle.loads(pickle.dumps(retriever))
    assert again.invoke("fermented tea") == retriever.invoke("fermented tea")


def test_what_can_not_be_pickled_is_named(graph):
    graph.create_node_group("words", lambda text: text.split())
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "words"))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(retriever)


def test_it_is_not_serializable_by_langchain(retriever):
    assert not NodeGraphRetriever.is_lc_serializable()
    assert dumpd(retriever)["type"] == "not_implemented"
