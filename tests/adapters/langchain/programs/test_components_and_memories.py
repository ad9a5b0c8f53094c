"""Compressors, routers, memories and runnables of LangChain with one class exchanged."""

import asyncio

import pytest
from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQAWithSourcesChain
from langchain_classic.chains.hyde.base import HypotheticalDocumentEmbedder
from langchain_classic.chains.router import MultiRetrievalQAChain
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_classic.indexes import VectorstoreIndexCreator
from langchain_classic.memory import VectorStoreRetrieverMemory
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    RePhraseQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    EmbeddingsFilter,
    LLMChainExtractor,
)
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.stores import InMemoryByteStore
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from support.langchain_programs import (
    DOCUMENTS,
    PROMPT,
    QUESTIONS,
    RETRIEVERS,
    TEXTS,
    THEIRS,
    check,
    model,
    shaped,
)
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphVectorStore

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


def compressed(make, config):
    steps = [
        CharacterTextSplitter(chunk_size=40, chunk_overlap=0, separator=" "),
        EmbeddingsFilter(embeddings=Letters(), k=2),
    ]
    pipeline = DocumentCompressorPipeline(transformers=steps)
    retriever = ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=make())
    return [retriever.invoke(question, config) for question in QUESTIONS]


def extracted(make, config):
    retriever = ContextualCompressionRetriever(
        base_compressor=LLMChainExtractor.from_llm(model("It is steamed.")), base_retriever=make()
    )
    return retriever.invoke(QUESTIONS[0], config)


def rephrased(make, config):
    retriever = RePhraseQueryRetriever.from_llm(make(), model("steamed tea"))
    return retriever.invoke(QUESTIONS[0], config)


def several_queries(make, config):
    retriever = MultiQueryRetriever.from_llm(
        make(), model("steamed tea\nfermented tea"), include_original=True
    )
    return retriever.invoke(QUESTIONS[0], config)


def merged(make, config):
    half = len(DOCUMENTS) // 2
    retrievers = [make(DOCUMENTS[:half]), make(DOCUMENTS[half:])]
    return MergerRetriever(retrievers=retrievers).invoke(QUESTIONS[2], config)


def ensemble(make, config):
    half = len(DOCUMENTS) // 2
    parts = [make(DOCUMENTS[:half]), make(DOCUMENTS[half:])]
    retriever = EnsembleRetriever(retrievers=parts, weights=[0.3, 0.7])
    return asyncio.run(retriever.ainvoke(QUESTIONS[2], config))


def with_sources(make, config):
    chain = RetrievalQAWithSourcesChain.from_chain_type(
        llm=model("It is steamed.\nSOURCES: 0.md"), retriever=make(k=2)
    )
    return chain.invoke({"question": QUESTIONS[0]}, config)


def conversation(make, config):
    chain = ConversationalRetrievalChain.from_llm(
        model("It is steamed."), make(k=2), return_source_documents=True
    )
    history = [("Which drinks are there?", "Tea and coffee.")]
    return chain.invoke({"question": QUESTIONS[0], "chat_history": history}, config)


def branched(make, config):
    half = len(DOCUMENTS) // 2
    branch = RunnableBranch(
        (lambda question: "tea" in question, make(DOCUMENTS[:half], k=2)),
        make(DOCUMENTS[half:], k=1),
    )
    return branch.batch(QUESTIONS, config)


def alternatives(make, config):
    retriever = make(k=1).configurable_alternatives(
        ConfigurableField(id="depth"), default_key="one", three=make(k=3)
    )
    other = {**config, "configurable": {"depth": "three"}}
    return [retriever.invoke(QUESTIONS[0], config), retriever.invoke(QUESTIONS[0], other)]


def failing_first(make, config):
    def fail(question):
        raise ConnectionError(question)

    fallback = RunnableLambda(fail).with_fallbacks([make()])
    return fallback.invoke(QUESTIONS[1], config)


def assigned(make, config):
    chain = RunnablePassthrough.assign(context=lambda x: x["input"]) | RunnablePassthrough.assign(
        documents=(lambda x: x["input"]) | make(k=2),
        answer=PROMPT | model("Yes.") | StrOutputParser(),
    )
    return chain.pick(["documents", "answer"]).invoke({"input": QUESTIONS[0]}, config)


def as_completed(make, config):
    found = make(k=2).batch_as_completed(QUESTIONS, config)
    return [documents for _, documents in sorted(found, key=lambda pair: pair[0])]


def several_at_once(make, config):
    async def ask():
        limited = {**config, "max_concurrency": 2}
        return await make(k=2).abatch([*QUESTIONS, "What is roasted?"], limited)

    return asyncio.run(ask())


def mapped(make, config):
    chain = RunnableLambda(lambda text: text.split("; ")) | make(k=1).map()
    return chain.invoke("; ".join(QUESTIONS), config)


def streamed_parts(make, config):
    both = RunnableParallel(documents=make(k=1), question=RunnablePassthrough())
    return sorted(both.stream(QUESTIONS[0], config), key=str)


