"""The page's own words."""

import re
from pathlib import Path
from string import Formatter

import pytest

from nodekin.retrievers.evaluation import matching
from nodekin.retrievers.evaluation.page.page_data import (
    Wording,
    asset,
    element,
    markup,
    phrases,
    translated,
    words,
)


def test_both_languages_have_the_same_words_with_the_same_values():
    english, chinese = words()["en"], words()["zh"]
    assert english.keys() == chinese.keys()
    for key in english:
        assert fields(english[key]) == fields(chinese[key]), key


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_word_is_used_and_every_used_word_is_there():
    script = asset("page.js")
    sources = "".join(asset(name) for name in ("page.py", "page.html", "plots.py")) + script
    unused = {key for key in words()["en"] if not re.search(rf"\b{key}\b", sources)}
    made = ("show_", "sort_", "plot_", "axis_")  # put together from a choice
    helped = {"milliseconds_help", "tokens_help", "worse"}  # "worse" is a kind of difference
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


def test_all_that_an_evaluation_says_is_translated(evaluation):
    judgements = [
        judgement
        for by_setup in evaluation.judgements.values()
        for of in by_setup.values()
        for judgement in of.values()
    ]
    said = {*evaluation.notes(), *map(str, evaluation.missing_gold)}
    said |= {judgement.evidence or judgement.reason for judgement in judgements}
    for records in evaluation.records.values():
        for record in records.values():
            said |= {line for item in record.items for line in item.explanation.split("\n")[1:]}
    assert len(said) > 40
    assert {text for text in said if translated(text, "zh") == text} == set()
    assert {translated(text, "en") for text in said} == said


def test_phrases_are_translated_as_far_as_they_are_known():
    evidence = "2 of 3 statements; 1 yes: Much of it; 2 no; 3 yes"
    assert translated(evidence, "zh") == "3 条陈述中的 2 条；1 是: Much of it；2 否；3 是"
    note = "a, b, recall@1: 2 of 3 questions are not judged ('1', '2'); the question has no gold"
    chinese = "a, b，recall@1：3 个问题中有 2 个未评判 ('1', '2')；该问题没有标准内容"
    assert translated(note, "zh") == chinese
    match = '  1.2  s  bm25 for "a: b": itself, searched with title, which gave 0.5000'
    assert (
        translated(match, "zh") == '  1.2  s  bm25，查询 "a: b"：自身，同时检索 title，贡献 0.5000'
    )
    assert translated("OSError: no disk", "zh") == "OSError: no disk"


def test_phrases_are_those_of_the_code():
    """Every reason that a question is not judged for has a translation."""
    folder = Path(matching.__file__).parent
    source = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    for said in re.findall(r'NotJudgedError\(\s*f?"([^"]*)"', source):
        filled = re.sub(r"\{[^}]*\}", "7", said)
        assert "{message}" in said or translated(filled, "zh") != filled, said
    for what in ("the results have", "a result has"):
        too_long = f"{what} 7 characters, and the judge takes 6; raise max_characters"
        assert translated(too_long, "zh") != too_long
    assert all(re.compile(pattern) for pattern, _ in phrases()["zh"])
