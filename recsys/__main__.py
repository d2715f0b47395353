"""`python -m recsys` is the command `recsys`."""

from recsys.cli import run

if __name__ == "__main__":
    run()
