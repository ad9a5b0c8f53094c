"""Chat about the documents in a folder, with follow-up questions and cited answers.

Without a model, the answers are scripted. With a model, you can enter your own questions:
``OPENAI_BASE_URL=... OPENAI_MODEL=... python examples/chat.py [folder]``.
"""

import os
import sys
from pathlib import Path
from typing import Any

from nodekin.nodegraph import LLM, NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import QueryEngine, RecursiveRetriever

PAGES = Path(__file__).parent / "data" / "zh"
QUESTIONS = ["金字塔有多高？", "赵州桥是谁主持建造的？", "它的主拱净跨是多少？"]
REPLIES = [  # the scripted answers; a follow-up question is first condensed to a complete question
    "无答案",  # this means that no page contains the answer
    *("赵州桥是谁主持建造的？", "赵州桥由隋代工匠李春主持建造 [1]。"),
    *("赵州桥的主拱净跨是多少？", "主拱净跨约37米 [1]。"),
]


def model() -> Any:
    """Return the language model that is configured in the environment, or a scripted model."""
    if os.environ.get("OPENAI_BASE_URL"):
        from nodekin.adapters.openai_chat import OpenAIChat

        return OpenAIChat(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
    replies = iter(REPLIES)
    return LLM(lambda prompt: next(replies), "scripted")


def main(folder: Path, questions: Any) -> None:
    """Answer questions one after the other."""
    graph = NodeGraph(folder, progress=False)
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    search = RecursiveRetriever(graph, ["paragraph", "sentence"], target="paragraph", top_k=4)
    engine, history = QueryEngine(search, model()), list[tuple[str, str]]()
    for question in questions:
        print(f"\n> {question}")
        with engine.stream(question, history=history) as stream:
            for text in stream:
                print(text, end="", flush=True)
        print()
        history.append((question, stream.answer.text))
        for source in stream.answer.cited:
            node = source.result.node
            print(f"  [{source.number}] {node.document_id} from character {node.start}")


if __name__ == "__main__":
    ask = os.environ.get("OPENAI_BASE_URL") and sys.stdin.isatty()
    questions = iter(lambda: input("\nquestion: "), "") if ask else QUESTIONS
    main(Path(sys.argv[1]) if sys.argv[1:] else PAGES, questions)
