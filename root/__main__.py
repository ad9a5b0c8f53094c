"""The entry point of ``python -m nodekin``, which is equivalent to the command ``nodekin``."""

from .adapters.cli import main

if __name__ == "__main__":
    main()
