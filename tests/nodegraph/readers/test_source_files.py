"""The options for reading files."""

import pytest

from nodekin.nodegraph import ReadOptions


@pytest.mark.parametrize(
    "name",
    "strict encoding ocr ignore_files skip_folders hidden max_bytes seconds num_workers".split(),
)
@pytest.mark.parametrize("value", [b"x", [1], {1: "a"}])
def test_wrong_type_of_read_option_raises(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name} must be .*, got "):
        ReadOptions(**{name: value})


@pytest.mark.parametrize("name", ["ignore_files", "skip_folders"])
def test_read_option_of_one_name_raises(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name} must be a list of names, got 'node_modules'"):
        ReadOptions(**{name: "node_modules"})