def tool_with_artifact(make, config):
    tool = create_retriever_tool(
        make(k=2),
        "drinks",
        "Search drinks.",
        document_prompt=PromptTemplate.from_template("{source}: {page_content}"),
        document_separator=" | ",
        response_format="content_and_artifact",
    )
    call = {"name": "drinks", "args": {"query": QUESTIONS[0]}, "id": "1", "type": "tool_call"}
    return tool.invoke(call, config)


def memory(make, config):
    remembered = VectorStoreRetrieverMemory(retriever=make(k=1), return_docs=True)
    remembered.save_context({"input": "I like mate."}, {"output": "Mate is brewed in a gourd."})
    (document,) = remembered.load_memory_variables({"prompt": "mate gourd"})["history"]
    return document.page_content, document.metadata  # its id is random


PROGRAMS = [
    compressed,
    extracted,
    rephrased,
    several_queries,
    merged,
    ensemble,
    with_sources,
    conversation,
    branched,
    alternatives,
    failing_first,
    assigned,
    as_completed,
    several_at_once,
    mapped,
    streamed_parts,
    tool_with_artifact,
]


@ours
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LangChain's own parts
def test_component_runs_as_with_langchains_retriever(program, ours):
    check(program, THEIRS, ours)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LangChain's own parts
def test_memory_of_vector_store_runs_as_langchains_store():
    check(memory, THEIRS, RETRIEVERS["store"])  # it accepts retrievers of vector stores only


# Programs of vector stores


def index_creator(cls):
    creator = VectorstoreIndexCreator(
        vectorstore_cls=cls,
        embedding=Letters(),
        text_splitter=CharacterTextSplitter(chunk_size=60, chunk_overlap=0),
    )
    wrapper = creator.from_documents(DOCUMENTS)
    answer = wrapper.query(
        QUESTIONS[0], llm=model("Steamed."), retriever_kwargs={"search_kwargs": {"k": 2}}
    )
    found = wrapper.vectorstore.similarity_search(QUESTIONS[1], k=3)
    return answer, [(d.page_content, list(d.metadata.items())) for d in found]  # ids are random


def hypothetical(cls):
    prompt = PromptTemplate.from_template("Answer {question}")
    embedding = HypotheticalDocumentEmbedder.from_llm(
        model("Green tea is steamed."), Letters(), custom_prompt=prompt
    )
    return cls.from_documents(DOCUMENTS, embedding).similarity_search(QUESTIONS[0], k=2)


def cached(cls):
    embedding = CacheBackedEmbeddings.from_bytes_store(
        Letters(), InMemoryByteStore(), namespace="letters", key_encoder="sha256"
    )
    found = []
    for _ in range(2):
        store = cls.from_texts(TEXTS, embedding, metadatas=[{"n": n} for n in range(len(TEXTS))])
        results = store.similarity_search_with_score(QUESTIONS[0], k=3)
        found.append([(d.page_content, d.metadata, score) for d, score in results])
    return found


def kept_up_to_date(cls):
    async def change():
        store = await cls.afrom_documents(DOCUMENTS, Letters())
        ids = await store.aadd_texts(["Mate is brewed.", "Cocoa is stirred."], ids=["m", "c"])
        await store.adelete(["d0", "m"])
        await store.aadd_documents([Document("Black tea is kept in tins.", id="d1")])
        found = await store.asimilarity_search("black tea", k=3)
        return ids, found, await store.aget_by_ids(["c", "d1", "none"])

    return asyncio.run(change())


def by_vector(cls):
    store = cls.from_documents(DOCUMENTS, Letters())
    vector = Letters().embed_query("coffee is roasted")
    diverse = store.max_marginal_relevance_search_by_vector(vector, k=3, fetch_k=5)
    return store.similarity_search_by_vector(vector, k=2), diverse


def diverse(cls):
    store = cls.from_documents(DOCUMENTS, Letters())
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 3, "lambda_mult": 0.3})
    return retriever.invoke(QUESTIONS[1]), retriever.search_type, retriever.search_kwargs


def several_chains(cls):
    half = len(DOCUMENTS) // 2
    stores = [cls.from_documents(part, Letters()) for part in (DOCUMENTS[:half], DOCUMENTS[half:])]
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    infos = [
        {"name": name, "description": name, "retriever": store.as_retriever(), "prompt": prompt}
        for name, store in zip(("drinks", "rivers"), stores, strict=True)
    ]
    chosen = '```json\n{"destination": "rivers", "next_inputs": "Where do rivers run?"}\n```'
    chain = MultiRetrievalQAChain.from_retrievers(
        model(chosen, "To the sea."), infos, default_chain_llm=model("Nowhere.")
    )
    return chain.invoke({"input": QUESTIONS[2]})


@pytest.mark.parametrize(
    "program",
    [
        index_creator,
        hypothetical,
        cached,
        kept_up_to_date,
        by_vector,
        diverse,
        several_chains,
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LangChain's own parts
def test_store_runs_as_langchains_store(program):
    expected = shaped(program(InMemoryVectorStore))
    assert expected
    assert shaped(program(NodeGraphVectorStore)) == expected
