"""A nodekin retriever, with a strategy or without, as a LlamaIndex query engine."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex, get_response_synthesizer
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool
from query_engine_scripts import (
    BOTH,
    DECOMPOSE,
    PARTS,
    STEP,
    Scripted,
    decompose_and_answer,
    ids,
    step,
)

from nodekin.adapters.llama_index import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.adapters.llama_index.instrumentation import SpanStartEvent
from nodekin.adapters.llama_index.nodes import NodeWithEvidence, from_text_node
from nodekin.adapters.llama_index.query_engine import (
    SYNTHESIS_OPTIONS,
    EngineOptions,
    NamedStrategyOptions,
)
from nodekin.nodegraph import Document, ModelError, Node, NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    QaRetriever,
    QueryEngine,
    RecursiveRetriever,
    Retriever,
    RouterRetriever,
    check_quotes,
    restrict,
)
from nodekin.retrievers.strategies.model_prompt import QueryTransformOptions
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

# Without a strategy


def test_answers_from_what_the_retriever_finds(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Black tea.")
    engine = NodeGraphQueryEngine(search, llm)
    response = engine.query("Which tea is fermented?")
    expected = search("Which tea is fermented?")
    assert str(response) == "Black tea."
    assert ids(response.source_nodes) == [each.node.id for each in expected]
    assert [each.score for each in response.source_nodes] == [each.score for each in expected]
    assert all(isinstance(each, NodeWithEvidence) for each in response.source_nodes)
    assert response.metadata[expected[0].node.id]["topic"] == "tea"
    assert "sub_qa" not in response.metadata
    assert "errors" not in response.metadata
    (prompt,) = llm.prompts
    assert all(each.node.text in prompt for each in expected)


def test_is_the_same_as_retriever_query_engine(
    search: Retriever, retriever: NodeGraphRetriever, scripted: Scripted
) -> None:
    theirs_llm, ours_llm = scripted("Tea."), scripted("Tea.")
    theirs = RetrieverQueryEngine.from_args(retriever, llm=theirs_llm).query(BOTH)
    ours = NodeGraphQueryEngine(search, ours_llm).query(BOTH)
    assert ours_llm.prompts == theirs_llm.prompts
    assert ids(ours.source_nodes) == ids(theirs.source_nodes)
    assert ours.metadata == theirs.metadata


@pytest.mark.usefixtures("unblocked")
def test_async_is_the_same(search: Retriever, scripted: Scripted) -> None:
    async def main() -> None:
        for strategy in ("none", "rewrite", "multi_query", "hyde", "sub_question", "multi_step"):
            engine = NodeGraphQueryEngine(search, scripted("Is tea black?"), strategy=strategy)
            made = await engine.aquery(BOTH)
            again = await asyncio.to_thread(engine.query, BOTH)
            assert str(made) == str(again)
            assert ids(made.source_nodes) == ids(again.source_nodes)
            assert made.metadata.keys() == again.metadata.keys()
            bundle = QueryBundle(BOTH)
            assert ids(await engine.aretrieve(bundle)) == ids(made.source_nodes)
            synthesized = await engine.asynthesize(bundle, made.source_nodes)
            assert ids(synthesized.source_nodes) == ids(made.source_nodes)

    asyncio.run(main())


def test_searches_a_graph(graph: NodeGraph, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(
        DefaultRetriever(graph, "paragraph"),
        scripted("白色。"),
        similarity_top_k=1,
        filters={"year": 2005},
    )
    (node,) = engine.query("大熊猫的毛是什么颜色？").source_nodes
    assert node.text == "大熊猫的毛是黑白两色的。"
    (whole,) = (
        NodeGraphQueryEngine(graph, scripted("白色。"), similarity_top_k=1)
        .query("大熊猫的毛是什么颜色？")
        .source_nodes
    )
    assert from_text_node(whole.node).group == "passage"


def test_quotations_are_in_the_metadata(search: Retriever, scripted: Scripted) -> None:
    engine = QueryEngine(search, scripted("It is “Fermented” [1]."), check="quotes")
    response = NodeGraphQueryEngine(engine).query("Which tea is fermented?")
    assert [quote["status"] for quote in response.metadata["quotes"]] == ["same_letters"]
    assert check_quotes(response).quotes[0].status == "same_letters"  # as of any other engine


def test_nothing_found(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("?")
    response = NodeGraphQueryEngine(search, llm).query("quux")
    assert str(response) == "Empty Response"
    assert response.source_nodes == []
    assert llm.prompts == []


def test_postprocessors_take_part(search: Retriever, scripted: Scripted) -> None:
    found = search("Which tea is fermented?")
    cut = SimilarityPostprocessor(similarity_cutoff=found[0].score)
    for source in (search, QueryEngine(search, scripted("Tea [1]."))):
        engine = NodeGraphQueryEngine(source, scripted("Tea."), node_postprocessors=[cut])
        assert ids(engine.query("Which tea is fermented?").source_nodes) == [found[0].node.id]
        assert ids(engine.retrieve("Which tea is fermented?")) == [found[0].node.id]


def test_synthesize_takes_any_nodes(search: Retriever, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(search, scripted("Tea."))
    bundle = QueryBundle("Which tea is fermented?")
    first, *rest = engine.retrieve(bundle)
    response = engine.synthesize(bundle, [first], rest)
    assert ids(response.source_nodes) == ids([first, *rest])
    answered = NodeGraphQueryEngine(QueryEngine(search, lambda prompt: "Tea [1]."))
    response = answered.synthesize(bundle, [first], rest)
    assert ids(response.source_nodes) == ids([first, *rest])
    assert response.metadata["cited"] == [1]


# What is told


@pytest.mark.parametrize("answering", [False, True])
def test_spans_and_events(
    search: Retriever, scripted: Scripted, watched: SimpleNamespace, answering: bool
) -> None:
    llm = scripted(decompose_and_answer)
    source = QueryEngine(search, llm) if answering else search
    NodeGraphQueryEngine(source, llm, strategy="sub_question", **DECOMPOSE).query(BOTH)
    spans = {span.id_: span for span in watched.spans.completed_spans}

    def above(span: Any) -> list[str]:
        return [span.id_, *above(spans[span.parent_id])] if span.parent_id in spans else [span.id_]

    (outer,) = [s for s in spans.values() if s.parent_id not in spans]
    assert outer.id_.startswith("NodeGraphQueryEngine.query")
    searches = [span for span in spans.values() if span.id_.startswith("nodekin.search")]
    assert len(searches) == 1  # of three queries
    assert all(above(span)[-1] == outer.id_ for span in searches)
    assert all(any("sub-questions" in name for name in above(span)) for span in searches)
    started = [each for each in watched.events if isinstance(each, SpanStartEvent)]
    assert sum(each.span == "search" for each in started) == 1  # each is told once
    assert sum(each.span == "answer" for each in started) == answering
    assert sum(isinstance(each, QueryStartEvent) for each in watched.events) == 1
    assert sum(isinstance(each, QueryEndEvent) for each in watched.events) == 1


def test_callbacks(search: Retriever, scripted: Scripted) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([handler])
    llm = scripted(decompose_and_answer)
    engine = NodeGraphQueryEngine(
        search, llm, strategy="sub_question", **DECOMPOSE, callback_manager=manager
    )
    assert engine.retriever.callback_manager is manager
    engine.query(BOTH)
    assert len(handler.get_event_pairs(CBEventType.QUERY)) == 1
    assert len(handler.get_event_pairs(CBEventType.RETRIEVE)) == 1
    assert len(handler.get_event_pairs(CBEventType.SYNTHESIZE)) == 1
    told = [pair[1].payload for pair in handler.get_event_pairs(CBEventType.SUB_QUESTION)]
    pairs = [next(iter(each.values())) for each in told]
    assert {p.answer for p in pairs} == {"Green: no.", "Black: yes."}
    assert all(p.sources for p in pairs)


class Order(LlamaDebugHandler):
    """Note the order in which events begin and end."""

    def __init__(self) -> None:
        super().__init__(print_trace_on_end=False)
        self.order: list[str] = []

    def on_event_start(self, event_type: Any, *args: Any, **kwargs: Any) -> str:
        self.order.append(f"{event_type.value} begins")
        return str(super().on_event_start(event_type, *args, **kwargs))

    def on_event_end(self, event_type: Any, *args: Any, **kwargs: Any) -> None:
        self.order.append(f"{event_type.value} ends")
        super().on_event_end(event_type, *args, **kwargs)


@pytest.mark.parametrize("strategy", ["sub_question", "multi_step"])
def test_sub_question_events_come_before_the_answer_is_written(
    search: Retriever, scripted: Scripted, strategy: Any
) -> None:
    handler = Order()
    steps = iter([step("unknown", "no", "Is black tea fermented?"), step("yes", "yes", "NONE")])

    def says(prompt: str) -> str:
        return next(steps) if prompt.startswith("Step") else decompose_and_answer(prompt)

    options = DECOMPOSE if strategy == "sub_question" else STEP
    NodeGraphQueryEngine(
        search,
        scripted(says),
        strategy=strategy,
        callback_manager=CallbackManager([handler]),
        **options,
    ).query(BOTH)
    order = handler.order
    assert order.count("sub_question ends") == (2 if strategy == "sub_question" else 1)
    last = max(at for at, event in enumerate(order) if event == "sub_question ends")
    assert order.index("retrieve begins") < last < order.index("retrieve ends")
    assert last < order.index("synthesize begins")


def test_verbose_shows_the_walk(
    search: Retriever, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    NodeGraphQueryEngine(
        search, scripted(decompose_and_answer), strategy="sub_question", verbose=True, **DECOMPOSE
    ).query(BOTH)
    shown = capsys.readouterr().out
    for text in ("retrieve", "└─ sub-questions", "sub-question", "Is black tea fermented?"):
        assert text in shown
    assert 'sentence  bm25 for "Is black tea fermented?": "Black tea is fermented."' in shown
    NodeGraphQueryEngine(search, scripted("Tea.")).query(BOTH)
    assert capsys.readouterr().out == ""


def test_a_given_synthesizers_callback_manager_is_taken(
    search: Retriever, scripted: Scripted
) -> None:
    manager = CallbackManager([])
    synthesizer = get_response_synthesizer(llm=scripted("Tea."), callback_manager=manager)
    engine = NodeGraphQueryEngine(search, response_synthesizer=synthesizer)
    assert engine.callback_manager is manager


# Inside LlamaIndex


class TwoQuestions(BaseQuestionGenerator):
    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=q, tool_name="tea") for q in PARTS.splitlines()]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


def test_as_a_tool_of_their_sub_question_engine(search: Retriever, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(search, scripted("Tea."), strategy="rewrite")
    tool = QueryEngineTool.from_defaults(engine, name="tea", description="tea")
    outer = SubQuestionQueryEngine.from_defaults(
        [tool], question_gen=TwoQuestions(), llm=scripted("All."), verbose=False, use_async=False
    )
    response = outer.query(BOTH)
    assert str(response) == "All."
    assert len(response.source_nodes) > 2
    assert str(tool.call(input="Which tea is black?")) == "Tea."


# What is refused


def test_what_is_wrong_is_said(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Tea.")
    with pytest.raises(ValueError, match="no strategy 'multistep'; there is 'multi_step'"):
        NodeGraphQueryEngine(search, llm, strategy="multistep")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"max_steps.*are no arguments of a query engine"):
        NodeGraphQueryEngine(search, llm, max_steps=2)
    with pytest.raises(TypeError, match="answers with a LlamaIndex LLM"):
        NodeGraphQueryEngine(search, lambda prompt: "Tea.")
    with pytest.raises(TypeError, match="source must be an object with retrieve"):
        NodeGraphQueryEngine(llm, llm)
    synthesizer = get_response_synthesizer(llm=llm)
    with pytest.raises(TypeError, match="response_synthesizer is LlamaIndex's"):
        NodeGraphQueryEngine(search, response_synthesizer=QueryEngine(search, llm))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="answers by itself"):
        NodeGraphQueryEngine(QueryEngine(search, llm), response_synthesizer=synthesizer)
    with pytest.raises(ValueError, match="streaming=True"):
        NodeGraphQueryEngine(search, response_synthesizer=synthesizer, streaming=True)


@pytest.mark.parametrize("streaming", [False, True])
def test_preset_answers_meet_the_filters(streaming: bool) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea of {t}.", {"tenant": t}, id=t) for t in "ab"])

    def pairs(node: Node) -> list[Node]:
        return [Node("Whose tea?", {"answer": f"It is {node.id}'s."})]

    graph.create_node_group("qa", pairs, trans_node=True)
    answers = QueryEngine(
        Retriever(graph, "ROOT"), lambda prompt: "It is.", qa=QaRetriever(graph, "qa")
    )
    engine = NodeGraphQueryEngine(answers, filters={"tenant": "b"}, streaming=streaming)
    for response in (engine.query("Whose tea?"), asyncio.run(engine.aquery("Whose tea?"))):
        texts = response.source_nodes[0].text
        assert "b's" in texts
        assert "a's" not in texts
    restricted = NodeGraphQueryEngine(restrict(answers, {"tenant": "b"}), streaming=streaming)
    assert "b's" in restricted.query("Whose tea?").source_nodes[0].text
    nothing = NodeGraphQueryEngine(restrict(answers, {"tenant": "c"}), streaming=streaming)
    assert nothing.query("Whose tea?").source_nodes == []


def test_the_passages_behind_sub_answers_are_sources(search: Retriever, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(
        search,
        scripted(decompose_and_answer),
        strategy="sub_question",
        similarity_top_k=1,
        **DECOMPOSE,
    )
    response = engine.query(BOTH)
    behind = {answer.source_nodes[0].node_id for _, answer in response.metadata["sub_qa"]}
    assert behind <= set(ids(response.source_nodes))
    assert len(ids(response.source_nodes)) == len(set(ids(response.source_nodes)))


def test_without_a_model_it_is_said_how_to_give_one(
    search: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", None)
    for strategy in ("none", "rewrite"):
        with pytest.raises(
            (ImportError, ModelError), match=r"give one, llm=\.\.\., or set Settings\.llm"
        ):
            NodeGraphQueryEngine(
                search, strategy=strategy, **({} if strategy == "none" else {"on_error": "raise"})
            ).query("tea")


PLAN = "tea: Which tea is fermented?\npandas: Where do pandas live?"


@pytest.mark.parametrize("kind", ["tools", "router", "engine", "references"])
async def test_sources_of_engines_are_their_own_source_nodes(scripted: Any, kind: str) -> None:
    files = {"tea": "Black tea is fermented.", "pandas": "Pandas live in bamboo."}
    engines = {
        name: VectorStoreIndex.from_documents(
            [LlamaIndexDocument(text=text, metadata={"file_name": f"{name}.md", "page": 3})],
            embed_model=MockEmbedding(embed_dim=2),
        ).as_query_engine(llm=scripted(f"On {name}."))
        for name, text in files.items()
    }
    answer = {"tools": PLAN, "router": "tea", "engine": "tea?", "references": ""}[kind]
    llm = scripted(lambda prompt: "Both." if "Context information" in prompt else answer)
    described = {name: (f"All on {name}", engine.query) for name, engine in engines.items()}
    engine: NodeGraphQueryEngine
    if kind == "tools":
        tools = [QueryEngineTool.from_defaults(e, name=n) for n, e in engines.items()]
        engine = NodeGraphQueryEngine.from_defaults(tools, llm)
    elif kind == "router":
        engine = NodeGraphQueryEngine(RouterRetriever(described, lambda prompt: "tea"), llm)
    elif kind == "engine":
        engine = NodeGraphQueryEngine(engines["tea"].query, llm)
    else:
        graph = NodeGraph(progress=False)
        graph.add(Document("All on tea", id="entry"))
        entries = RecursiveRetriever(
            graph, ["ROOT"], "ROOT", "bm25", references={"entry": engines["tea"].query}
        )
        engine = NodeGraphQueryEngine(entries, llm)
    for response in (engine.query("All on tea?"), await engine.aquery("All on tea?")):
        names = [source.node.metadata["file_name"] for source in response.source_nodes]
        assert names == (["tea.md", "pandas.md"] if kind == "tools" else ["tea.md"])
        (source, *_) = response.source_nodes
        theirs = engines["tea"].retrieve(QueryBundle("tea"))[0].node
        assert (source.node_id, source.text, source.node.ref_doc_id) == (
            *(theirs.node_id, files["tea"], theirs.ref_doc_id),
        )
        assert "On tea." in {match["text"] for match in source.evidence}
        assert response.metadata[source.node_id] == {"file_name": "tea.md", "page": 3}


def test_the_typed_options_are_those_that_there_are() -> None:
    """So that a type checker knows what ``as_query_engine`` and its like take."""
    constructor = inspect.signature(NodeGraphQueryEngine).parameters.keys() - {
        *("source", "llm", "options")
    }
    strategies = {
        name
        for strategy in STRATEGIES.values()
        for name in inspect.signature(strategy.retriever).parameters
    } - {"inner", "llm", "top_k", "output_format", "join", "options"}
    shared = {*QueryTransformOptions.__annotations__, "mode", "query_weight"}
    assert NamedStrategyOptions.__annotations__.keys() == strategies | shared
    own = EngineOptions.__annotations__.keys() - NamedStrategyOptions.__annotations__.keys()
    assert own - constructor - {"verbose", "num_workers"} <= SYNTHESIS_OPTIONS
    assert constructor < own
