"""Chat: a question may refer to earlier ones, and the messages of each user are kept.

After: one engine in place of three chains, with the same prompt for the question that stands alone;
LangChain keeps the messages as before.
"""

from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_common import Letters, ScriptedChat, load, names, read, show
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.retrievers import QueryEngine

QUESTIONS = ["Who built the bridge of Zhaozhou?", "And which tea is fermented?", "And coffee?"]
CONDENSE = ChatPromptTemplate(
    [
        ("system", "Write the question so that it needs no history."),
        ("placeholder", "{chat_history}"),
        ("human", "{input}"),
    ]
)
STANDALONE = {
    "And which tea is fermented?": "Which tea is fermented?",
    "And coffee?": "How is coffee roasted?",
}


def reply(messages):
    if "needs no history" in messages[0].content:
        last = messages[-1].content.splitlines()[-1]
        return next(full for short, full in STANDALONE.items() if short in last)
    return read(messages)


MODEL = ScriptedChat(reply=reply)


def talk(chain):
    histories = {}
    remembering = RunnableWithMessageHistory(
        chain,
        lambda session_id: histories.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key="input",
        history_messages_key="chat_history",
        output_messages_key="answer",
    )
    config = {"configurable": {"session_id": "a"}}
    results = [remembering.invoke({"input": question}, config) for question in QUESTIONS]
    return [(result["answer"], names(result["context"])) for result in results]


def before():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    answer = ChatPromptTemplate(
        [("placeholder", "{chat_history}"), ("human", "{context}\n\nQuestion: {input}")]
    )
    retriever = create_history_aware_retriever(
        MODEL, store.as_retriever(search_kwargs={"k": 1}), CONDENSE
    )
    return talk(create_retrieval_chain(retriever, create_stuff_documents_chain(MODEL, answer)))


def after():
    retriever = NodeGraphRetriever.from_documents(load(), Letters(), group="ROOT", k=1)
    engine = QueryEngine(retriever, MODEL, prompts={"condense": CONDENSE})
    return talk(NodeGraphQueryEngine(engine=engine, output="dict"))


if __name__ == "__main__":
    show(before, after)
