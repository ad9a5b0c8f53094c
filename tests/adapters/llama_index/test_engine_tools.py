"""Sub-questions over query engine tools, compared with LlamaIndex's ``SubQuestionQueryEngine``."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from llama_index.core import Document, PromptTemplate, Settings, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from support.llama_index_models import ScriptedLLM, Words

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine
from nodekin.adapters.llama_index.metadata_filters import as_filters
from nodekin.retrievers import QueryEngine, restrict

QUESTION = "What are the prices, public and true?"
PARTS = {"public": "What is the public price?", "secret": "What is the price of all?"}
PLAN = "\n".join(f"{tool}: {question}" for tool, question in PARTS.items())
OWN_PROMPT = PromptTemplate("OWN PROMPT {context_str} {query_str}")
DOCUMENTS = [
    Document(text="The public price is 10.", id_="a", metadata={"user": "ann"}),
    Document(text="CONFIDENTIAL: the true price is 3.", id_="b", metadata={"user": "bob"}),
]
How = Literal["query", "aquery"]


class WithoutSecrets(BaseNodePostprocessor):
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [node for node in nodes if "CONFIDENTIAL" not in node.text]


class CustomEngine(BaseQueryEngine):
    """An engine without a retriever. It counts its calls."""

    def __init__(self, answer: str | Exception = "It is 12.", sources: bool = True) -> None:
        super().__init__(CallbackManager([]))
        self.answer = answer
        self.calls: list[str] = []
        node = TextNode(text="The catalog says 12.", id_="catalog")
        self.sources = [NodeWithScore(node=node, score=0.5)] if sources else []

    def _get_prompt_modules(self) -> Any:
        return {}

    def _query(self, query_bundle: QueryBundle) -> Response:
        self.calls.append("query")
        if isinstance(self.answer, Exception):
            raise self.answer
        return Response(self.answer, self.sources)

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        self.calls.append("aquery")
        if isinstance(self.answer, Exception):
            raise self.answer
        return Response(self.answer, self.sources)


class Planned(BaseQuestionGenerator):
    """The questions of ``PLAN``, for LlamaIndex's engine."""

    def _get_prompts(self) -> Any:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        pass

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=q, tool_name=tool) for tool, q in PARTS.items()]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


def model(answer: Any) -> ScriptedLLM:
    return ScriptedLLM(answer=answer, prompts=[])


def main_answer(prompt: str) -> str:
    return PLAN if "Simpler questions:" in prompt else "All."


def tools(*engines: BaseQueryEngine) -> list[QueryEngineTool]:
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"Prices: {name}")
        for name, engine in zip(PARTS, engines, strict=True)
    ]


def guarded(llm: ScriptedLLM, index_class: Any = VectorStoreIndex, **options: Any) -> Any:
    """Return an engine that removes secrets and has a prompt of its own."""
    embed = {"embed_model": Words()} if index_class is VectorStoreIndex else {}
    index = index_class.from_documents(DOCUMENTS, **embed)
    return index.as_query_engine(
        llm=llm,
        similarity_top_k=5,
        node_postprocessors=[WithoutSecrets()],
        text_qa_template=OWN_PROMPT,
        **options,
    )


def router(llm: ScriptedLLM) -> BaseQueryEngine:
    choosing = model('[{"choice": 1, "reason": "prices"}]')
    selector = LLMSingleSelector.from_defaults(llm=choosing)
    tool = QueryEngineTool.from_defaults(guarded(llm), name="one", description="One")
    return RouterQueryEngine(selector, [tool], llm=llm)


ENGINES: dict[str, Callable[[ScriptedLLM], BaseQueryEngine]] = {
    "retriever engine with postprocessors": guarded,
    "several answers": lambda llm: guarded(llm, response_mode="accumulate"),
    "without a text": lambda llm: guarded(llm, response_mode="no_text"),
    "stream": lambda llm: guarded(llm, streaming=True),
    "router": router,
    "transform": lambda llm: TransformQueryEngine(guarded(llm), IdentityQueryTransform()),
    "our index": lambda llm: guarded(llm, NodeGraphIndex),
    "custom": lambda llm: CustomEngine(),
    # LlamaIndex's engine catches all exceptions, early versions only ValueError.
    "failing": lambda llm: CustomEngine(io.UnsupportedOperation("no disk")),
}


