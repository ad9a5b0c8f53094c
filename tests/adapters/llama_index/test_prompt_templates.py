"""Prompts of strategies and answers as LlamaIndex templates."""

from __future__ import annotations

import pytest
from llama_index.core import PromptTemplate
from query_engine_scripts import (
    BOTH,
    Scripted,
)

from nodekin.adapters.llama_index import (
    NodeGraphQueryEngine,
)
from nodekin.retrievers import (
    QueryEngine,
    Retriever,
)


def test_prompts_are_read_and_replaced(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Is tea black?")
    engine = NodeGraphQueryEngine(search, llm, strategy="rewrite")
    prompts = engine.get_prompts()
    assert {
        "response_synthesizer:refine_template",
        "response_synthesizer:text_qa_template",
        "retriever:rewrite_en",
        "retriever:rewrite_zh",
    } <= set(prompts)
    assert all(name.count(":") == 1 for name in prompts)  # update_prompts breaks on deeper ones
    assert "{query}" in prompts["retriever:rewrite_en"].get_template()
    engine.update_prompts(
        {
            "retriever:rewrite_en": PromptTemplate('Mend as {{"q": ...}}: {query}'),
            "response_synthesizer:text_qa_template": PromptTemplate("From {context_str}"),
        }
    )
    engine.query("black tee")
    assert llm.prompts[0] == 'Mend as {"q": ...}: black tee'
    assert llm.prompts[1].startswith("From ")
    assert engine.get_prompts()["retriever:rewrite_en"].get_template() == (
        'Mend as {{"q": ...}}: {query}'
    )
    with pytest.raises(ValueError, match=r"no place for 'query'; write \{query\}"):
        engine.update_prompts({"retriever:rewrite_en": PromptTemplate("Mend it")})


def test_updating_with_its_own_prompts_changes_nothing(
    search: Retriever, scripted: Scripted
) -> None:
    for strategy in ("rewrite", "hyde", "multi_query", "sub_question", "multi_step"):
        llm = scripted("Is tea black?")
        engine = NodeGraphQueryEngine(search, llm, strategy=strategy)
        engine.query(BOTH)
        before = list(llm.prompts)
        engine.update_prompts(engine.get_prompts())
        llm.prompts.clear()
        engine.query(BOTH)
        assert sorted(llm.prompts) == sorted(before)


def test_prompts_of_the_query_engine(search: Retriever) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "Tea [1]."

    given = QueryEngine(search, model)
    engine = NodeGraphQueryEngine(given)
    assert "response_synthesizer:answer_en" in engine.get_prompts()
    mine = PromptTemplate("{passages} Q: {question}")
    engine.update_prompts({"response_synthesizer:answer_en": mine})
    engine.query("Which tea is black?")
    assert asked[-1].endswith(" Q: Which tea is black?")
    assert given.prompts["answer"].en != "{passages} Q: {question}"
