"""Chains: LCEL, create_retrieval_chain, RetrievalQA."""

import pytest
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from support.langchain_programs import PROMPT, QUESTIONS, RETRIEVERS, THEIRS, check, joined, model

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


def pipe(make, config):
    retriever = make()
    step = {"context": retriever | joined, "input": RunnablePassthrough()}
    answer = step | PROMPT | model("It is steamed.") | StrOutputParser()
    both = RunnableParallel(answer=answer, documents=retriever)
    return [both.invoke(question, config) for question in QUESTIONS]


def retrieval_chain(make, config):
    combine = create_stuff_documents_chain(model("It is steamed."), PROMPT)
    return create_retrieval_chain(make(), combine).invoke({"input": QUESTIONS[0]}, config)


def retrieval_qa(make, config):
    chain = RetrievalQA.from_chain_type(
        llm=model("It is steamed."),
        chain_type="stuff",
        retriever=make(k=2),
        return_source_documents=True,
    )
    return chain.invoke({"query": QUESTIONS[1]}, config)


@ours
@pytest.mark.parametrize("program", [pipe, retrieval_chain, retrieval_qa])
def test_chain_runs_as_with_langchains_retriever(program, ours):
    check(program, THEIRS, ours)
