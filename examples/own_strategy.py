"""Write a custom strategy that also searches for a more general question.

The answers of the language model are scripted. To use a real model, set ``OPENAI_BASE_URL`` and
``OPENAI_MODEL``. The idea is from Zheng et al., "Take a step back: evoking reasoning via
abstraction", 2023.
"""

import os
from pathlib import Path
from typing import Any

from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Prompt, Retriever
from nodekin.retrievers.strategies.model_prompt import QueryTransform, QueryVariants
from nodekin.retrievers.strategies.transform_retriever import TransformRetriever

QUESTION = "如果塔科马的那条狗没有死，今天造桥的人还会先吹风吗？"
GENERAL = "大跨度桥梁的设计为什么要做风洞试验？"


class StepBack(QueryTransform):
    """A query transform in which a model adds a more general question to the query."""

    name = "step back"
    supplements = True  # the original query is searched as well
    PROMPT = Prompt(
        zh="写出一个更一般的问题，它的答案有助于回答下面的问题。只写问题。\n\n{query}",
        en="Write a more general question.hose answer helps to answer this one:\n\n{query}",
        required=("query",),
    )

    async def variants(self, query: str) -> QueryVariants:
        """Return the more general question."""
        general = await self.ask(query, str.strip)
        return QueryVariants((general,))


class StepBackRetriever(TransformRetriever):
    """A retriever that searches for a query and a more general question, and fuses the results."""

    name, variant_name = "step-back search", "more general question"


def model() -> Any:
    """Return the language model that is configured in the environment, or a scripted model."""
    if os.environ.get("OPENAI_BASE_URL"):
        from nodekin.adapters.openai_chat import OpenAIChat

        return OpenAIChat(os.environ["OPENAI_MODEL"])
    return lambda prompt: GENERAL


if __name__ == "__main__":
    graph = NodeGraph(Path(__file__).parent / "data" / "zh", progress=False)
    graph.create_node_group("sentence", split_sentences)
    plain = Retriever(graph, "sentence", "bm25", top_k=2)
    step_back = StepBack(model(), timeout=60)
    for retriever in (plain, StepBackRetriever(plain, step_back)):
        print(f"{type(retriever).__name__}: {QUESTION}")
        for result in retriever(QUESTION):
            print(f"{result.explain()}\n")
