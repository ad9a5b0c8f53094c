"""LangChain's index() into a graph: parents and children are added, updated, deleted together.

It searches sentences, answers with whole documents, is stored in one file, and needs no key.
"""

import tempfile
from pathlib import Path

try:
    from langchain_core.documents import Document
    from langchain_core.indexing import InMemoryRecordManager, index
except ImportError:
    raise SystemExit('This example needs: pip install "nodekin[langchain]"') from None

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever

FIRST = {
    "tea": "Green tea is steamed. Black tea is fermented.",
    "rivers": "Rivers run to the sea. Some rivers dry out.",
    "茶": "绿茶是蒸青的。红茶是发酵的。",
}


def open_index(file: Path) -> NodeGraphRetriever:
    """Open or create the file: search sentences, answer with their documents."""
    graph = NodeGraph(store=file, progress=False)
    graph.create_node_group("sentence", split_sentences)
    search = Retriever(graph, "sentence", target="ROOT")
    return NodeGraphRetriever(graph=graph, retriever=search, k=2, details=True)


def sync(
    documents: NodeGraphRetriever, records: InMemoryRecordManager, texts: dict, how: str
) -> None:
    """Let LangChain compare the documents of a loader with those in the graph."""
    loaded = [Document(text, metadata={"source": name}) for name, text in texts.items()]
    settings = {"cleanup": how, "source_id_key": "source", "key_encoder": "sha256"}
    counts = index(loaded, records, documents, **settings)
    sizes = [len(documents.graph.nodes(group)) for group in ("ROOT", "sentence")]
    print(f"{how:<12} {counts}\n{'':<12} {sizes[0]} parents, {sizes[1]} children")


def ask(documents: NodeGraphRetriever, query: str) -> None:
    """Show the best parent, and where in it the answer is."""
    (best,) = documents.invoke(query, k=1)
    start, end = best.metadata["start"], best.metadata["end"]
    text = best.page_content[start:end]
    print(f"{query:<12} {best.metadata['source']}[{start}:{end}] = {text.strip()}")


with tempfile.TemporaryDirectory() as folder:
    records = InMemoryRecordManager(namespace="example")  # a database, in real life
    records.create_schema()
    documents = open_index(Path(folder, "graph.nodekin"))
    sync(documents, records, FIRST, "full")
    ask(documents, "发酵")
    sync(documents, records, {"tea": "Oolong is half fermented."}, "incremental")  # a new version
    ask(documents, "fermented")
    documents.graph.close()
    documents = open_index(Path(folder, "graph.nodekin"))  # the next day: nothing is made again
    sync(documents, records, {"tea": "Oolong is half fermented.", "茶": FIRST["茶"]}, "full")
    print("rivers      ", documents.invoke("rivers"))
    documents.graph.close()
