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


def before() -> list[int]:
    """Count what LlamaIndex's pipeline parses and embeds."""

    def pipeline() -> IngestionPipeline:
        return IngestionPipeline(
            transformations=[SentenceSplitter(), WordVectors()],
            docstore=SimpleDocumentStore(),
            vector_store=SimpleVectorStore(),
            docstore_strategy=DocstoreStrategy.UPSERTS,
        )

    with tempfile.TemporaryDirectory() as folder:
        first = pipeline()
        counts = [len(first.run(documents=loaded)) for loaded in (documents(), documents())]
        counts.append(len(first.run(documents=changed())))
        first.persist(folder)
        again = pipeline()
        again.load(folder)
        return [*counts, len(again.run(documents=changed()))]


def after() -> list[int]:
    """Count what nodekin parses and embeds; nodes and vectors are in the same file."""
    with tempfile.TemporaryDirectory() as folder:
        store, embed_model = Path(folder, "corpus.nodekin"), WordVectors()
        index = NodeGraphIndex.from_documents([], embed_model=embed_model, store=store)
        counts = [sum(index.refresh_ref_docs(loaded)) for loaded in (documents(), documents())]
        counts.append(sum(index.refresh_ref_docs(changed())))
        index.graph.close()
        index = NodeGraphIndex.from_documents([], embed_model=embed_model, store=store)
        counts.append(sum(index.refresh_ref_docs(changed())))
        index.graph.close()
        return counts


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
