"""Let ``python -m nodekin`` do what ``nodekin`` does."""

from .adapters.cli import main

if __name__ == "__main__":
    main()
