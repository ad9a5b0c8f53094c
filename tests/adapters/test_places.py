"""Pages and sections of files, through the adapters, the command line and the citations."""

from pathlib import Path

from nodekin.adapters.langchain.documents import to_document
from nodekin.adapters.llama_index.nodes import to_results
from nodekin.nodegraph import NodeGraph, PassageSplitter
from nodekin.retrievers import QueryEngine, Retriever

SAMPLES = Path(__file__).parents[2] / "examples" / "files"

PLACE = "handbook.pdf, page 2, 2.1 Water"


def best(question: str = "kettle vinegar Mondays"):
    graph = NodeGraph(SAMPLES, progress=False)
    graph.create_node_group("passage", PassageSplitter(60))
    retriever = Retriever(graph, "passage", "bm25", top_k=1)
    return retriever, retriever(question)[0]


def test_langchain_and_llama_index_name_the_page() -> None:
    _, result = best()
    for metadata in (to_document(result).metadata, to_results([result])[0].node.metadata):
        assert (metadata["page_label"], metadata["place"]) == ("2", PLACE)
        assert metadata["file_name"] == "handbook.pdf"
    retrieved = to_document(result, score_key="score", evidence=True).metadata
    assert (retrieved["place"], retrieved["evidence"][0]["place"]) == (PLACE, PLACE)


def test_prompt_contains_page_and_answer_cites_it() -> None:
    retriever, _ = best()
    prompts = []

    def llm(prompt: str) -> str:
        prompts.append(prompt)
        return "On Mondays [1]."

    answer = QueryEngine(retriever, llm).query("When is the kettle cleaned with vinegar?")
    (source,) = answer.cited
    assert source.title == "handbook.pdf › 2 Serving › 2.1 Water (page 2)" or (
        "(page 2)" in source.title
    )
    assert source.result.place == PLACE
    assert "(page 2)" in prompts[-1]
