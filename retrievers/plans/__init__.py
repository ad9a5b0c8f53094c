"""What a retriever does, written once: plans of effects, run in threads, loops or as streams."""

from .effects import (
    Ask,
    Compute,
    Each,
    Find,
    StreamedAsk,
    find_one,
    gather,
    results_or_errors,
    run_with_timeout,
)
from .fetching import fetch_until_full
from .limits import (
    Budget,
    BudgetExceededError,
    Call,
    CallCounter,
    TimeLimit,
    TimeLimitError,
    count_calls,
)
from .one_state import apaid, arun_in_one_state, paid, run_in_one_state
from .passages import fit_passages, neutralize, passage_title
from .plan import Effect, Plan, arun, astream, interpose, run, stream
from .prompting import (
    Prompt,
    PromptMixin,
    PromptReplacement,
    ask_and_parse,
    json_instruction,
    replace_prompts,
)
from .streaming import astream_with_timeout, stream_with_timeout

__all__ = [
    "Ask",
    "Budget",
    "BudgetExceededError",
    "Call",
    "CallCounter",
    "Compute",
    "Each",
    "Effect",
    "Find",
    "Plan",
    "Prompt",
    "PromptMixin",
    "PromptReplacement",
    "StreamedAsk",
    "TimeLimit",
    "TimeLimitError",
    "apaid",
    "arun",
    "arun_in_one_state",
    "ask_and_parse",
    "astream",
    "astream_with_timeout",
    "count_calls",
    "fetch_until_full",
    "find_one",
    "fit_passages",
    "gather",
    "interpose",
    "json_instruction",
    "neutralize",
    "paid",
    "passage_title",
    "replace_prompts",
    "results_or_errors",
    "run",
    "run_in_one_state",
    "run_with_timeout",
    "stream",
    "stream_with_timeout",
]
