"""Answer with sources: a chain over chunks, which says where each chunk begins.

After: the class of the vector store is another one, and nothing else.
"""

from langchain_common import Letters, ScriptedChat, load, read, show
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.adapters.langchain import NodeGraphVectorStore

QUESTION = "Which tea is fermented?"


def answer(store):
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    writing = prompt | ScriptedChat(reply=read) | StrOutputParser()
    context = {"context": store.as_retriever(search_kwargs={"k": 2})}
    chain = RunnableParallel(question=RunnablePassthrough(), **context).assign(answer=writing)
    result = chain.invoke(QUESTION)
    places = [(d.metadata["source"], d.metadata["start_index"]) for d in result["context"]]
    return result["answer"], places


def chunks():
    splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0, add_start_index=True)
    return splitter.split_documents(load())


def before():
    return answer(InMemoryVectorStore.from_documents(chunks(), Letters()))


def after():
    return answer(NodeGraphVectorStore.from_documents(chunks(), Letters()))


if __name__ == "__main__":
    show(before, after)
