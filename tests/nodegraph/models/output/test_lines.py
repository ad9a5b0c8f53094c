import pytest

from nodekin.nodegraph.models.output.lines import strip_label, strip_markup, strip_ordinal


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1. Green tea.", "Green tea"),
        ('- **"Green tea"**', "Green tea"),
        ('- **"**“茶。”**"**。', "茶"),  # layer by layer, as long as there is one
        ("2) `红茶`；", "红茶"),
        ("to be continued...", "to be continued..."),
        ("", ""),
    ],
)
def test_markup_is_peeled_layer_by_layer(line: str, text: str) -> None:
    assert strip_markup(line) == text


def test_labels_and_ordinals_are_taken_off_once() -> None:
    assert strip_label("Passage: Answer: tea") == "tea"
    assert strip_label("答案：茶") == "茶"
    assert strip_label("tea") == "tea"
    assert strip_ordinal("First, warm the pot") == "warm the pot"
    assert strip_ordinal("b) warm the pot") == "warm the pot"
