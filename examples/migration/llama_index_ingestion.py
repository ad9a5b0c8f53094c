"""Ingestion without duplicates: what is there is not done again, also on the next day."""

import tempfile
from pathlib import Path

from llama_index.core import Document
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_offline import WordVectors, documents

from nodekin.adapters.llama_index import NodeGraphIndex


def changed() -> list[Document]:
    """Return the documents as they are loaded the next time: one has changed."""
    return [
        *documents()[:-1],
        Document(text="Bridges cross rivers.", id_="bridges", metadata={"topic": "bridges"}),
    ]


def days() -> list[list[list[Document]]]:
    """Return what is loaded on two days: the documents twice, then one is another."""
    return [[documents(), documents(), changed()], [changed()]]


def before() -> list[int]:
    """Count what LlamaIndex's pipeline parses and embeds."""
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for loads in days():
            pipeline = IngestionPipeline(
                transformations=[SentenceSplitter(), WordVectors()],
                docstore=SimpleDocumentStore(),
                vector_store=SimpleVectorStore(),
                docstore_strategy=DocstoreStrategy.UPSERTS,
            )
            if any(Path(folder).iterdir()):
                pipeline.load(folder)
            counts += [len(pipeline.run(documents=loaded)) for loaded in loads]
            pipeline.persist(folder)
    return counts


def after() -> list[int]:
    """Count what nodekin parses and embeds; nodes and vectors are in the same file."""
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for loads in days():
            index = NodeGraphIndex.from_documents(
                [], embed_model=WordVectors(), store=f"{folder}/corpus"
            )
            counts += [sum(index.refresh_ref_docs(loaded)) for loaded in loads]
            index.graph.close()
    return counts


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
