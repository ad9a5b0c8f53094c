"""The retriever inside what people build with LangChain."""

import pytest
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool

ANSWER = "Black tea is fermented."


@pytest.fixture
def model():
    return FakeListChatModel(responses=[ANSWER])


@pytest.fixture
def prompt():
    return ChatPromptTemplate.from_template("{context}\n\nQuestion: {input}")


def joined(documents):
    return "\n".join(document.page_content for document in documents)


QUESTIONS = ["Which tea is fermented?", "红茶发酵吗？"]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_an_lcel_chain_gets_the_same_nodes(retriever, native, model, prompt, question):
    answer = (
        {"context": lambda x: joined(x["documents"]), "input": lambda x: x["input"]}
        | prompt
        | model
        | StrOutputParser()
    )
    chain = RunnableParallel(documents=retriever, input=RunnablePassthrough()).assign(answer=answer)
    alone = [each.node.id for each in native.retrieve(question)]
    for result in (chain.invoke(question), await chain.ainvoke(question)):
        assert result["answer"] == ANSWER
        assert [document.id for document in result["documents"]] == alone
    pieces = [each["answer"] for each in chain.stream(question) if "answer" in each]
    assert len(pieces) > 1
    assert "".join(pieces) == ANSWER
    pieces = [each["answer"] async for each in chain.astream(question) if "answer" in each]
    assert "".join(pieces) == ANSWER


async def test_a_retrieval_chain(retriever, native, model, prompt):
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    expected = [each.node.id for each in native.retrieve("fermented tea")]
    for result in (
        chain.invoke({"input": "fermented tea"}),
        await chain.ainvoke({"input": "fermented tea"}),
    ):
        assert result["answer"] == ANSWER
        assert [d.id for d in result["context"]] == expected


def test_a_history_aware_retriever(retriever):
    rewriter = FakeListChatModel(responses=["Which tea is fermented?"])
    prompt = ChatPromptTemplate.from_messages(
        [("placeholder", "{chat_history}"), ("user", "{input}")]
    )
    aware = create_history_aware_retriever(rewriter, retriever, prompt)
    found = aware.invoke({"input": "And this one?", "chat_history": [("user", "Tea?")]})
    assert found == retriever.invoke("Which tea is fermented?")


async def test_a_retriever_tool(retriever):
    tool = create_retriever_tool(retriever, "tea", "Looks up tea.")
    expected = "\n\n".join(d.page_content for d in retriever.invoke("fermented tea"))
    assert tool.invoke({"query": "fermented tea"}) == expected
    assert await tool.ainvoke({"query": "fermented tea"}) == expected


def test_a_retriever_tool_with_documents(retriever):
    tool = create_retriever_tool(
        retriever, "tea", "Looks up tea.", response_format="content_and_artifact"
    )
    call = {"type": "tool_call", "id": "1", "name": "tea", "args": {"query": "fermented tea"}}
    assert tool.invoke(call).artifact == retriever.invoke("fermented tea")
