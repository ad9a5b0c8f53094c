"""nodekin's prompts as LlamaIndex templates."""

from __future__ import annotations

import pytest
from llama_index.core import PromptTemplate
from support.query_engine_scripts import Scripted

from nodekin.adapters.llama_index import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.retrievers import Retriever
from nodekin.retrievers.strategies.strategy_registry import make_strategy


def test_prompts_are_read_and_replaced_one_level_deep(
    search: Retriever, scripted: Scripted
) -> None:
    llm = scripted("How did tea come to Europe?")
    engine = NodeGraphQueryEngine(search, llm, strategy="rewrite")
    names = {"retriever:rewrite_en", "retriever:rewrite_zh"}
    prompts = engine.get_prompts()
    assert names < {*prompts}
    assert "response_synthesizer:text_qa_template" in prompts
    assert "{query}" in prompts["retriever:rewrite_en"].get_template()
    engine.update_prompts({"retriever:rewrite_en": PromptTemplate('MINE {{"a": 1}} {query}')})
    engine.query("tee 2 europe")
    assert llm.prompts[0] == 'MINE {"a": 1} tee 2 europe'
    engine.query("茶")
    assert not llm.prompts[-2].startswith("MINE")
    with pytest.raises(ValueError, match=r"must contain \{query\}"):
        engine.update_prompts({"retriever:rewrite_en": PromptTemplate("MINE")})


def test_prompts_of_another_engine_stay(search: Retriever, scripted: Scripted) -> None:
    strategy = make_strategy("rewrite", search, scripted("Tea?"))
    first = NodeGraphQueryEngine(NodeGraphRetriever(strategy), scripted("Tea."))
    second = NodeGraphQueryEngine(NodeGraphRetriever(strategy), scripted("Tea."))
    first.update_prompts({"retriever:rewrite_en": PromptTemplate("MINE {query}")})
    assert first.get_prompts()["retriever:rewrite_en"].get_template() == "MINE {query}"
    assert second.get_prompts()["retriever:rewrite_en"].get_template() != "MINE {query}"
