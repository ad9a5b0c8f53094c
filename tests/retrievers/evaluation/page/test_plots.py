"""Plots as SVG: points stand where the figures are."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from fixed_retriever import fixed

from nodekin.nodegraph import Node
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate
from nodekin.retrievers.evaluation.page.plots import Axis

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def compared():
    right, wrong = (Node(f"Tea from {id}", id=id) for id in ("right", "wrong"))
    data = Dataset([Question(str(n), f"{n}?", (GoldDocument("right"),)) for n in range(40)])
    setups = {"第一": fixed([wrong, right]), "<better>": fixed([right]), "none": fixed([])}
    return evaluate(setups, data, ["mrr@2", "tokens_per_gold@2"])


def parts(svg: str, tag: str, kind: str) -> list[ET.Element]:
    return [e for e in ET.fromstring(svg).iter(SVG + tag) if kind in e.get("class", "").split()]


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(SVG + "text")]


def numbers_to_places(svg: str) -> tuple[float, float]:
    """Return how many pixels a unit is, and where zero is, from the ticks of the upright axis."""
    ticks = [
        (float(e.text), float(e.get("y")) - 4)
        for e in ET.fromstring(svg).iter(SVG + "text")
        if e.get("text-anchor") == "end" and e.text.replace(".", "").replace("-", "").isdigit()
    ]
    (one, y1), (other, y2) = ticks[0], ticks[-1]
    scale = (y2 - y1) / (other - one)
    return scale, y1 - one * scale


def test_points_and_intervals_stand_where_the_figures_are(compared):
    svg = compared.plot_quality("mrr@2", "tokens")
    scale, zero = numbers_to_places(svg)
    figures = [compared.figures[setup]["mrr@2"] for setup in compared.records]
    points = parts(svg, "circle", "point")[3:]  # after those of the legend
    upright = parts(svg, "line", "interval")[::2]
    for figure, point, line in zip(figures, points, upright, strict=True):
        assert float(point.get("cy")) == pytest.approx(zero + scale * figure.value, abs=0.2)
        ends = sorted(zero + scale * end for end in (figure.low, figure.high))
        assert sorted(float(line.get(y)) for y in ("y1", "y2")) == pytest.approx(ends, abs=0.2)


def test_the_legend_has_the_figures(compared):
    svg = compared.plot_quality("mrr@2", "tokens")
    costs = compared.costs("第一")
    assert f"0.500, {costs['tokens']:.1f}" in texts(svg)
    assert {"第一", "<better>", "none"} <= set(texts(svg))


def test_differences_stand_around_zero_filled_where_shown(compared):
    svg = compared.plot_differences()
    (zero,) = {line.get("x1") for line in parts(svg, "line", "zero")[:1]}
    better, worse = parts(svg, "circle", "point")[:2]
    assert "better" in better.get("class")
    assert "worse" in worse.get("class")
    assert float(worse.get("cx")) < float(zero) < float(better.get("cx"))
    assert better[0].text == str(compared.difference("mrr@2", "第一", "<better>"))
    assert "+0.500 (+0.500 to +0.500)" in texts(svg)


def test_a_metric_that_no_question_is_judged_by_is_said():
    data = Dataset([Question("1", "?")])
    result = evaluate({"a": fixed([]), "b": fixed([])}, data, ["mrr@2"])
    assert "No set-up has a figure." in texts(result.plot_quality("mrr@2"))
    assert "no question judged for both" in texts(result.plot_differences())
    assert "两者都评判过" in "".join(texts(result.plot_differences(language="zh")))


def test_one_setup_has_nothing_to_compare():
    data = Dataset([Question("1", "?", (GoldDocument("x"),))])
    result = evaluate({"only": fixed([])}, data, ["mrr@2"])
    assert "One set-up: there is nothing to compare." in texts(result.plot_differences())
    assert len(parts(result.plot_quality("mrr@2"), "circle", "point")) == 2


def test_hostile_names_leave_the_picture_whole(evaluation):
    for svg in (evaluation.plot_differences(), evaluation.plot_quality("mrr@3", "seconds")):
        assert not [e for e in ET.fromstring(svg).iter() if e.tag == SVG + "img"]
        assert "href" not in svg


def test_unknown_names_are_errors_that_name_the_nearest(compared):
    with pytest.raises(ValueError, match=r"mrr@2"):
        compared.plot_quality("mrr@3")
    with pytest.raises(ValueError, match=r"tokens"):
        compared.plot_quality("mrr@2", "token")


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"),
    [(0, 1.08, False), (0.9623, 0.9871, False), (-0.012, 0.011, False), (0, 31_000, False),
     (0.3, 900, True), (0.2, 5, True)],
)  # fmt: skip
def test_ticks_are_round_and_in_range(low, high, logarithmic):
    ticks = Axis(low, high, 0, 100, logarithmic).ticks()
    assert 3 <= len(ticks) <= 8
    assert all(low - 1e-9 <= value <= high + 1e-9 for value, _ in ticks)
    assert all(float(text.replace(",", "")) == pytest.approx(value) for value, text in ticks)
    assert all(one < other for (one, _), (other, _) in pairwise(ticks))
