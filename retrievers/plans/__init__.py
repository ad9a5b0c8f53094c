"""What a retriever does, written once: plans of effects, run in threads, loops or as streams."""
