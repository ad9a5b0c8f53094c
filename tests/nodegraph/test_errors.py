"""Errors name what there is, and travel between processes."""

import pickle

from nodekin.nodegraph import TransformError
from nodekin.nodegraph.errors import nearest_names


def test_the_nearest_names_come_first() -> None:
    assert nearest_names("lnie", ["word", "line", "ROOT"]) == "'line', 'word', 'ROOT'"


def test_long_lists_are_cut() -> None:
    numbers = [f"{n}" for n in range(10)]
    assert nearest_names("", numbers, limit=2) == "'0', '1' and 8 more"
    assert nearest_names("7", numbers, limit=2) == "'7' and 9 more"
    assert nearest_names("x", numbers, limit=2) == "none like it among 10"
    assert nearest_names("x", []) == "none"
    files = [f"{n}.md" for n in numbers]  # a suffix alone is no likeness
    assert nearest_names("rivers.md", files, limit=2) == "none like it among 10"
    assert nearest_names("docs/7.md", files, limit=2) == "'7.md' and 9 more"
    parks = [f"parks/{n}/mkdocs.yml" for n in numbers]  # nor is the folder
    assert nearest_names("parks/links.md", parks, limit=2) == "none like it among 10"


def test_a_transform_error_is_the_same_after_pickling() -> None:
    error = TransformError("doc", "line", "ValueError: no")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.group) == (str(error), "line")
