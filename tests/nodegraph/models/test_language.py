import pytest

from nodekin.nodegraph.models.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("长江有多长？", "zh"),
        ("iPhone 15 是什么时候发布的", "zh"),
        ("How long is the 长江?", "en"),
        ("富士山は日本で一番高い山です。", "en"),
        ("Où est la Seine ?", "en"),
        ("42", "en"),
        ("", "en"),
    ],
)
def test_language(text, language):
    assert language_of(text) == language
