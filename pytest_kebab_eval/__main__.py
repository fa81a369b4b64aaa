"""`python -m pytest_kebab_eval` is `kebab-eval`."""

from pytest_kebab_eval.cli import main

if __name__ == "__main__":
    main(prog_name="kebab-eval")
