"""The page's own words."""

import re
from string import Formatter

import pytest

from nodekin.retrievers.evaluation.page.wording import Wording, asset, element, markup, words


def test_both_languages_have_the_same_words_with_the_same_values():
    english, chinese = words()["en"], words()["zh"]
    assert english.keys() == chinese.keys()
    for key in english:
        assert fields(english[key]) == fields(chinese[key]), key


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_word_is_used_and_every_used_word_is_there():
    script = asset("page.js")
    sources = "".join(asset(name) for name in ("page.py", "plots.py")) + script
    unused = {key for key in words()["en"] if not re.search(rf"\b{key}\b", sources)}
    made = ("show_", "sort_", "plot_", "axis_")  # put together from a choice
    helped = {"milliseconds_help", "tokens_help"}
    assert not {key for key in unused if not key.startswith(made)} - helped
    assert set(re.findall(r'say\("(\w+)"', script)) <= words()["en"].keys()


def test_markup_is_escaped_and_has_no_characters_that_html_lacks():
    assert markup("<b> & \"'\x00\ud800") == "&lt;b&gt; &amp; &quot;&#x27;\ufffd\ufffd"
    assert element("a", "x", {"b": '">', "c": 1.0}) == '<a b="&quot;&gt;" c="1">x</a>'


def test_values_are_no_templates():
    span = Wording("zh").span("title", dataset="{first} <b>")
    assert "{first} &lt;b&gt;</span>" in span
    assert 'data-word="title"' in span


def test_another_language_is_an_error_that_names_those_there_are():
    with pytest.raises(ValueError, match=r"'en'.*'zh'"):
        Wording("fr")
