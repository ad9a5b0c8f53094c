"""Query transforms and question generation in LlamaIndex."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.retrievers import TransformRetriever
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import ToolMetadata

from nodekin.adapters.llama_index import (
    NodeGraphQueryTransform,
    NodeGraphQuestionGenerator,
    NodeGraphRetriever,
)
from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import Retriever

Scripted = Callable[[Any], Any]


def test_rewrite_replaces_the_query() -> None:
    rewrite = NodeGraphQueryTransform("rewrite", lambda prompt: "Which tea is fermented?")
    given = QueryBundle("fermentd tee", custom_embedding_strs=["x"], embedding=[1.0])
    made = rewrite.run(given)
    assert made == QueryBundle("Which tea is fermented?")
    assert made.embedding_strs == ["Which tea is fermented?"]
    assert given == QueryBundle("fermentd tee", custom_embedding_strs=["x"], embedding=[1.0])
    assert rewrite("fermentd tee") == made
    assert asyncio.run(rewrite.arun("fermentd tee")) == made


@pytest.mark.parametrize("include", [True, False])
def test_hyde_passages_become_embedding_strings(include: bool) -> None:
    hyde = NodeGraphQueryTransform(
        "hyde", lambda prompt: "Black tea is fermented.", include_query=include
    )
    made = hyde.run(QueryBundle("Which tea?", embedding=[1.0]))
    assert made.query_str == "Which tea?"
    assert made.embedding is None
    expected = ["Which tea?", "Black tea is fermented."] if include else ["Black tea is fermented."]
    assert made.custom_embedding_strs == expected


def test_failed_model_keeps_the_query_or_raises() -> None:
    def failing(prompt: str) -> str:
        raise ConnectionError("gone")

    for name in ("rewrite", "hyde", "expand"):
        assert NodeGraphQueryTransform(name, failing).run("Tea?") == QueryBundle("Tea?")
        with pytest.raises(ModelError, match="gone"):
            NodeGraphQueryTransform(name, failing, on_error="raise").run("Tea?")


def test_transform_in_transform_query_engine(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("How did tea come to Europe?")
    engine = TransformQueryEngine(
        RetrieverQueryEngine.from_args(NodeGraphRetriever(search), llm=scripted("By sea.")),
        NodeGraphQueryTransform("rewrite", llm),
    )
    response = engine.query("tee 2 europe")
    assert response.source_nodes[0].text == "Tea came to Europe by sea."
    assert str(asyncio.run(engine.aquery("tee 2 europe"))) == "By sea."
    name = "query_transform:rewrite_en"
    engine.update_prompts({name: PromptTemplate("MINE {query}")})
    engine.query("tee 2 europe")
    assert llm.prompts[-1] == "MINE tee 2 europe"


def letters(texts: list[str]) -> list[list[float]]:
    return [[1.0 + text.count(letter) for letter in "aeiouztl"] for text in texts]


def test_vector_search_reads_the_embedding_strings(scripted: Scripted) -> None:
    graph = NodeGraph(embed=letters)
    graph.add(["zzzz", "tttt llll", "aaaa"])
    dense = NodeGraphRetriever(Retriever(graph, "ROOT", "cosine", top_k=1))
    words = NodeGraphRetriever(Retriever(graph, "ROOT", "bm25", top_k=1))
    hyde = NodeGraphQueryTransform("hyde", lambda prompt: "zzzzzzzz. Zz zz zzzz.")
    assert dense.retrieve("aaaa")[0].text == "aaaa"
    found = TransformRetriever(dense, hyde).retrieve("aaaa")
    bundle = hyde.run("aaaa")
    assert [each.text for each in found] == ["zzzz"]
    assert asyncio.run(dense.aretrieve(bundle))[0].score == found[0].score
    assert words.retrieve(bundle)[0].text == "aaaa"
    same = QueryBundle("aaaa", custom_embedding_strs=["aaaa"])
    assert dense.retrieve(same)[0].score == dense.retrieve("aaaa")[0].score


TOOLS = [
    ToolMetadata(name="tea", description="About\n  tea"),
    ToolMetadata(name="animals", description="About animals"),
]
BOTH = QueryBundle("What do pandas eat, and is black tea fermented?")


def asked(said: Any, tools: Any = TOOLS, query: QueryBundle = BOTH, **settings: Any) -> Any:
    generator = NodeGraphQuestionGenerator(
        said if callable(said) else lambda prompt: said, **settings
    )
    made = [(each.tool_name, each.sub_question) for each in generator.generate(tools, query)]
    again = asyncio.run(generator.agenerate(tools, query))
    assert made == [(each.tool_name, each.sub_question) for each in again]
    return made


def test_questions_are_assigned_to_tools() -> None:
    assert asked("animals: What do pandas eat?\ntea: Is black tea fermented?") == [
        ("animals", "What do pandas eat?"),
        ("tea", "Is black tea fermented?"),
    ]


def test_prompt_lists_the_tools() -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "tea: 红茶发酵吗？"

    assert asked(model, query=QueryBundle("红茶发酵吗？熊猫吃什么？")) == [("tea", "红茶发酵吗？")]
    assert "- tea: About tea\n- animals: About animals" in prompts[0]
    assert "请把问题分解" in prompts[0]


def test_unknown_tool_is_retried_then_omitted(caplog: pytest.LogCaptureFixture) -> None:
    prompts: list[str] = []
    bad = "plants: What is tea?\ntea: Is black tea fermented?"

    def learning(prompt: str) -> str:
        prompts.append(prompt)
        return "tea: What is tea?" if "unknown tool 'plants'" in prompt else bad

    generator = NodeGraphQuestionGenerator(learning)
    (made,) = generator.generate(TOOLS, BOTH)
    assert (made.tool_name, made.sub_question) == ("tea", "What is tea?")
    assert len(prompts) == 2
    with caplog.at_level(logging.WARNING):
        assert asked(bad) == [("tea", "Is black tea fermented?")]
    assert "unknown tool: plants: What is tea?" in caplog.text
    with pytest.raises(ModelError, match="unknown tool 'plants'; the tools are tea, animals"):
        NodeGraphQuestionGenerator(lambda prompt: bad, on_error="raise").generate(TOOLS, BOTH)


@pytest.mark.parametrize("said", ["", "I'm sorry, I can't help.", "NONE", "blah blah"])
def test_empty_plan_asks_all_tools_the_query(said: str) -> None:
    assert asked(said) == [("tea", BOTH.query_str), ("animals", BOTH.query_str)]


def test_failed_model_asks_all_tools_the_query(caplog: pytest.LogCaptureFixture) -> None:
    def failing(prompt: str) -> str:
        raise ConnectionError("gone")

    with caplog.at_level(logging.WARNING):
        assert asked(failing) == [("tea", BOTH.query_str), ("animals", BOTH.query_str)]
    assert "gone" in caplog.text
    assert asked(failing, TOOLS[:1]) == [("tea", BOTH.query_str)]
    with pytest.raises(ModelError, match="gone"):
        NodeGraphQuestionGenerator(failing, on_error="raise").generate(TOOLS, BOTH)


def test_prompts_are_read_and_replaced() -> None:
    prompts: list[str] = []
    generator = NodeGraphQuestionGenerator(lambda prompt: prompts.append(prompt) or "tea: Is it?")
    names = {f"{name}_{lang}" for name in ("decompose", "tool_questions") for lang in ("en", "zh")}
    assert {*generator.get_prompts()} == names
    generator.update_prompts({"tool_questions_en": PromptTemplate("{tools} MINE {query}")})
    generator.generate(TOOLS, BOTH)
    assert prompts[-1].endswith(f"MINE {BOTH.query_str}")


def test_wrong_arguments_raise() -> None:
    with pytest.raises(ValueError, match="unknown query transform 'rewite'; known: 'rewrite'"):
        NodeGraphQueryTransform("rewite", str.upper)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one tool, got none"):
        NodeGraphQuestionGenerator(str.upper).generate([], BOTH)
