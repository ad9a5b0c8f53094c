"""Node postprocessors before the model of a strategy, and before the sources of a response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from support.llama_index_models import ScriptedLLM, Words, closed_memories  # noqa: F401

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.retrievers import QueryEngine, WindowRetriever, restrict
from nodekin.retrievers.strategies.strategy_registry import make_strategy

QUESTION = "What are the prices, public and true?"
SECRET = "CONFIDENTIAL"
DOCUMENTS = [
    Document(text="The public price is 10.", id_="a", metadata={"user": "ann"}),
    Document(text=f"{SECRET}: the true price of all is 3.", id_="b", metadata={"user": "ann"}),
    Document(text="The true price was 12 a year ago.", id_="c", metadata={"user": "bob"}),
]
STRATEGIES = ["none", "rewrite", "multi_query", "hyde", "sub_question", "multi_step"]
READING = ["sub_question", "multi_step"]
CALLS = ["query", "aquery", "retrieve", "aretrieve"]
Answer = Callable[[str], str]


class WithoutSecrets(BaseNodePostprocessor):
    queries: list[str] = Field(default_factory=list)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.queries.append("" if query_bundle is None else query_bundle.query_str)
        return [node for node in nodes if SECRET not in node.text]


class Masked(BaseNodePostprocessor):
    """A postprocessor that changes nodes, in place or in copies."""

    in_place: bool

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        masked: list[NodeWithScore] = []
        for each in nodes:
            node = each.node if self.in_place else each.node.model_copy(deep=True)
            node.set_content(node.get_content().replace(SECRET, "***"))
            masked.append(each if self.in_place else NodeWithScore(node=node, score=each.score))
        return masked


class Reversed(BaseNodePostprocessor):
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return nodes[::-1]


class Added(BaseNodePostprocessor):
    """A postprocessor that adds a node which no retriever found, without a score."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [*nodes, NodeWithScore(node=TextNode(text="Added: prices rise.", id_="added"))]


def model() -> ScriptedLLM:
    steps = iter(range(1, 100))

    def answer(prompt: str) -> str:
        if "Simpler questions:" in prompt:
            return "What is the public price?\nWhat is the true price of all?"
        if "Next question" in prompt or '"known"' in prompt:
            number = next(steps)
            return f"Answer: unknown\nAnswered: no\nNext question: Is the true price {number}?"
        return "It is 3." if SECRET in prompt else "It is 10."

    return ScriptedLLM(answer=answer, prompts=[])


def theirs() -> Any:
    index = VectorStoreIndex.from_documents(DOCUMENTS, embed_model=Words())
    return index.as_retriever(similarity_top_k=5)


def ours() -> NodeGraphRetriever:
    return NodeGraphIndex.from_documents(DOCUMENTS).as_retriever(similarity_top_k=5)


def of_index(llm: ScriptedLLM, **options: Any) -> Any:
    return NodeGraphIndex.from_documents(DOCUMENTS).as_query_engine(
        llm, similarity_top_k=5, **options
    )


ENGINES: dict[str, Callable[..., Any]] = {
    "a retriever of LlamaIndex": lambda llm, **o: NodeGraphQueryEngine(theirs(), llm, **o),
    "our retriever": lambda llm, **o: NodeGraphQueryEngine(ours(), llm, **o),
    "our index": of_index,
}


def called(engine: Any, how: str, question: str = QUESTION) -> Any:
    result = getattr(engine, how)(question)
    return asyncio.run(result) if how.startswith("a") else result


def shown(response: Any) -> list[str]:
    """Return the texts of all nodes that a program can read in a response."""
    if isinstance(response, list):
        return [each.text for each in response]
    parts = (response.metadata or {}).get("sub_qa", [])
    nodes = [*response.source_nodes, *(node for _, part in parts for node in part.source_nodes)]
    return [each.text for each in nodes]


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ENGINES)
def test_removed_nodes_reach_no_prompt_or_source(kind: str, strategy: str, how: str) -> None:
    llm = model()
    engine = ENGINES[kind](llm, strategy=strategy, node_postprocessors=[WithoutSecrets()])
    texts = shown(called(engine, how))
    assert "The public price is 10." in texts
    assert not any(SECRET in text for text in [*texts, *llm.prompts])


@pytest.mark.parametrize("strategy", READING)
def test_each_retrieval_passes_with_its_question(strategy: str) -> None:
    without = WithoutSecrets(queries=[])
    engine = ENGINES["our index"](model(), strategy=strategy, node_postprocessors=[without])
    response = engine.query(QUESTION)
    parts = {question for question, _ in response.metadata["sub_qa"]}
    assert parts
    assert set(without.queries) == {QUESTION, *parts}


@pytest.mark.parametrize("how", ["query", "aquery"])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("strategy", READING)
def test_changed_nodes_are_read_as_changed(strategy: str, in_place: bool, how: str) -> None:
    llm = model()
    masked = Masked(in_place=in_place)
    engine = ENGINES["our index"](llm, strategy=strategy, node_postprocessors=[masked])
    texts = shown(called(engine, how))
    assert "***: the true price of all is 3." in texts
    assert any("***: the true price" in prompt for prompt in llm.prompts[:-1])
    assert not any(SECRET in text for text in [*texts, *llm.prompts])


