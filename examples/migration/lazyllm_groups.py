"""Search sentences and return their paragraphs, with the node groups from LazyLLM's course.

The first version requires LazyLLM (``pip install lazyllm``) and is not run by the tests.
"""

from pathlib import Path

from nodekin import NodeGraph, Retriever

FOLDER = Path(__file__).parents[1] / "data" / "zh"
QUESTION = "赵州桥是谁主持建造的？"


def before() -> list[str]:
    """Search with LazyLLM."""
    import lazyllm

    docs = lazyllm.Document(dataset_path=str(FOLDER))
    docs.create_node_group(name="block", transform=lambda text: text.split("\n"))
    docs.create_node_group(name="sentence", transform=lambda text: text.split("。"), parent="block")
    retriever = lazyllm.Retriever(docs, group_name="sentence", similarity="bm25_chinese", topk=1)
    return [node.parent.get_text() for node in retriever(QUESTION)]


def after() -> list[str]:
    """Search with nodekin. Each parent is returned only once."""
    graph = NodeGraph(FOLDER, progress=False)
    graph.create_node_group("block", lambda text: text.split("\n"))
    graph.create_node_group("sentence", lambda text: text.split("。"), parent="block")
    retriever = Retriever(graph, "sentence", "bm25_chinese", target="block", top_k=1)
    return [result.node.text for result in retriever(QUESTION)]


if __name__ == "__main__":
    print("nodekin", *after(), sep="\n  ")
