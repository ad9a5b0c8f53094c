"""An ingestion pipeline with a docstore, which does not parse unchanged documents again."""

from llama_index.core import Document
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_offline import Index, WordVectors, compare, documents, splitter

CHANGED = Document(text="Bridges cross rivers.", id_="bridges", metadata={"topic": "bridges"})


def program(index_class: Index) -> list[str]:
    pipeline = IngestionPipeline(
        transformations=[splitter(60), WordVectors()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    index = index_class([], embed_model=WordVectors())
    lines = []
    for load in (documents(), documents(), [*documents()[:2], CHANGED]):
        nodes = pipeline.run(documents=load)
        for document_id in {str(node.ref_doc_id) for node in nodes}:
            index.delete_ref_doc(document_id, delete_from_docstore=True)
        index.insert_nodes(nodes)
        found = index.as_retriever(similarity_top_k=1).retrieve("Which bridge crosses rivers?")
        lines.append(f"{len(nodes)} new nodes; {found[0].text}")
    return lines


if __name__ == "__main__":
    compare(program)
