"""What a retriever does, written once: plans of effects, run in threads, loops or as streams."""

from .effects import Ask, Each, Find, Speak, in_threads
from .limits import Budget, Call, Spent, Tally, counted
from .passages import fit_passages, neutralize
from .plan import Plan, arun, astream, run, stream
from .prompting import Prompt, Prompted, answered, in_json

__all__ = [
    "Ask",
    "Budget",
    "Call",
    "Each",
    "Find",
    "Plan",
    "Prompt",
    "Prompted",
    "Speak",
    "Spent",
    "Tally",
    "answered",
    "arun",
    "astream",
    "counted",
    "fit_passages",
    "in_json",
    "in_threads",
    "neutralize",
    "run",
    "stream",
]
