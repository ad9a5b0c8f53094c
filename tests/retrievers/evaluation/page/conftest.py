"""An evaluation with everything that a page has to show, hostile texts among it."""

import pytest
from fixed_retriever import fixed

from nodekin.nodegraph import Document, Node, NodeGraph, split_sentences
from nodekin.retrievers import Retriever
from nodekin.retrievers.evaluation import (
    Dataset,
    Evaluation,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Question,
    evaluate,
)

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\">"
    "<script>document.title='owned'</script><!-- {metric} \x01\x02\x03 \ud800"
)
HOSTILE_NAME = "b</option><img src=http://example.com/x>'\"&"
TEXTS = {
    "green": "Green tea is not fermented. The leaves are heated soon. It is from Anhui.",
    "black": "Black tea is fermented. Much of it is from Fujian.",
    "长江": "长江是中国最长的河流。它流入东海。",
    "黄河": "黄河是中国第二长的河流。它流入渤海。",
    "hostile": HOSTILE,
    "long": "The Rhine runs past Cologne. " * 200,
}


class FailingRetriever:
    """Fail for one question."""

    def __init__(self, inner):
        self.inner = inner

    def retrieve(self, query, *, top_k=None, filters=None):
        if "Rhine" in query:
            raise ConnectionError("the server of <i>vectors</i> is offline")
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


@pytest.fixture(scope="package")
def evaluation() -> Evaluation:
    start = TEXTS["green"].index("It is")
    span = GoldSpan("green", start, start + 17, "It is from Anhui.")
    missing = (GoldPassage("黄河是中国第二长的河流。"), GoldDocument("grey"))
    questions = [
        Question("1", "Which tea is heated soon?", (GoldDocument("green"),), ("heated",)),
        Question("2", "Where is black tea from?", (GoldPassage(TEXTS["black"], 2),), ("Fujian",)),
        Question("三", "长江流入哪个海？", (GoldDocument("长江"),), ("东海",)),
        Question("4", "Which tea is from Anhui?", (span,)),
        Question("5", "What runs past Cologne, the Rhine?", (GoldDocument("long"),), ("Cologne",)),
        Question("6", "What is not judged?"),
        Question("7", "Which gold is missing?", missing),
        Question(HOSTILE, f"Which {HOSTILE}", (GoldDocument("hostile"),), (HOSTILE, "")),
    ]
    documents = [Document(text, id=id) for id, text in TEXTS.items() if id != "hostile"]
    data = Dataset(questions, documents, name="Tea & rivers <b>")
    nodes = [Node(text, id=id) for id, text in TEXTS.items()]
    with NodeGraph(progress=False) as graph:
        graph.add(documents)
        graph.create_node_group("sentence", split_sentences)
        return evaluate(
            {
                "words": Retriever(graph, "ROOT"),
                HOSTILE_NAME: FailingRetriever(fixed(nodes[::-1])),
                "句子": Retriever(graph, "sentence", target="ROOT"),
            },
            data,
            ["mrr@3", "recall@1", "tokens_per_gold@3", "answer_in_context@3"],
        )
