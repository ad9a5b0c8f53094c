import pytest

from nodekin.nodegraph.models.output.json_values import parse_json


def test_json_in_prose():
    assert parse_json('Here: {"a": [1, 2]} as you asked') == {"a": [1, 2]}
    assert parse_json('<think>[1]</think>```json\n{"a": 1}\n```') == {"a": 1}
    assert parse_json("true") is True
    with pytest.raises(ValueError, match="no JSON in the answer 'tea'"):
        parse_json("tea")


def test_json_that_is_nested_too_deeply_is_none() -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|no JSON"):
        parse_json("[" * 300 + "1" + "]" * 300)
    assert parse_json("[[[1]]]") == [[[1]]]


def test_apostrophes_end_no_string() -> None:
    assert parse_json("{'a': 'it's', 'b': ['c', 'd',],}") == {"a": "it's", "b": ["c", "d"]}
