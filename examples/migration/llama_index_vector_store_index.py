"""A starter program that indexes documents, retrieves, answers, persists the index and loads it."""

import tempfile

from llama_index.core import StorageContext, load_index_from_storage
from llama_index_offline import Index, ScriptedLLM, WordVectors, compare, documents, read, splitter

QUESTION = "Which tea is fermented, the black one?"


def program(index_class: Index) -> list[str]:
    index = index_class.from_documents(
        documents(), embed_model=WordVectors(), transformations=[splitter(60)]
    )
    with tempfile.TemporaryDirectory() as folder:
        index.storage_context.persist(folder)
        context = StorageContext.from_defaults(persist_dir=folder)
        loaded = load_index_from_storage(context, embed_model=WordVectors())
    found = loaded.as_retriever(similarity_top_k=1).retrieve(QUESTION)
    engine = loaded.as_query_engine(llm=ScriptedLLM(reply=read), similarity_top_k=1)
    return [found[0].text, str(engine.query(QUESTION))]


if __name__ == "__main__":
    compare(program)
