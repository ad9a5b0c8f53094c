"""Marks of raised numbers: endless words end in linear time."""

import pytest

from nodekin.adapters.files.markup import superscript


@pytest.mark.parametrize("run", ["a", "1.", "茶", "1,a"])
def test_superscript_after_endless_word_ends(run: str) -> None:
    assert "2" in superscript(run * 500_000 + "!", "2")
