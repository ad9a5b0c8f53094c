"""Let a language model extract metadata filters from a question.

The answers of the model are scripted. To use a real model, set ``OPENAI_BASE_URL`` and
``OPENAI_MODEL``.
"""

import os
from datetime import date
from typing import Any

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import SelfQueryRetriever, as_retriever

NOTES = [
    ("Trains between Bergen and Oslo were late again.", "travel", "2024-04-02", 3),
    ("The night train to Bergen has new beds.", "travel", "2023-11-20", 5),
    ("Bergen opens a museum of tea.", "culture", "2024-04-18", 4),
    ("杭州到北京的列车提速。", "旅行", "2024-03-05", 4),
    ("杭州茶叶博物馆延长开放时间。", "文化", "2023-12-01", 5),
]

ANSWERS = {
    "Which notes on Bergen are from last month?": (
        '{"query": "Bergen", "filters": {"day": {"gte": "2024-04-01", "lt": "2024-05-01"}}}'
    ),
    "Bergen by train, only the best rated": (
        '{"query": "Bergen train", "filters": {"topic": "travel", "stars": {"gte": 5}}}'
    ),
    "去年有哪些关于杭州的文化消息？": (
        '{"query": "杭州", "filters": {"topic": "文化", "day": "2023"}}'
    ),
    "Who wrote about Bergen?": '{"query": "Bergen", "filters": {"author": "anyone"}}',
}


def model() -> Any:
    """Return the language model that is configured in the environment, or a scripted model."""
    if os.environ.get("OPENAI_BASE_URL"):
        from nodekin.adapters.openai_chat import OpenAIChat

        return OpenAIChat(os.environ["OPENAI_MODEL"])
    return lambda prompt: next(text for asked, text in ANSWERS.items() if asked in prompt)


if __name__ == "__main__":
    graph = NodeGraph(progress=False)
    for text, topic, day, stars in NOTES:
        graph.add(Document(text, {"topic": topic, "day": day, "stars": stars}))
    retriever = SelfQueryRetriever(as_retriever(graph), model(), now=date(2024, 5, 15), top_k=3)
    for question in ANSWERS:
        print(question)
        for result in retriever(question):
            print(f"  {result.text} {result.node.metadata['day']}")
            variants = result.evidence[0].variants
            print(f"    {variants[0].note if variants else 'no conditions'}")
