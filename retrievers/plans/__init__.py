"""Plans of effects: code that is written once, and runs in threads, event loops or as streams."""
