"""Error messages and pickled errors."""

import pickle

from nodekin.nodegraph import TransformError
from nodekin.nodegraph.errors import nearest_names


def test_long_name_lists_are_truncated() -> None:
    numbers = [f"{n}" for n in range(10)]
    assert nearest_names("", numbers, limit=2) == "'0', '1' and 8 more"
    assert nearest_names("7", numbers, limit=2) == "'7' and 9 more"
    assert nearest_names("x", numbers, limit=2) == "none like it among 10"
    assert nearest_names("x", []) == "none"
    files = [f"{n}.md" for n in numbers]  # an equal suffix is not enough
    assert nearest_names("rivers.md", files, limit=2) == "none like it among 10"
    assert nearest_names("docs/7.md", files, limit=2) == "'7.md' and 9 more"
    parks = [f"parks/{n}/mkdocs.yml" for n in numbers]  # an equal folder is not enough
    assert nearest_names("parks/links.md", parks, limit=2) == "none like it among 10"


def test_pickled_transform_error_is_equal() -> None:
    error = TransformError("doc", "line", "ValueError: no")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.group) == (str(error), "line")
