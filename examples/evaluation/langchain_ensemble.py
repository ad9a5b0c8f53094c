"""Compare LangChain's EnsembleRetriever with nodekin's default retriever.

    cd examples/evaluation
    nodekin eval langchain_ensemble:ensemble default --docs ../data/zh \
        --data ../data/zh_questions.jsonl --field answers=answer
"""

from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from small_embeddings import LangChainEmbeddings


def ensemble(documents) -> EnsembleRetriever:
    """Combine FAISS with BM25. BM25 compares pairs of letters, because Chinese has no spaces."""
    whole = [Document(d.text, metadata={"source": d.id}) for d in documents]
    chunks = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40).split_documents(whole)
    words = BM25Retriever.from_documents(chunks, k=5, preprocess_func=letter_pairs)
    vectors = FAISS.from_documents(chunks, LangChainEmbeddings()).as_retriever(
        search_kwargs={"k": 5}
    )
    return EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])


def letter_pairs(text: str) -> list[str]:
    """Return all pairs of adjacent letters."""
    return [text[n : n + 2] for n in range(len(text) - 1)]
