"""Coroutines that are written once and run with or without an event loop, or as streams."""
