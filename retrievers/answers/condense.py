"""Make a question that is understood without the conversation it was asked in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ...nodegraph import LLM
from ...nodegraph.llm.language import Language
from ..asking import answered
from ..plan import Plan
from ..prompt import Prompt
from ..strategies.reading import read_query
from ..trace import stage
from .history import Pair, newest, told

logger = logging.getLogger(__name__)


def condensed(
    question: str,
    pairs: Sequence[Pair],
    *,
    llm: LLM,
    prompt: Prompt,
    language: Language,
    history_limit: int,
    limit: int,
    length: Callable[[str], int],
    timeout: float | None,
    notes: list[str],
) -> Plan[str]:
    """Return a question that is understood without what was said before, made by a model.

    Without a conversation, and where the model fails, it is the question as it is; the notes say
    that, and what of the conversation there was no room for.

    Args:
        question: The question.
        pairs: The conversation.
        llm: The model.
        prompt: What it is asked.
        language: Of the prompt.
        history_limit: How long the conversation may be in it.
        limit: How long all of it may be.
        length: Measures a text.
        timeout: Seconds to wait for the model.
        notes: Gets what is to be known.
    """
    if not pairs:
        return question
    asked = ""
    with stage("condense", question=question, pairs=len(pairs)) as done:
        bare = length(prompt.fill(language, question=question, history=""))
        room = min(history_limit, limit - bare)
        kept, told_of = newest(pairs, room, length, language)
        while kept:
            asked = prompt.fill(language, question=question, history=told(kept, language))
            if length(asked) <= limit:
                break
            del kept[0]
        notes += told_of
        if not kept:
            notes.append("there is no room for the conversation beside the question")
            return question
        try:
            made = yield from answered(
                llm, asked, lambda made: read_query(made, question), language, timeout=timeout
            )
        except Exception as error:
            note = f"condensing the question failed: {type(error).__name__}: {error}"
            logger.warning("the question %r is taken as it is: %s", question[:80], note)
            done.facts["failed"] = note
            notes.append(f"{note}; it was searched for as it is")
            return question
        done.facts["condensed"] = made
    return made
