"""nodekin's adapters, all of them, below the name that the ecosystem expects."""

from nodekin.adapters.langchain import *
from nodekin.adapters.langchain import __all__ as __all__
