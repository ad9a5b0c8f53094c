"""An evaluation as one HTML page that holds everything it shows and requests nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping

from ..intervals import Difference, Figure, format_value
from .page_data import (
    LIMITS,
    EvaluationLike,
    PackedQuestions,
    PageLanguage,
    Wording,
    asset,
    element,
    markup,
    pack,
    pairs,
    phrases,
    translated,
    words,
)
from .plots import plot_differences, plot_quality

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
    wording = Wording(language or "en")
    parts = _Parts(evaluation, wording, differences).all(language)
    remainder = len(_filled(parts, wording, PackedQuestions("", 0, "utf-8", LIMITS[0])).encode())
    packed = pack(evaluation, differences, max_bytes - remainder - 400)
    page = _filled(parts, wording, packed)
    size = len(page.encode("utf-8"))
    if size > max_bytes:
        _logger.warning(
            "the page of %d questions has %d bytes, more than %d, though its texts are cut to %s "
            "characters; give fewer questions or set-ups, or a larger max_bytes",
            *(len(evaluation.dataset), size, max_bytes, packed.limits[1]),
        )
    return page


def _filled(parts: Mapping[str, str], wording: Wording, packed: PackedQuestions) -> str:
    """Return ``page.html`` with its parts, and words where a name is that of none."""
    cut = ""
    if packed.limits[1] is not None:
        text = wording.span("texts_cut", count=f"{packed.limits[1]:,}")
        cut = element("p", text, {"class": "quiet"})
    texts = {
        **parts,
        "cut": cut,
        "size": str(packed.size),
        "encoding": packed.encoding,
        "data": packed.text,
    }

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        return texts[name] if name in texts else wording.span(name)

    return re.sub(r"\{(\w+)\}", fill, asset("page.html"))


class _Parts:
    """Write the parts of the page, all but the questions, as markup."""

    def __init__(
        self, evaluation: EvaluationLike, wording: Wording, differences: Iterable[Difference]
    ) -> None:
        self.evaluation = evaluation
        self.wording = wording
        self.setups = list(evaluation.records)
        self.differences = {
            (entry.metric, entry.second): entry
            for entry in differences
            if entry.first == self.setups[0]
        }

    def all(self, language: PageLanguage | None) -> dict[str, str]:
        """Return the parts by their names in ``page.html``."""
        say, evaluation = self.wording.span, self.evaluation
        style, script = asset("page.css"), asset("page.js")
        spoken = json.dumps({**words(), "phrases": phrases()}, ensure_ascii=False)
        name = evaluation.dataset.name
        caption = say("figures_help_one")
        if len(self.setups) > 1:
            caption = say("figures_help", first=self.setups[0])
        metrics = list(enumerate(evaluation.metrics))
        return {
            "language": self.wording.language,
            "chosen": f' data-language="{language}"' if language else "",
            "script_hash": _hash(script),
            "style_hash": _hash(style),
            "style": style,
            "script": script,
            "words": spoken.replace("<", "\\u003c"),
            "head": markup(self.wording.text("title", dataset=name)),
            "title": say("title", dataset=name),
            "lead": say(
                "lead",
                questions=f"{len(evaluation.dataset):,}",
                setups=f"{len(self.setups):,}",
                metrics=f"{len(metrics):,}",
            ),
            "caption": caption,
            "columns": "".join(self._columns()),
            "rows": "".join(self._row(at, setup) for at, setup in enumerate(self.setups)),
            "remarks": self._remarks(),
            "options": "".join(
                element("option", markup(metric), {"value": str(at)}) for at, metric in metrics
            ),
            "drawings": "".join(
                element("div", self._plots_of(metric), {"class": "plots", "data-metric": str(at)})
                for at, metric in metrics
            ),
        }

    def _columns(self) -> Iterator[str]:
        say = self.wording.span
        yield element("th", say("setup"), {"scope": "col"})
        for metric in self.evaluation.metrics.values():
            less = "" if metric.higher_is_better else f"<small>{say('less')}</small>"
            yield element("th", markup(metric.name) + less, {"scope": "col"})
        for key in ("milliseconds", "tokens", "model_calls"):
            help_key = f"{key}_help"
            helped = f"<small>{say(help_key)}</small>" if help_key in words()["en"] else ""
            yield element("th", say(key) + helped, {"scope": "col", "class": "cost"})

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
        if entry.kind == "unknown":
            return f'<span class="difference same">{say("no_pairs")}</span>'
        value, low, high = entry.numbers(signed=True)
        numbers = say("value_interval", value=value, low=low, high=high)
        return (
            f'<span class="difference {entry.kind}"><b>{say(entry.kind)}</b> {numbers}'
            f"<small>{say('differ_on', count=f'{entry.different:,}')}</small></span>"
        )

    def _remarks(self) -> str:
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
        if entry.kind == "unknown":
            return self.wording.span("sentence_none", **names)
        value, low, high = entry.numbers()
        numbers = {"value": value, "low": low, "high": high}
        if entry.better is None:
            key = "sentence_same_one" if entry.questions == 1 else "sentence_same"
            count = {"questions": str(entry.questions)}
            return self.wording.span(key, **names, **numbers, **count)
        other = entry.first if entry.better == entry.second else entry.second
        better = {"better": entry.better, "other": other}
        return self.wording.span("sentence_better", metric=entry.metric, **better, **numbers)

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