@pytest.fixture(autouse=True)
def model_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the default model, which LlamaIndex reads even for ``no_text``."""
    monkeypatch.setattr(Settings, "_llm", model("default"))


def asked(engine: Any, how: How) -> Any:
    if how == "query":
        return engine.query(QUESTION)
    return asyncio.run(engine.aquery(QUESTION))


def texts(nodes: Sequence[NodeWithScore]) -> set[str]:
    return {each.text for each in nodes if not each.text.startswith("Sub question:")}


@pytest.mark.parametrize("how", ["query", "aquery"])
@pytest.mark.parametrize("kind", ENGINES)
def test_tools_answer_as_in_sub_question_query_engine(kind: str, how: How) -> None:
    def run(create: Callable[[list[QueryEngineTool], ScriptedLLM], Any]) -> Any:
        main, of_tool, of_other = model(main_answer), model("It is 10."), model("It is open.")
        pair = tools(guarded(of_other), ENGINES[kind](of_tool))
        response = asked(create(pair, main), how)
        return response, main, of_tool, of_other

    theirs, _, *their_models = run(
        lambda pair, llm: SubQuestionQueryEngine.from_defaults(
            pair, llm=llm, question_gen=Planned(), verbose=False, use_async=how == "aquery"
        )
    )
    ours, main, *our_models = run(NodeGraphQueryEngine.from_defaults)
    assert texts(ours.source_nodes) == texts(theirs.source_nodes)
    for our_model, their_model in zip(our_models, their_models, strict=True):
        assert Counter(our_model.prompts) == Counter(their_model.prompts)
    assert not any("CONFIDENTIAL" in each.text for each in ours.source_nodes)
    assert not any("true price is 3" in prompt for prompt in main.prompts)
    answers = [answer.response for _, answer in ours.metadata["sub_qa"]]
    assert answers[0] == "It is open."
    assert "It is open." in main.prompts[-1]
    is_read_elsewhere = kind != "without a text"
    if is_read_elsewhere:  # only the answers reach the main model
        assert not any("The public price is 10." in prompt for prompt in main.prompts)
    assert bool(ours.metadata.get("errors")) == (kind == "failing")


@pytest.mark.parametrize("how", ["query", "aquery"])
def test_custom_engine_is_called_the_same_way(how: How) -> None:
    engine = CustomEngine()
    response = asked(NodeGraphQueryEngine.from_defaults(tools(engine, engine), model(PLAN)), how)
    assert engine.calls == [how, how]
    assert [each.node_id for each in response.source_nodes] == ["catalog"]


def test_sourceless_answer_is_a_source() -> None:
    engine = CustomEngine(sources=False)
    main = model(main_answer)
    response = NodeGraphQueryEngine.from_defaults(tools(engine, engine), main).query(QUESTION)
    assert [answer.response for _, answer in response.metadata["sub_qa"]] == ["It is 12."] * 2
    assert {each.text for each in response.source_nodes} == {"It is 12."}
    assert "It is 12." in main.prompts[-1]


def test_failing_tools_raise_if_all_fail() -> None:
    failing = CustomEngine(OSError("no disk"))
    engine = NodeGraphQueryEngine.from_defaults(tools(failing, failing), model(main_answer))
    with pytest.raises(OSError, match="no disk"):
        engine.query(QUESTION)


class Late(RetrieverQueryEngine):
    """An engine that removes secrets in ``_query``."""

    def _query(self, query_bundle: QueryBundle) -> Any:
        nodes = WithoutSecrets().postprocess_nodes(self.retrieve(query_bundle))
        return self.synthesize(query_bundle, nodes)


@pytest.mark.parametrize("late", [False, True])
def test_retrieve_returns_what_the_tools_show(late: bool) -> None:
    of_tool = model("It is 10.")
    engine = guarded(of_tool)
    if late:
        index = VectorStoreIndex.from_documents(DOCUMENTS, embed_model=Words())
        engine = Late.from_args(index.as_retriever(similarity_top_k=5), llm=of_tool)
    made = NodeGraphQueryEngine.from_defaults(tools(engine, engine), model(main_answer))
    assert texts(made.retrieve(QUESTION)) == {"The public price is 10."}
    assert bool(of_tool.prompts) == late  # only a plain engine can retrieve without an answer


def test_retrieve_asks_an_engine_without_retrieval() -> None:
    engine = CustomEngine()
    made = NodeGraphQueryEngine.from_defaults(tools(engine, engine), model(main_answer))
    assert texts(asyncio.run(made.aretrieve(QUESTION))) == {"The catalog says 12."}
    assert set(engine.calls) == {"aquery"}


def test_equal_ids_of_two_tools_are_two_sources() -> None:
    other = CustomEngine()
    other.sources = [NodeWithScore(node=TextNode(text="It was 11.", id_="catalog"), score=0.5)]
    made = NodeGraphQueryEngine.from_defaults(tools(CustomEngine(), other), model(main_answer))
    assert texts(made.query(QUESTION).source_nodes) == {"The catalog says 12.", "It was 11."}


def test_conditions_reach_engines_of_our_index() -> None:
    pair = tools(*[NodeGraphIndex.from_documents(DOCUMENTS).as_query_engine(model("10."))] * 2)
    filters = as_filters({"user": "ann"})
    made = NodeGraphQueryEngine.from_defaults(pair, model(main_answer), filters=filters)
    assert {each.metadata["user"] for each in made.query(QUESTION).source_nodes} == {"ann"}
    plain = NodeGraphQueryEngine.from_defaults(pair, model(main_answer))
    bound = NodeGraphQueryEngine(restrict(plain.retriever, {"user": "ann"}), model("All."))
    assert {each.metadata["user"] for each in bound.query(QUESTION).source_nodes} == {"ann"}


def test_conditions_of_other_engines_raise() -> None:
    pair = tools(CustomEngine(), CustomEngine())
    made = NodeGraphQueryEngine.from_defaults(pair, model(main_answer), filters={"user": "ann"})
    with pytest.raises(ValueError, match=r"must have a NodeGraphRetriever .* got CustomEngine"):
        made.query(QUESTION)


def test_equal_names_of_tools_raise() -> None:
    with pytest.raises(ValueError, match="the names of tools must differ, got 'public' twice"):
        NodeGraphQueryEngine.from_defaults(tools(CustomEngine(), CustomEngine())[:1] * 2, model(""))


def test_sources_of_our_query_engine_are_sources() -> None:
    graph = NodeGraphIndex.from_documents(DOCUMENTS[:1]).graph
    engine = QueryEngine(graph, lambda prompt: "It costs 10 [1].")
    main = model(main_answer)
    mapping = {name: (f"Prices: {name}", engine) for name in PARTS}
    response = NodeGraphQueryEngine(mapping, main, strategy="sub_question").query(QUESTION)
    assert texts(response.source_nodes) == {"The public price is 10."}
    assert "It costs 10" in main.prompts[-1]
