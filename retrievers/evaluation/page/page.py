"""An evaluation as one HTML page that holds everything it shows and requests nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Iterable

from ..intervals import Difference, Figure, format_value
from .evaluation_like import EvaluationLike
from .page_data import LIMITS, PackedQuestions, difference_numbers, pack, pairs
from .plots import plot_differences, plot_quality
from .wording import (
    PageLanguage,
    Wording,
    asset,
    element,
    markup,
    phrases,
    translated,
    words,
)

_logger = logging.getLogger("nodekin")

_MAX_MISSING = 50


def make_page(evaluation: EvaluationLike, language: PageLanguage | None, max_bytes: int) -> str:
    """Return the page: table, plots and notes as markup, questions as data for its script.

    What others wrote (documents, questions, names) is escaped or written by ``textContent``, and a
    policy lets nothing run or load but the page's own script and style.

    Args:
        evaluation: The evaluation.
        language: What the page starts with. None for the reader's, which the script looks up.
        max_bytes: How large it should be at most. Texts are cut to get there.
    """
    differences = list(pairs(evaluation))
    frame = _Frame(evaluation, Wording(language or "en"), language, differences)
    remainder = len(frame.page(PackedQuestions("", 0, "utf-8", LIMITS[0])).encode("utf-8"))
    packed = pack(evaluation, differences, max_bytes - remainder - 400)
    page = frame.page(packed)
    size = len(page.encode("utf-8"))
    if size > max_bytes:
        _logger.warning(
            "the page of %d questions has %d bytes, more than %d, though its texts are cut to %s "
            "characters; give fewer questions or set-ups, or a larger max_bytes",
            *(len(evaluation.dataset), size, max_bytes, packed.limits[1]),
        )
    return page


class _Frame:
    """Write all of the page but the questions."""

    def __init__(
        self,
        evaluation: EvaluationLike,
        wording: Wording,
        language: PageLanguage | None,
        differences: Iterable[Difference],
    ) -> None:
        self.evaluation = evaluation
        self.wording = wording
        self.language = language
        self.setups = list(evaluation.records)
        self.differences = {
            (entry.metric, entry.second): entry
            for entry in differences
            if entry.first == self.setups[0]
        }
        self.before, self.after = self._before(), self._after()

    def page(self, packed: PackedQuestions) -> str:
        """Return the page with packed questions."""
        style, script = asset("page.css"), asset("page.js")
        policy = (
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
            "base-uri 'none'; form-action 'none'"
        )
        title = self.wording.text("title", dataset=self.evaluation.dataset.name)
        message = {**words(), "phrases": phrases()}
        spoken = json.dumps(message, ensure_ascii=False).replace("<", "\\u003c")
        chosen = {"data-language": self.language} if self.language else {}
        cut = ""
        if packed.limits[1] is not None:
            text = self.wording.span("texts_cut", count=f"{packed.limits[1]:,}")
            cut = element("p", text, {"class": "quiet"})
        root = {"lang": self.wording.language, **chosen}
        head = (
            '<meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><meta name="referrer" '
            f'content="no-referrer">{element("title", markup(title))}'
        )
        return "<!DOCTYPE html>\n" + element(
            "html",
            f"<head>{head}<style>{style}</style></head>\n<body>{self.before}{cut}{self.after}\n"
            f'<script type="application/json" id="words">{spoken}</script>\n'
            f'<script type="application/octet-stream" id="data" data-size="{packed.size}" '
            f'data-encoding="{packed.encoding}">{packed.text}</script>\n'
            f"<script>{script}</script></body>",
            root,
        )

    def _before(self) -> str:
        """Return the body up to the questions."""
        say = self.wording.span
        evaluation = self.evaluation
        counts = (len(evaluation.dataset), len(self.setups), len(evaluation.metrics))
        lead = dict(
            zip(("questions", "setups", "metrics"), (f"{n:,}" for n in counts), strict=True)
        )
        controls = (
            '<div class="controls"><button type="button" id="language" hidden></button>'
            '<button type="button" id="theme" hidden></button></div>'
        )
        header = (
            f"<header><div><h1>{say('title', dataset=evaluation.dataset.name)}</h1>"
            f"<p>{say('lead', **lead)}</p></div>{controls}</header>"
        )
        return (
            f'{header}<main><section aria-labelledby="h-figures">'
            f'<h2 id="h-figures">{say("figures")}</h2>{self._table()}{self._notes()}</section>'
            '<section aria-labelledby="h-plots">'
            f'<h2 id="h-plots">{say("plots")}</h2>{self._plots()}</section>'
            '<section aria-labelledby="h-questions" id="questions">'
            f'<h2 id="h-questions" tabindex="-1">{say("questions")}</h2>'
        )

    def _after(self) -> str:
        """Return the place of the questions, and what follows."""
        say = self.wording.span
        return (
            f'<p id="state">{say("reading")}</p><noscript><p>{say("scripts")}</p></noscript>'
            '<div id="browser" hidden></div></section></main>'
            f"<footer>{say('footer')}</footer>"
        )

    def _table(self) -> str:
        say = self.wording.span
        heads = [element("th", say("setup"), {"scope": "col"})]
        for metric in self.evaluation.metrics.values():
            less = "" if metric.higher_is_better else f"<small>{say('less')}</small>"
            heads.append(element("th", markup(metric.name) + less, {"scope": "col"}))
        for key in ("milliseconds", "tokens", "model_calls"):
            helped = (
                f"<small>{say(f'{key}_help')}</small>" if f"{key}_help" in words()["en"] else ""
            )
            heads.append(element("th", say(key) + helped, {"scope": "col", "class": "cost"}))
        rows = "".join(self._row(position, setup) for position, setup in enumerate(self.setups))
        first = {"first": self.setups[0]} if len(self.setups) > 1 else {}
        caption = say("figures_help", **first) if first else say("figures_help_one")
        return (
            f'<p class="quiet" id="figures-help">{caption} {say("cost_help")}</p>'
            '<div class="scroll" role="region" aria-labelledby="h-figures" tabindex="0">'
            '<table id="figures" aria-describedby="figures-help">'
            f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def _row(self, position: int, setup: str) -> str:
        name = f"<bdi>{markup(setup)}</bdi>"
        if not position and len(self.setups) > 1:
            name += f"<small>{self.wording.span('baseline')}</small>"
        costs = self.evaluation.costs(setup)
        if costs["failed"]:
            count = f"{costs['failed']:,.0f}"
            name += f'<small class="wrong">{self.wording.span("failed", count=count)}</small>'
        cells = [element("th", name, {"scope": "row"})]
        for index, metric in enumerate(self.evaluation.metrics):
            inner = self._figure(self.evaluation.figures[setup][metric])
            inner += self._difference(self.differences.get((metric, setup)))
            button = {"type": "button", "data-setup": str(position), "data-metric": str(index)}
            cells.append(element("td", element("button", inner, button)))
        for text in (
            f"{1000 * costs['median_seconds']:,.1f}",
            f"{costs['tokens']:,.0f}",
            f"{costs['model_calls']:,.0f}",
        ):
            cells.append(element("td", text, {"class": "cost"}))
        return element("tr", "".join(cells))

    def _figure(self, figure: Figure) -> str:
        say = self.wording.span
        if figure.value is None or figure.low is None or figure.high is None:
            return f"<strong>{say('not_judged_cell')}</strong>"
        value = f"{figure.value:.{4 if abs(figure.value) < 10 else 1}f}"
        low, high = format_value(figure.low), format_value(figure.high)
        missing = ""
        if figure.not_judged:
            missing = f"<small>{say('of_judged', count=f'{figure.not_judged:,}')}</small>"
        interval = say("interval", low=low, high=high)
        return f"<strong>{value}</strong><small>{interval}</small>{missing}"

    def _difference(self, entry: Difference | None) -> str:
        if entry is None:
            return ""
        say = self.wording.span
        if entry.value is None or entry.low is None or entry.high is None:
            return f'<span class="difference same">{say("no_pairs")}</span>'
        value, low, high = (
            format_value(n, sign=True) for n in (entry.value, entry.low, entry.high)
        )
        kind = (
            "same"
            if entry.better is None
            else "better"
            if entry.better == entry.second
            else "worse"
        )
        numbers = say("value_interval", value=value, low=low, high=high)
        return (
            f'<span class="difference {kind}"><b>{say(kind)}</b> {numbers}'
            f"<small>{say('differ_on', count=f'{entry.different:,}')}</small></span>"
        )

    def _notes(self) -> str:
        say, language = self.wording.span, self.wording.language
        parts = []
        if notes := self.evaluation.notes():
            parts.append(_fold(say("notes"), notes, opened=len(notes) < 7, language=language))
        if missing := self.evaluation.missing_gold:
            lines = [str(entry) for entry in missing[:_MAX_MISSING]]
            more = len(missing) - len(lines)
            remainder = f"<p>{say('missing_more', count=f'{more:,}')}</p>" if more else ""
            parts.append(
                _fold(
                    say("missing", count=f"{len(missing):,}"), lines, remainder, language=language
                )
            )
        if sentences := [self._sentence(entry) for entry in self.differences.values()]:
            parts.append(_list(say("in_words"), sentences))
        return "".join(parts)

    def _sentence(self, entry: Difference) -> str:
        """Return a difference as a sentence. In English that of the difference itself."""
        names = {"metric": entry.metric, "first": entry.first, "second": entry.second}
        if entry.value is None:
            return self.wording.span("sentence_none", **names)
        value, low, high = difference_numbers(entry)
        numbers = {"value": value, "low": low, "high": high}
        if entry.better is None:
            key = "sentence_same_one" if entry.questions == 1 else "sentence_same"
            count = {"questions": str(entry.questions)}
            return self.wording.span(key, **names, **numbers, **count)
        other = entry.first if entry.better == entry.second else entry.second
        better = {"better": entry.better, "other": other}
        return self.wording.span("sentence_better", metric=entry.metric, **better, **numbers)

    def _plots(self) -> str:
        metrics = list(self.evaluation.metrics)
        options = "".join(
            element("option", markup(name), {"value": str(position)})
            for position, name in enumerate(metrics)
        )
        figures = "".join(
            element("div", self._plots_of(metric), {"class": "plots", "data-metric": str(position)})
            for position, metric in enumerate(metrics)
        )
        return (
            f'<p class="choice" hidden><label>{self.wording.span("metric")} '
            f'<select id="plotted">{options}</select></label></p>{figures}'
        )

    def _plots_of(self, metric: str) -> str:
        language = self.wording.language
        rows = [entry for entry in self.differences.values() if entry.metric == metric]
        plots = (
            plot_quality(self.evaluation, metric, "seconds", language),
            plot_quality(self.evaluation, metric, "tokens", language),
            *([plot_differences(self.evaluation, rows, language)] if rows else []),
        )
        return "".join(element("figure", plot) for plot in plots)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _fold(
    summary: str, lines: Iterable[str], remainder: str = "", *, opened: bool = False, language: str
) -> str:
    items = "".join(
        element("li", markup(translated(line, language)), {"data-phrase": line}) for line in lines
    )
    start = "<details open>" if opened else "<details>"
    return f"{start}<summary>{summary}</summary><ul>{items}</ul>{remainder}</details>"


def _list(summary: str, items: Iterable[str]) -> str:
    lines = "".join(element("li", item) for item in items)
    return f"<details><summary>{summary}</summary><ul>{lines}</ul></details>"
