"""Prompts of strategies and answers as LlamaIndex templates."""

from __future__ import annotations

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.llms import MockLLM
from query_engine_scripts import (
    BOTH,
    Scripted,
)

from nodekin.adapters.llama_index import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.retrievers import (
    BaseRetriever,
    FusionRetriever,
    QueryEngine,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.strategies.rewrite import QueryRewriteRetriever
from nodekin.retrievers.strategies.router import RouterRetriever


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


def test_prompts_at_any_depth_are_read_and_replaced(search: Retriever) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "black tea"

    rewrite = QueryRewriteRetriever(search, model)
    reranked = RerankRetriever(
        rewrite, "ModuleReranker", model=lambda query, texts: [1.0] * len(texts)
    )
    router = RouterRetriever({"a.b:c": reranked}, lambda prompt: "a.b:c")
    outermost = QueryRewriteRetriever(FusionRetriever([search, router]), model)
    engine = NodeGraphQueryEngine(outermost, MockLLM())
    inner = "retriever:inner.1.a%2Eb%3Ac.inner.rewrite_en"
    prompts = engine.get_prompts()
    assert {"retriever:rewrite_en", inner} <= set(prompts)
    assert all(name.count(":") == 1 for name in prompts)
    engine.update_prompts(prompts)
    engine.query("tee")
    before, asked[:] = list(asked), []
    engine.update_prompts({inner: PromptTemplate("Inner {query}")})
    engine.query("tee")
    assert asked == [before[0], "Inner black tea"]
    engine.update_prompts({"retriever:rewrite_en": PromptTemplate("Outer {query}")})
    assert engine.get_prompts()[inner].get_template() == "Inner {query}"
    asked.clear()
    engine.query("tee")
    assert asked == ["Outer tee", "Inner black tea"]
    asked.clear()
    outermost.retrieve("tee")  # it is the user's, and keeps its own
    assert asked == before
    with pytest.raises(ValueError, match=r"no place for 'query'"):
        engine.update_prompts({inner: PromptTemplate("Mend it")})


def test_prompts_of_tools_and_references(search: Retriever) -> None:
    def rewriting() -> QueryRewriteRetriever:
        return QueryRewriteRetriever(search, str.upper)

    tools = SubQuestionRetriever({"tea": rewriting()}, str.upper)
    recursive = RecursiveRetriever(
        search.graphs, ["ROOT"], references={"tea": rewriting()}, similarity="bm25"
    )
    for holder in (tools, recursive):
        retriever = NodeGraphRetriever(holder)
        retriever.update_prompts({"tea.rewrite_en": PromptTemplate("Mine {query}")})
        assert retriever.get_prompts()["tea.rewrite_en"].get_template() == "Mine {query}"
        ((_, changed),) = retriever.retriever.inner_retrievers
        assert changed.prompts["rewrite"].en == "Mine {query}"
        assert changed not in [one for _, one in holder.inner_retrievers]
    ((_, branch),) = NodeGraphRetriever(tools).retriever.inner_retrievers
    assert branch.prompts["rewrite"].en != "Mine {query}"


def test_a_class_that_does_not_say_how_it_holds_a_strategy_is_an_error(search: Retriever) -> None:
    class First(BaseRetriever):
        def __init__(self, one):
            self.ones = [one]

        @property
        def inner_retrievers(self):
            return [("first one", self.ones[0])]

        def retrieve(self, query, *, top_k=None, filters=None):
            return self.ones[0].retrieve(query, top_k=top_k, filters=filters)

    retriever = NodeGraphRetriever(First(QueryRewriteRetriever(search, str.upper)))
    (name, *_) = retriever.get_prompts()
    with pytest.raises(TypeError, match="override _replace_inner_retrievers"):
        retriever.update_prompts({name: PromptTemplate("Mine {query}")})
