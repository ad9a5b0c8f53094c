"""Multi-step questions: each step asks for what the last answer makes possible to ask."""

from llama_index.core import VectorStoreIndex, get_response_synthesizer
from llama_index.core.indices.query.query_transform import StepDecomposeQueryTransform
from llama_index.core.query_engine import MultiStepQueryEngine
from llama_index_offline import ScriptedLLM, WordVectors, documents, read

from nodekin.adapters.llama_index import NodeGraphIndex

QUESTION = "How long is the river that runs to the Mediterranean?"
STEPS = ["Which river runs to the Mediterranean, the Nile?", "How many km long is the Nile?"]


def reply(prompt: str) -> str:
    """Be a model: ask the next question in the form that is requested, or read."""
    asked = sum(step in prompt for step in STEPS)
    following = STEPS[asked] if asked < len(STEPS) else None
    if "knowledge source" in prompt:
        return following or "None"
    if "Answered: yes if" in prompt:
        answer = "The Nile is 6,650 km long." if asked == len(STEPS) else "It runs there."
        done = "no" if following else "yes"
        return f"Answer: {answer}\nNext question: {following or 'NONE'}\nAnswered: {done}"
    if QUESTION in prompt:
        return "6,650 km." if "6,650 km" in prompt else "Unknown."
    return read(prompt)


def before() -> list[str]:
    """Answer by LlamaIndex alone."""
    llm = ScriptedLLM(reply=reply)
    index = VectorStoreIndex.from_documents(documents(), embed_model=WordVectors())
    engine = MultiStepQueryEngine(
        query_engine=index.as_query_engine(llm=llm, similarity_top_k=1),
        query_transform=StepDecomposeQueryTransform(llm=llm, verbose=False),
        response_synthesizer=get_response_synthesizer(llm=llm),
        index_summary="All about tea, rivers and bridges",
        num_steps=3,
    )
    response = engine.query(QUESTION)
    return [str(response), *(question for question, _ in response.metadata["sub_qa"])]


def after() -> list[str]:
    """Answer with nodekin: truly async, a repeated question ends it."""
    index = NodeGraphIndex.from_documents(documents(), embed_model=WordVectors())
    engine = index.as_query_engine(
        ScriptedLLM(reply=reply), strategy="multi_step", max_steps=3, similarity_top_k=1
    )
    response = engine.query(QUESTION)
    return [str(response), *(question for question, _ in response.metadata["sub_qa"])]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
