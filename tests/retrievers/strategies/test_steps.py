"""Equal questions, and the ranking of the results of all steps."""

from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.strategies.outcome import SubResults, merge_steps, same_question


def test_same_question_ignores_order_and_inflection() -> None:
    assert same_question("Who wrote the Brand?", "who  wrote Brand")
    assert same_question("请问他的父亲是谁呢？", "他父亲是谁")
    assert not same_question("Who was born in 1990?", "Who was born in 1991?")
    assert not same_question("Where was he born?", "When was he born?")
    assert not same_question("?", "!")


def results(*texts: str) -> tuple[ScoredNode, ...]:
    return tuple(ScoredNode(Node(text), 1.0 / place) for place, text in enumerate(texts, 1))


PLAIN = SubResults(
    "In which town was the author born?", results(*(f"plain {n}" for n in range(20)))
)
FOUND = SubResults(
    "Where was Ibsen born?", results("Tea is a drink.", "Ibsen was born at Skien."), "Skien"
)


def texts(found: list[ScoredNode]) -> list[str]:
    return [result.node.text for result in found]


def test_answering_step_ranks_before_the_question() -> None:
    first, second, *_ = texts(merge_steps([PLAIN, FOUND], answered=True))
    assert (first, second) == ("Ibsen was born at Skien.", "plain 0")


def test_unanswered_steps_hardly_change_the_ranking() -> None:
    ranking = texts(merge_steps([PLAIN, FOUND], answered=False))
    assert ranking[:12] == [f"plain {n}" for n in range(12)]
    assert ranking.index("Ibsen was born at Skien.") == 12  # added, and no more
    assert len(ranking) == 22


def test_first_passage_precedes_others_with_the_answer() -> None:
    hotels = [f"Grand hotel {n}." for n in range(12)]
    step = SubResults("Where was she born?", results("She was born in Manila.", *hotels), "hotel")
    assert "She was born in Manila." in texts(merge_steps([PLAIN, step], answered=True))[:4]
    steps = [SubResults(f"{n}?", results(f"First {n}.", *hotels), "hotel") for n in range(4)]
    ranking = texts(merge_steps([PLAIN, *steps], answered=True, top_k=10))
    assert {f"First {n}." for n in range(4)} <= set(ranking)
