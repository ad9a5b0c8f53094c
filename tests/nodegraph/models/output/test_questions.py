from nodekin.nodegraph.models.output.queries import is_question


def test_questions_are_recognised_without_their_mark() -> None:
    assert is_question("how long is it")
    assert is_question("它有多长")
    assert is_question("Really?")
    assert not is_question("The Nile is long.")
    assert not is_question("尼罗河很长。")
