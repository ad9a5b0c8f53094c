"""Choose a set-up by questions: search a space of set-ups, report on questions held back."""

from .setup_search import FEWEST_QUESTIONS, Trial
from .space import Choice, Space
from .tuner import Tuning, tune

__all__ = ["FEWEST_QUESTIONS", "Choice", "Space", "Trial", "Tuning", "tune"]
