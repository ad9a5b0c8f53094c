"""nodekin's query strategies in LangChain, with LangChain's models."""

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from support.langchain_peers import TEMPLATES, Recording
from support.langchain_runs import call

from nodekin.adapters.langchain import NodeGraphRetriever, engine_runnable
from nodekin.nodegraph import LLMExtractor
from nodekin.retrievers import (
    QueryEngine,
    Retriever,
)
from nodekin.retrievers.strategies.strategy_registry import make_strategy

QUESTION = "Which tea is fermented?"


class Broken(FakeListChatModel):
    def _call(self, *args, **kwargs):
        raise ConnectionError("the first model is down")


@pytest.fixture
def fallback():
    answering = FakeListChatModel(responses=["Which tea is green?"])
    return Broken(responses=[""]).with_fallbacks([answering])


def test_engine_takes_model_with_fallbacks(loaded_graph, fallback):
    engine = engine_runnable(QueryEngine(Retriever(loaded_graph, "ROOT"), fallback))
    assert engine.invoke("green tea") == "Which tea is green?"
    assert "".join(engine.stream("green tea")) == "Which tea is green?"
    loaded_graph.create_node_group("question", LLMExtractor(fallback, "questions"))
    assert {node.text for node in loaded_graph.nodes("question")} == {"Which tea is green?"}


@pytest.mark.parametrize("name", ["rewrite", "multi_query", "hyde", "sub_question"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_strategies_take_langchain_prompts(loaded_graph, template, name):
    model = Recording(responses=["Which tea is green?"])
    inner = Retriever(loaded_graph, "ROOT", "cosine")
    retriever = make_strategy(name, inner, model, prompt=template)
    assert NodeGraphRetriever(retriever=retriever).invoke("tea?")
    *system, (role, text) = model.sent[0]
    assert (role, text) == ("human", "Search for: tea?")
    assert system == ([("system", "You search.")] if template is TEMPLATES[-1] else [])


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_engine_takes_langchain_prompt(loaded_graph, way):
    prompt = ChatPromptTemplate(
        [("system", "Use the context to answer.\n\n{context}"), ("human", "{input}")]
    )
    model = Recording(responses=["It is steamed."])
    search = Retriever(loaded_graph, "ROOT", "bm25", top_k=1)
    engine = QueryEngine(search, model, prompts={"answer": prompt})
    answers = engine_runnable(engine)
    assert await call(answers, way, "green tea") == "It is steamed."
    (((system, context), (human, question)),) = model.sent
    assert (system, human, question) == ("system", "human", "green tea")
    assert context.startswith("Use the context to answer.\n\n")
    assert "Green tea is steamed." in context
