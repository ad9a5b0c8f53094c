"""Compare LangChain's FAISS store with nodekin's default retriever on the same questions.

    cd examples/evaluation
    nodekin eval langchain_faiss:faiss default --docs ../data/zh \
        --data ../data/zh_questions.jsonl --field answers=answer
"""

from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import RecursiveCharacterTextSplitter
from small_embeddings import LangChainEmbeddings


def faiss(documents) -> BaseRetriever:
    """Split the documents that nodekin has loaded, and search them with an existing program."""
    whole = [Document(d.text, metadata={"source": d.id}) for d in documents]
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40)
    store = FAISS.from_documents(splitter.split_documents(whole), LangChainEmbeddings())
    return store.as_retriever(search_kwargs={"k": 5})
