"""nodekin's decomposition inside LlamaIndex's sub-question engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from nodekin.adapters.llama_index import NodeGraphQueryEngine, NodeGraphQuestionGenerator
from nodekin.nodegraph import ModelError
from nodekin.retrievers import Retriever

Scripted = Callable[[Any], Any]
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


def test_each_question_has_a_tool() -> None:
    assert asked("animals: What do pandas eat?\ntea: Is black tea fermented?") == [
        ("animals", "What do pandas eat?"),
        ("tea", "Is black tea fermented?"),
    ]


def test_the_model_knows_the_tools() -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "tea: 红茶发酵吗？"

    assert asked(model, query=QueryBundle("红茶发酵吗？熊猫吃什么？")) == [("tea", "红茶发酵吗？")]
    assert "- tea: About tea\n- animals: About animals" in prompts[0]
    assert prompts[0].startswith("请")


def test_with_one_tool_all_questions_are_its() -> None:
    said = "1. What do pandas eat?\n2. Is black tea fermented?"
    assert asked(said, TOOLS[:1]) == [
        ("tea", "What do pandas eat?"),
        ("tea", "Is black tea fermented?"),
    ]
    assert asked("NONE", TOOLS[:1], QueryBundle("Is tea green?")) == [("tea", "Is tea green?")]


def test_a_tool_that_there_is_not_is_told_to_the_model(caplog: pytest.LogCaptureFixture) -> None:
    prompts: list[str] = []
    bad = "plants: What is tea?\ntea: Is black tea fermented?"

    def learning(prompt: str) -> str:
        prompts.append(prompt)
        return "tea: What is tea?" if "there is no tool 'plants'" in prompt else bad

    generator = NodeGraphQuestionGenerator(learning)
    (made,) = generator.generate(TOOLS, BOTH)
    assert (made.tool_name, made.sub_question) == ("tea", "What is tea?")
    assert len(prompts) == 2
    with caplog.at_level(logging.WARNING):
        assert asked(bad) == [("tea", "Is black tea fermented?")]
    assert "'What is tea?' for 'plants'" in caplog.text
    with pytest.raises(ModelError, match="no tool 'plants'; the tools are tea, animals"):
        NodeGraphQuestionGenerator(lambda prompt: bad, on_error="raise").generate(TOOLS, BOTH)


@pytest.mark.parametrize("said", ["", "I'm sorry, I can't help.", "NONE", "blah blah"])
def test_an_empty_plan_asks_all_tools_the_question(said: str) -> None:
    assert asked(said) == [("tea", BOTH.query_str), ("animals", BOTH.query_str)]


def test_a_model_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    def failing(prompt: str) -> str:
        raise ConnectionError("gone")

    with caplog.at_level(logging.WARNING):
        assert asked(failing) == [("tea", BOTH.query_str), ("animals", BOTH.query_str)]
    assert "gone" in caplog.text
    assert asked(failing, TOOLS[:1]) == [("tea", BOTH.query_str)]
    with pytest.raises(ModelError, match="gone"):
        NodeGraphQuestionGenerator(failing, on_error="raise").generate(TOOLS, BOTH)


def test_no_more_than_the_limit() -> None:
    said = "\n".join(f"tea: Is tea number {number} black?" for number in range(20))
    assert len(asked(said)) == 5
    assert len(asked(said, limit=2)) == 2


def test_prompts() -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "tea: Is black tea fermented?"

    generator = NodeGraphQuestionGenerator(model)
    assert sorted(generator.get_prompts()) == [
        "decompose_en",
        "decompose_zh",
        "tool_questions_en",
        "tool_questions_zh",
    ]
    generator.update_prompts({"tool_questions_en": PromptTemplate("{tools} MINE {query}")})
    generator.generate(TOOLS, BOTH)
    assert prompts[-1].endswith(f"MINE {BOTH.query_str}")


def test_in_their_sub_question_engine(
    search: Retriever, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = NodeGraphQuestionGenerator()
    said = "animals: 大熊猫的毛是什么颜色的？\ntea: Is black tea fermented?"
    monkeypatch.setattr(Settings, "_llm", scripted(said))
    tools = [
        QueryEngineTool.from_defaults(
            NodeGraphQueryEngine(search, scripted(tool.name), filters={"topic": topic}),
            name=tool.name,
            description=tool.description,
        )
        for tool, topic in zip(TOOLS, ("tea", "panda"), strict=True)
    ]
    llm = scripted("All.")
    engine = SubQuestionQueryEngine.from_defaults(
        tools, question_gen=generator, llm=llm, verbose=False, use_async=False
    )
    response = engine.query(BOTH)
    assert str(response) == "All."
    texts = " ".join(node.text for node in response.source_nodes)
    assert "黑白两色" in texts
    assert "Black tea is fermented" in texts
    assert "question_gen:tool_questions_en" in engine.get_prompts()


def test_without_tools() -> None:
    with pytest.raises(ValueError, match="there are no tools"):
        NodeGraphQuestionGenerator(str.upper).generate([], BOTH)
