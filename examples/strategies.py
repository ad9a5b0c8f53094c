"""Compare all query strategies on one difficult question.

The answers of the language model are scripted. To use your own model: ``OPENAI_BASE_URL=...
OPENAI_MODEL=... python examples/strategies.py``.
"""

import logging
import os
from pathlib import Path
from typing import Any

from nodekin.nodegraph import LLM, NodeGraph, split_paragraphs
from nodekin.retrievers import Retriever, trace
from nodekin.retrievers.strategies.hyde import HyDERetriever
from nodekin.retrievers.strategies.multi_step import MultiStepRetriever
from nodekin.retrievers.strategies.rewrite import MultiQueryRetriever, QueryRewriteRetriever
from nodekin.retrievers.strategies.sub_question import SubQuestionRetriever

QUESTION = "《茶经》作者的故乡在今天的哪个省，那里有什么工程是世界之最？"
SUPPORT = ("陆羽生活在唐代", "世界上装机容量最大的水电站")  # both texts are required for the answer
STRATEGIES: dict[str, tuple[Any, list[str]]] = {
    "rewrite": (QueryRewriteRetriever, ["《茶经》作者陆羽的故乡所在的省有什么世界之最的工程？"]),
    "multi-query": (
        MultiQueryRetriever,
        ["1. 陆羽的故乡在哪个省？\n2. 茶圣的家乡有哪项工程排名世界第一？\n3. 陆羽 家乡 世界之最"],
    ),
    "HyDE": (HyDERetriever, ["陆羽是今湖北天门人，湖北宜昌的三峡水电站是世界上最大的水电站。"]),
    "sub-question": (
        SubQuestionRetriever,
        ["1. 《茶经》的作者是哪里人？\n2. 湖北有什么世界之最的工程？"],
    ),
    "multi-step": (
        MultiStepRetriever,
        [
            "答案：未知\n已回答：否\n下一个问题：《茶经》的作者是哪里人？",
            "答案：湖北天门\n已回答：否\n下一个问题：湖北有哪座世界上最大的水电站？",
            "答案：三峡水电站\n已回答：是\n下一个问题：无",
        ],
    ),
}


def model(replies: list[str]) -> Any:
    """Return the language model that is configured in the environment, or a scripted model."""
    if os.environ.get("OPENAI_BASE_URL"):
        from nodekin.adapters.openai_chat import OpenAIChat

        return OpenAIChat(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
    said = iter(replies)
    return LLM(lambda prompt: next(said), "written down")


def show(name: str, retriever: Any) -> None:
    """Print the queries that were searched, and the ranks of the supporting paragraphs."""
    with trace() as traced:
        results = retriever.retrieve(QUESTION, top_k=3)
    print(f"\n{name}: {len(results)} results, {1000 * (traced.seconds or 0):.0f} ms")
    for query in dict.fromkeys(match.query for each in results for match in each.evidence):
        print(f"    searched  {query}")
    for place, result in enumerate(results, 1):
        needed = any(fact in result.node.text for fact in SUPPORT)
        print(f"  {'*' if needed else ' '} {place}. {result.node.text[:40]}…")


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    graph = NodeGraph(Path(__file__).parent / "data" / "zh", progress=False)
    graph.create_node_group("paragraph", split_paragraphs)
    plain = Retriever(graph, "paragraph", "bm25")
    print(f"{QUESTION}\n(* stands before a paragraph that the answer needs)")
    show("plain", plain)
    for name, (strategy, replies) in STRATEGIES.items():
        show(name, strategy(plain, model(replies)))
