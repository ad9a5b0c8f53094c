"""An answer, and the error that has what there is of one."""

import pickle

from fixed_retriever import passage

from nodekin.retrievers.answers.answer import Answer, AnswerError, Source


def test_the_cited_sources_and_the_text() -> None:
    sources = [Source(n, passage("Tea."), "Tea.", cited=n == 2) for n in (1, 2)]
    answer = Answer("A drink [2].", "What is tea?", tuple(sources))
    assert answer.cited == (sources[1],)
    assert str(answer) == "A drink [2]."


def test_answer_error_keeps_its_answer_if_pickled() -> None:
    error = AnswerError("the model is down", Answer("The Nile", "How long?", answered=False))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.answer) == ("the model is down", error.answer)
