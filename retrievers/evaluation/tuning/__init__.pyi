from .setup_search import FEWEST_QUESTIONS as FEWEST_QUESTIONS
from .setup_search import Trial as Trial
from .space import Choice as Choice
from .space import Space as Space
from .tuner import Tuning as Tuning
from .tuner import tune as tune
