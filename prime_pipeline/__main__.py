"""``python -m prime_pipeline`` is ``prime``."""

from prime_pipeline.cli import main

if __name__ == "__main__":
    main()
