"""`python -m dissensus` is the command `dissensus`."""

from .cli import main

if __name__ == "__main__":
    main()
