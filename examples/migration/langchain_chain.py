"""A retrieval chain that is streamed, awaited and traced. Only the class of the store changes."""

import asyncio

from langchain_common import Letters, ScriptedChat, load, read, show
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tracers.context import collect_runs
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.adapters.langchain import NodeGraphVectorStore

QUESTION = "Which tea is fermented?"
PROMPT = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")


def answer(store_class):
    splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0)
    store = store_class.from_documents(splitter.split_documents(load()), Letters())
    context = {"context": store.as_retriever(search_kwargs={"k": 2})}
    steps = {**context, "question": RunnablePassthrough()}
    chain = steps | PROMPT | ScriptedChat(reply=read) | StrOutputParser()
    with collect_runs() as traced:
        streamed = "".join(chain.stream(QUESTION))
    kinds = [run.run_type for run in traced.traced_runs[0].child_runs[0].child_runs]
    return streamed, asyncio.run(chain.ainvoke(QUESTION)), "retriever" in kinds


def before():
    return answer(InMemoryVectorStore)


def after():
    return answer(NodeGraphVectorStore)


if __name__ == "__main__":
    show(before, after)
