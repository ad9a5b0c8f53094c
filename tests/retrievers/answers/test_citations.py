import pickle

import pytest

from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.answers.answer import Answer, AnswerError, Source
from nodekin.retrievers.answers.citations import cited_numbers, flag_cited


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Tea [1].", [1]),
        ("茶【1】，河［2］。", [1, 2]),
        ("Tea [1, 3] and [2，4]、[5；6].", [1, 3, 2, 4, 5, 6]),
        ("Tea [1][3][1].", [1, 3]),
        ("Tea [2-4], [7–8].", [2, 3, 4, 7, 8]),
        ("Tea [^2].", [2]),
        ("Tea [Passage 2], [Sources 1 and 3], 【资料4】, [来源 5、6].", [2, 1, 3, 4, 5, 6]),
        ("Tea 【1†source】.", [1]),
        ("Tea [1†L2-L9].", [1]),
        ("[4-2]", [4, 2]),
        ("(1) Tea. （2）茶。 1. One", []),
        ("In [2019] and [1234].", []),
        ("See [1](https://example.org).", []),
        ("`x[1]` and ```\ny[2]\n``` but [3]", [3]),
        ("```\nan open fence [1]", []),
        ("[] [a] [1.5] [-1] [note 1]", []),
        ("[1†tea, 2†milk and 3] [# 4] [Source #5,6]", [1, 2, 3, 4, 5, 6]),
        (f"[{', '.join(map(str, range(1, 41)))}, 'x']", []),  # exponential by backtracking
        (f"[{' and '.join(f'{n}†a' for n in range(1, 41))}, 'x'", []),
        (f"[{'1†a and 2 and ' * 40}x", []),
        ("", []),
    ],
)
def test_cited_numbers(text, numbers) -> None:
    assert cited_numbers(text) == numbers


def test_cited_sources_are_marked() -> None:
    sources = [Source(n, ScoredNode(Node("x"), 1.0), "x") for n in (1, 2, 3)]
    marked, notes = flag_cited(sources, "Tea [2], [0] and [5-7].", certain=[3])
    assert [source.cited for source in marked] == [False, True, True]
    assert notes == ["the answer cites missing sources: [0], [5], [6], [7]"]
    answer = Answer("Tea [2].", "What?", tuple(marked))
    assert (answer.cited, str(answer)) == (tuple(marked[1:]), "Tea [2].")


def test_answer_error_keeps_its_answer_if_pickled() -> None:
    error = AnswerError("the model is down", Answer("The Nile", "How long?", answered=False))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.answer) == ("the model is down", error.answer)
