"""Search recursively in LlamaIndex by sub-chunks, summaries and questions.

The graph is saved and loaded again. The language model is scripted. Replace it with any LlamaIndex
model.
"""

import logging
import tempfile
from pathlib import Path

from nodekin import retrievers

try:
    from nodekin.adapters.llama_index import NodeGraphRetriever
except ImportError as error:
    raise SystemExit(f"This example needs more: {error}") from None
from nodekin.nodegraph import LLM, LLMExtractor, NodeGraph, SentenceSplitter, split_paragraphs
from nodekin.retrievers import QueryEngine, Retriever

DATA = Path(__file__).parent / "data" / "zh"
QUESTIONS = ("乌龙茶是哪一种发酵茶？", "国宝一天到晚都在吃什么？")
ASKED = {"大熊猫": "国宝大熊猫一天到晚都在吃什么？", "长江": "中国最长的河流有多长？"}
CLUES = {"乌龙茶": "半发酵", "吃": "食物"}
SUB_CHUNKS = {"chunk 128": 128, "chunk 64": 64, "chunk 32": 32}
calls: list[str] = []


def stand_in(prompt: str) -> str:
    """Answer a prompt in place of a language model.

    The answer consists of first sentences, fixed questions, or a fixed answer.
    """
    calls.append(prompt)
    if "<passage>" in prompt:
        passage = prompt.partition("<passage>\n[1]")[2].partition("</passage>")[0]
        question = prompt.rpartition("问题：")[2]
        clue = next(clue for word, clue in CLUES.items() if word in question)
        sentences = passage.strip().split("\n", 1)[-1].split("。")
        return next((each for each in sentences if clue in each), sentences[0]) + "。[1]"
    text = prompt.partition("<text>\n")[2]
    first = next(line for line in text.splitlines() if line and not line.startswith("#"))
    first = first.partition("。")[0]
    if "摘要：" in prompt:
        return f"{first[:40]}。"
    return next((asks for name, asks in ASKED.items() if first.startswith(name)), "无")


model = LLM(stand_in, "stand-in")


def open_graph(file: Path) -> NodeGraph:
    """Open or create a graph file. Each group is built and stored when it is first searched."""
    graph = NodeGraph(DATA, store=file, progress=False)
    graph.create_node_group("base", split_paragraphs)
    for name, size in SUB_CHUNKS.items():
        graph.create_node_group(name, SentenceSplitter(size, 8), parent="base")
    graph.create_node_group("summary", LLMExtractor(model, "summary"), parent="base")
    graph.create_node_group("questions", LLMExtractor(model, "questions"), parent="base")
    return graph


def ask(title: str, question: str, retriever: Retriever | retrievers.RecursiveRetriever) -> None:
    """Retrieve with LlamaIndex, print the returned node and the child that matched, and answer."""
    best = NodeGraphRetriever(retriever).retrieve(question)[0]
    match = best.evidence[0]
    start = best.text.rpartition("\n")[2][:9]  # the start of the text, without its heading
    print(f"  {title}: {start}… by {match['group']}: {match['text'][:20]}…")
    print(f"      {str(QueryEngine(retriever, model).query(question))[:40]}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        for title in ("built", "loaded"):
            calls.clear()
            with open_graph(Path(folder, "corpus.nodekin")) as graph:
                plain = Retriever(graph, "base", top_k=2)
                chunks = retrievers.RecursiveRetriever(
                    graph, [*SUB_CHUNKS, "base"], "base", top_k=2
                )
                told = retrievers.RecursiveRetriever(
                    graph, ["summary", "questions"], "base", top_k=2
                )
                for question in QUESTIONS:
                    print(question)
                    ask("plain", question, plain)
                    ask("chunk references", question, chunks)
                    ask("metadata references", question, told)
                made = sum("<text>" in prompt for prompt in calls)
                print(
                    f"{title}: {len(graph.nodes('base'))} base nodes, {made} texts told by models"
                )
