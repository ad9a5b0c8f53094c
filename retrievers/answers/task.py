"""One question on its way to an answer: what is asked of whom, and what there is room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...nodegraph import LLM, ModelError
from ...nodegraph.llm.language import Language
from ..effects import Ask
from ..plan import Plan
from ..prompt import Prompt
from .answer import LeftOut, Reason, Source
from .citations import is_bare
from .cutting import cut, split
from .passages import shown
from .said import Said, read_said
from .speak import Speak


@dataclass(slots=True)
class Task:
    """Hold what the modes of answering share; filled while a question is answered.

    Attributes:
        question: As it was searched for.
        language: Of the prompts.
        llm: The model.
        prompts: The prompts by name.
        limit: The longest prompt, in what ``length`` counts.
        length: Measures a text.
        timeout: Seconds to wait for each answer of the model.
        max_calls: How often the modes may ask the model.
        candidates: What the retrieved results make, best first, not numbered yet.
        sources: What the model is shown, numbered.
        left_out: What it is not.
        notes: What is to be known besides.
        told: The pieces that were streamed.
        certain: Numbers of sources that the answer was made from, whether it cites them or not.
        confidence: What the model says of the answer.
    """

    question: str
    language: Language
    llm: LLM
    prompts: Mapping[str, Prompt]
    limit: int
    length: Callable[[str], int]
    timeout: float | None = None
    max_calls: int = 64
    candidates: list[Source] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    certain: tuple[int, ...] = ()
    confidence: float | None = None

    def prompt(self, name: str, **values: object) -> str:
        """Return a prompt with the question and values in their places."""
        return self.prompts[name].fill(self.language, question=self.question, **values)

    def fits(self, name: str, sources: Sequence[Source] = (), **values: object) -> bool:
        """Tell whether a prompt with these passages is short enough."""
        return self.short(self.prompt(name, passages=shown(sources), **values))

    def short(self, prompt: str, reserve: int = 0) -> bool:
        """Tell whether a prompt is short enough, also with so much more."""
        return self.length(prompt) + reserve <= self.limit

    def ask(self, prompt: str, *, last: bool = False) -> Plan[Said]:
        """Ask the model; what it says last is what is streamed.

        Raises:
            ModelError: If it fails, or says nothing.
        """
        if last:
            effect: Ask = Speak(self.llm, prompt, timeout=self.timeout, told=self.told)
        else:
            effect = Ask(self.llm, prompt, timeout=self.timeout)
        said = read_said((yield effect))
        if said.found and is_bare(said.text):
            raise ModelError(f"the language model {self.llm.name!r} gave an empty answer")
        return said

    def leave_out(self, source: Source, reason: Reason) -> None:
        """Take down that a source is not shown to the model."""
        for result in (source.result, *source.merged):
            self.left_out.append(LeftOut(result, reason))

    def shown(self) -> str:
        """Return all sources as a prompt has them."""
        return shown(self.sources)

    def check_room(self, name: str) -> None:
        """Check that there is something to show to the model in a prompt.

        Raises:
            ValueError: If there is no room for any passage beside the prompt and the question.
        """
        if self.candidates and not self.sources:
            bare = self.length(self.prompt(name, passages="", answer=""))
            raise ValueError(
                f"there is no room for a passage: the prompt {name!r} and the question measure "
                f"{bare} of {self.limit}; raise budget, or shorten the question "
                f"{self.question!r:.60}"
            )

    def number(self, source: Source) -> Source:
        """Return a source with the next number."""
        return replace(source, number=len(self.sources) + 1)

    def shorten(self, source: Source, fits: Callable[[Source], bool]) -> Source | None:
        """Return a source whose text is cut so that it fits; None where nothing of it does."""
        match = place_of_match(source)
        text = cut(source.text, lambda text: fits(replace(source, text=text)), match)
        return replace(source, text=text, whole=False) if text else None

    def parts(self, fits: Callable[[Source], bool]) -> list[Source]:
        """Number all candidates, and return them in parts that fit, in order.

        Parts of one source have its number. What can't fit at all is left out, for the budget.
        """
        parts: list[Source] = []
        for candidate in self.candidates:
            source = self.number(candidate)
            texts = split(source.text, lambda text, s=source: fits(replace(s, text=text)))  # type: ignore[misc]
            if not texts:
                self.leave_out(candidate, "budget")
                continue
            self.sources.append(source)
            parts += [replace(source, text=text, whole=len(texts) == 1) for text in texts]
        return parts

    def keep(self, parts: Sequence[Source], limit: int) -> list[Source]:
        """Return the first parts, and take down what is left out for the number of model calls."""
        kept, rest = list(parts[:limit]), parts[limit:]
        if rest:
            shown_numbers = {part.number for part in kept}
            for source in self.sources:
                if source.number not in shown_numbers:
                    self.leave_out(source, "calls")
            self.sources = [s for s in self.sources if s.number in shown_numbers]
            cut_short = {part.number for part in rest} & shown_numbers
            for at, source in enumerate(self.sources):
                if source.number in cut_short:
                    own = [part.text for part in kept if part.number == source.number]
                    self.sources[at] = replace(source, text="\n".join(own), whole=False)
                    self.notes.append(
                        f"only the first {len(own)} parts of [{source.number}] were read: more "
                        f"would take more than {self.max_calls} calls of the model"
                    )
        return kept


def place_of_match(source: Source) -> int:
    """Return where in a source's text its best match stands, 0 where that is unknown."""
    node = source.result.node
    for match in source.result.evidence:
        if match.node.document_id != node.document_id or match.node.start is None:
            continue
        begins = [result.node.start for result in (source.result, *source.merged)]
        known = [begin for begin in begins if begin is not None]
        if node.start is None or len(known) < len(begins):
            return max(0, source.text.find(match.node.text))
        return max(0, match.node.start - min(known))
    return 0
