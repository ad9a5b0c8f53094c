"""The command ``nodekin``: index a folder, search it, ask it; from any shell."""

import gc

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    from .interrupts import end_on_interrupt

    end_on_interrupt()
    from .app import app

    gc.set_threshold(100_000)  # most objects live until the end
    try:
        app()
    finally:
        end_on_interrupt()
