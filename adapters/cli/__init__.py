"""The command ``nodekin``, which indexes and searches folders and answers questions about them."""

import gc

__all__ = ["main"]


def main() -> None:
    """Run the command line interface with the arguments of this process."""
    from .interrupts import end_on_interrupt

    end_on_interrupt()
    from .app import app

    gc.set_threshold(100_000)  # most objects live until the process ends
    try:
        app()
    finally:
        end_on_interrupt()
