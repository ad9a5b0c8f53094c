"""The command ``nodekin``: index a folder, search it, ask it; from any shell."""

from .app import main

__all__ = ["main"]
