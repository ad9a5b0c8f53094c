"""Store answers, change the documents, and see which answers are out of date, and why."""

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import QueryEngine, Retriever

graph = NodeGraph()  # NodeGraph(store="graph.db") has the answers when it is opened again
graph.create_node_group("line", str.splitlines)
graph.add(
    [
        Document("Green tea is steamed.\nIt is drunk hot.", id="green.md"),
        Document("Black tea is fermented.\nIt is older than green tea.", id="black.md"),
    ]
)


def model(prompt: str) -> str:
    """Stand for a language model: say what the first passage says."""
    passage = prompt.rpartition("<passage>")[2].partition("</passage>")[0]
    return passage.strip().splitlines()[-1] + " [1]"


engine = QueryEngine(Retriever(graph, "line", top_k=1), model)
for question in ("How is green tea steamed?", "Which tea is fermented?"):
    print(question, "-", engine.query(question, keep=True))
print("asked again:", engine.query("Which tea is fermented?", keep=True).notes[0])

graph.add(Document("Tea\nBlack tea is fermented.\nIt is older.", id="black.md"))
print("a line has moved:", graph.answers.stale())

graph.add(Document("Green tea is steamed, or roasted.\nIt is drunk hot.", id="green.md"))
graph.add(Document("Fermented tea: which tea is fermented? Oolong, in part.", id="oolong.md"))
for stale in graph.answers.refresh():
    print(stale.answer.question, "-", "; ".join(stale.causes))
for answer in graph.answers:
    print(answer.question, "-", answer.text)