def test_order_of_postprocessors_is_the_order_of_parts() -> None:
    def parts(**options: Any) -> list[list[str]]:
        engine = ENGINES["our index"](model(), strategy="sub_question", **options)
        answers = engine.query(QUESTION).metadata["sub_qa"]
        return [[node.text for node in answer.source_nodes] for _, answer in answers]

    reversed_parts = [texts[::-1] for texts in parts()]
    assert max(map(len, reversed_parts)) > 1
    assert parts(node_postprocessors=[Reversed()]) == reversed_parts


def test_added_nodes_are_read_by_the_strategy() -> None:
    llm = model()
    engine = ENGINES["our index"](llm, strategy="sub_question", node_postprocessors=[Added()])
    assert "Added: prices rise." in shown(engine.query(QUESTION))
    assert sum("Added: prices rise." in prompt for prompt in llm.prompts[:-1]) == 2


def nested(llm: ScriptedLLM) -> Any:
    parts = make_strategy("sub_question", ours(), llm, answers=True)
    return WindowRetriever(make_strategy("rewrite", parts, llm))


def in_fusion(llm: ScriptedLLM) -> Any:
    parts = make_strategy("sub_question", ours(), llm)
    fused = QueryFusionRetriever(
        [NodeGraphRetriever(parts)], llm=llm, num_queries=1, use_async=False
    )
    return fused


@pytest.mark.parametrize("how", ["query", "aquery"])
@pytest.mark.parametrize("source", [nested, in_fusion])
def test_removed_nodes_of_inner_strategies_are_hidden(source: Any, how: str) -> None:
    llm = model()
    engine = NodeGraphQueryEngine(source(llm), llm, node_postprocessors=[WithoutSecrets()])
    response = called(engine, how)
    assert response.metadata["sub_qa"]
    assert not any(SECRET in text for text in [*shown(response), *llm.prompts])


def test_answer_without_remaining_sources_is_removed() -> None:
    graph = NodeGraphIndex.from_documents(DOCUMENTS[1:2]).graph
    secret = QueryEngine(graph, lambda prompt: "It costs 3 [1].")
    plain = QueryEngine(
        NodeGraphIndex.from_documents(DOCUMENTS[:1]).graph, lambda prompt: "It costs 10 [1]."
    )
    llm = ScriptedLLM(
        answer=lambda prompt: (
            "plain: What is the price?\nsecret: What is the true price?"
            if "Simpler questions:" in prompt
            else "All."
        ),
        prompts=[],
    )
    tools = {"plain": ("Prices", plain), "secret": ("True prices", secret)}
    options: dict[str, Any] = {"node_postprocessors": [WithoutSecrets()]}
    engine = NodeGraphQueryEngine(tools, llm, strategy="sub_question", **options)
    for how in ("query", "aquery"):
        response = called(engine, how)
        assert set(shown(response)) == {"The public price is 10."}
        answers = [str(answer.response) for _, answer in response.metadata["sub_qa"]]
        assert [("10" in answer, "3" in answer) for answer in answers] == [
            (True, False),
            (False, False),
        ]
        assert "It costs 10" in llm.prompts[-1]
        assert "It costs 3" not in llm.prompts[-1]


@pytest.mark.parametrize("strategy", READING)
def test_postprocessors_keep_the_restriction(strategy: str) -> None:
    llm = model()
    retriever = NodeGraphIndex.from_documents(DOCUMENTS).as_retriever(similarity_top_k=5)
    mine = restrict(retriever.native_retriever, {"user": "bob"})
    options: dict[str, Any] = {"node_postprocessors": [WithoutSecrets(), Masked(in_place=False)]}
    engine = NodeGraphQueryEngine(mine, llm, strategy=strategy, **options)
    assert set(shown(engine.query(QUESTION))) == {DOCUMENTS[2].text}


@pytest.mark.parametrize("strategy", READING)
def test_unchanging_postprocessors_change_no_source(strategy: str) -> None:
    def sources(**options: Any) -> list[tuple[str, float, str]]:
        index = NodeGraphIndex(nodes=[TextNode(text=d.text, id_=d.id_) for d in DOCUMENTS[::2]])
        engine = index.as_query_engine(model(), strategy=strategy, **options)
        nodes = engine.query(QUESTION).source_nodes
        return [(each.node_id, each.score, str(each.evidence)) for each in nodes]

    assert sources(node_postprocessors=[WithoutSecrets()]) == sources()


@pytest.mark.usefixtures("closed_memories")
def test_postprocessors_of_chat_engines_apply() -> None:
    for mode in ("condense_question", "context", "condense_plus_context"):
        llm = model()
        index = NodeGraphIndex.from_documents(DOCUMENTS)
        options: dict[str, Any] = {"node_postprocessors": [WithoutSecrets()]}
        engine = index.as_chat_engine(mode, llm, similarity_top_k=5, **options)
        response = engine.chat(QUESTION)
        assert response.source_nodes
        assert not any(SECRET in text for text in [*shown(response), *llm.prompts])


def test_prompts_of_a_postprocessed_strategy_change() -> None:
    llm = model()
    options: dict[str, Any] = {"node_postprocessors": [WithoutSecrets()]}
    engine = ENGINES["our index"](llm, strategy="sub_question", **options)
    name = "retriever:partial_answer_en"
    engine.update_prompts({name: PromptTemplate("MINE {query} {context}")})
    assert not any(SECRET in text for text in [*shown(engine.query(QUESTION)), *llm.prompts])
    assert sum(prompt.startswith("MINE") for prompt in llm.prompts) == 2
