"""Open what a file of set-ups declares; the commands that measure and tune."""

from .setups import load_setup, open_graph

__all__ = ["load_setup", "open_graph"]
