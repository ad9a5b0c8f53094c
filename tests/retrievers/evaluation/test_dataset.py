"""Invalid data sets, and missing gold."""

import pytest

from nodekin.nodegraph import Document
from nodekin.retrievers.evaluation import (
    Dataset,
    DocumentTexts,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Question,
    locate_gold,
)


def test_missing_gold_has_nearest_text():
    tea = Document("Green tea is not fermented.\n\nBlack  tea\nis.", id="tea-1")
    gold = (
        GoldPassage("Black tea is."),
        GoldPassage("Green tea is withered for days."),
        GoldDocument("tea-2"),
        GoldDocument("tea-1"),
        GoldSpan("tea-1", 0, 500),
    )
    data = Dataset([Question("1", "a?", gold)])
    missing = locate_gold(data, DocumentTexts([tea])).missing
    assert [(one.gold, one.nearest) for one in missing] == [
        (gold[1], "Green tea is not fermented."),
        (gold[2], "tea-1"),
        (gold[4], "tea-1"),
    ]
    assert str(missing[1]) == "1: 'tea-2' is in no document; nearest: 'tea-1'"


def test_invalid_dataset_raises():
    with pytest.raises(ValueError, match="questions has no questions"):
        Dataset([])
    with pytest.raises(ValueError, match="must be unique, got 'a'"):
        Dataset([Question("a", "?"), Question("a", "!")])
    with pytest.raises(ValueError, match="grades must be above 0"):
        Dataset([Question("a", "?", (GoldDocument("d", float("nan")),))])
    with pytest.raises(ValueError, match="got 5 to 5 in document 'd'"):
        GoldSpan("d", 5, 5)
