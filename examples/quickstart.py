"""Search sentences, answer with their paragraphs: alone, in LangChain and in LlamaIndex.

Run it with ``make demo``; on your own files with ``make demo DOCS=folder ASK="a question"``.
"""

import os
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics  # Python's language reference ships with every interpreter

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import Document, NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import Retriever

CHINESE = Path(__file__).parent / "data" / "zh"
QUESTIONS = [
    "What if an exception is raised inside a finally clause?",
    "大熊猫每天要花多少时间吃东西？",
]


def main(docs: str = "", ask: str = "") -> None:
    """Show the groups, then each question's answer three times over."""
    began = time.perf_counter()
    graph = NodeGraph(docs or CHINESE)
    if not docs:
        graph.add([Document(text, id=f"python/{name}") for name, text in topics.items()])
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    retriever = Retriever(graph, "sentence", "bm25_chinese", target="paragraph", top_k=3)

    questions = [ask] if ask else QUESTIONS
    if docs and not ask:
        sentences = graph.nodes("sentence")
        questions = [sentences[len(sentences) // 2].text[:80]] if sentences else []
        print('No ASK="..." given, so a sentence from the middle of your files is looked for.')
    retriever.batch(questions)
    print(f"Read, split and indexed in {time.perf_counter() - began:.1f} s:")
    for name in ("ROOT", "paragraph", "sentence"):
        print(f"  {name:<10} {graph.groups[name].size:>6,} nodes")

    for question in questions:
        began = time.perf_counter()
        results = retriever(question)
        print(f"\n=== {question}   ({1000 * (time.perf_counter() - began):.1f} ms)")
        if not results:
            print("Nothing matched.")
            continue
        best = results[0]
        print("  sentence  ", " ".join(best.evidence[0].node.text.split()))
        print(f"  score      {best.evidence[0].score:.2f} by {best.evidence[0].similarity}")
        where = f"{best.node.document_id}, characters {best.node.start} to {best.node.end}"
        print(f"  paragraph  ({where})")
        print("             " + best.node.text.replace("\n", "\n             "))
        show_in_langchain(retriever, question)
        show_in_llama_index(retriever, question)


def show_in_langchain(retriever: Retriever, question: str) -> None:
    """Put the retriever into an LCEL chain; with a model the chain answers."""
    found = langchain.NodeGraphRetriever(retriever=retriever)
    prompt = ChatPromptTemplate.from_template(
        "Answer in one sentence, in the language of the question, from this alone:\n"
        "{context}\n\nQuestion: {question}"
    )
    context = found | (lambda documents: "\n\n".join(d.page_content for d in documents))
    chain = {"context": context, "question": RunnablePassthrough()} | prompt
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        print(f"  answer     {(chain | ask_model).invoke(question)}")
    else:
        length = len(chain.invoke(question).to_string())
        print(
            f"  LangChain  a prompt of {length:,} characters (OPENAI_API_KEY lets a model answer)"
        )
    print(f"             from {[document.id for document in found.invoke(question)]}")


def ask_model(prompt) -> str:
    """Send a prompt to whatever OpenAI-compatible endpoint the environment names."""
    from openai import OpenAI

    client = OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))
    model = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    messages = [{"role": "user", "content": prompt.to_string()}]
    reply = client.chat.completions.create(model=model, messages=messages)
    return reply.choices[0].message.content.strip()


def show_in_llama_index(retriever: Retriever, question: str) -> None:
    """Put the same retriever into a LlamaIndex query engine."""
    engine = RetrieverQueryEngine.from_args(
        llama_index.NodeGraphRetriever(retriever),
        llm=MockLLM(),  # repeats its prompt; put your model here
    )
    sources = engine.query(question).source_nodes
    print(f"  LlamaIndex {len(sources)} source nodes, the first scored {sources[0].score:.2f}")
    print(f"             from {[source.node_id for source in sources]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
