"""A typical FAISS program: it splits, embeds, saves, loads, searches, and answers with chains."""

import tempfile
from functools import partial

from langchain_classic.chains import RetrievalQA
from langchain_common import FixedLLM, Letters, load_zh, show
from langchain_community.vectorstores import FAISS
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.adapters.langchain import NodeGraphVectorStore

QUESTION, LLM = "红茶和绿茶有什么区别？", FixedLLM(responses=["发酵。\nScore: 90"])
CHAINS = ("stuff", "map_reduce", "refine", "map_rerank")
SPLITTER = RecursiveCharacterTextSplitter(["。", ""], chunk_size=40, chunk_overlap=0)


def answer(store_class):
    docs = SPLITTER.split_documents(load_zh())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store_class.from_documents(docs, Letters()).save_local(folder)
        store = store_class.load_local(folder, Letters(), allow_dangerous_deserialization=True)
        retriever = store.as_retriever(search_kwargs={"k": 3})
        found = [d.page_content for d in retriever.invoke(QUESTION)]
        scored = [d.page_content for d, _ in store.similarity_search_with_score(QUESTION, k=3)]
        make = partial(RetrievalQA.from_chain_type, retriever=retriever, llm=LLM)
        answers = [make(chain_type=kind).invoke(QUESTION)["result"] for kind in CHAINS]
    return found == scored, found[0], answers


def before():
    return answer(FAISS)


def after():
    return answer(NodeGraphVectorStore)


if __name__ == "__main__":
    show(before, after)
