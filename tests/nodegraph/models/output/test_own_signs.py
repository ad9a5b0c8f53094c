import pytest
from support.odd_queries import ODD_QUERIES

from nodekin.nodegraph.models.output.own_signs import protect_signs, without_own_signs
from nodekin.nodegraph.models.output.queries import parse_query, parse_rewrite, parse_sub_questions


@pytest.mark.parametrize(("question", "query"), ODD_QUERIES)
def test_odd_query_with_words_of_question_is_kept(question: str, query: str) -> None:
    assert parse_rewrite(query, question) == query
    assert parse_query(query, question) == query


def test_odd_queries_without_words_of_question_are_seldom_changed() -> None:
    changed = []
    for _, query in ODD_QUERIES:
        try:
            found = parse_rewrite(query, "what did he mean by that?")
        except ValueError:
            found = None
        if found != query:
            changed.append(query)
    assert len(changed) <= 0.18 * len(ODD_QUERIES), changed


@pytest.mark.parametrize(
    "form", ["- {}\n- How long is the Nile?", '["{}", "How long is the Nile?"]']
)
def test_odd_queries_in_lists_are_kept(form: str) -> None:
    changed = []
    rows = [(question, query) for question, query in ODD_QUERIES if "?" not in query[:-1]]
    for question, query in rows:
        escaped = query.replace("\\", "\\\\").replace('"', '\\"') if form[0] == "[" else query
        answer = form.replace("{}", escaped)
        try:
            found = parse_sub_questions(answer, f"{question} and the nile", 5)[0]
        except ValueError:
            found = None
        if found is None or found.rstrip(".") != query.rstrip("."):
            changed.append((query, found))
    assert len(changed) <= 0.05 * len(rows), changed


@pytest.mark.parametrize(
    ("question", "answer", "kept"),
    [
        ("git: rebase", "Query: git: rebase", "Query: git_ rebase"),
        ("what is <div>", "<query>What is <div>?</query>", "<query>What is _div_?</query>"),
        ("1. who wrote it 2. who read it", "1. Who wrote it?", "1. Who wrote it?"),
        ("- who wrote it\n- who read it", "- Who wrote it?", "- Who wrote it?"),
        ("why can't I sleep", "I can't help with that", "I can't help with that"),
        ('say "how high is it', '"How high is the hill?"', '"How high is the hill?"'),
        ("error: cannot connect", "Error: rate limit", "Error_ rate limit"),
        ('json {"query": "x"}', '{"query": "Is it JSON?"}', '{"query": "Is it JSON?"}'),
    ],
)
def test_signs_of_question_become_letters(question: str, answer: str, kept: str) -> None:
    own = protect_signs(answer, question)
    shown = "".join("_" if sign in own.signs else sign for sign in own.text)
    assert shown == kept
    assert own.restored(own.text) == answer
    assert not set(own.signs) & set(without_own_signs(own.text))
