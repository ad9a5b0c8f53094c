"""A page for a browser: ask a corpus, and look inside it."""

from .page_app import PageApp
from .tried_setups import TriedSetups

__all__ = ["PageApp", "TriedSetups"]
