"""Run functions in separate processes."""
