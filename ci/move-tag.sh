#!/usr/bin/env bash
# Gives the run that was recorded, and held its gates, the name that gates of later runs are held against.
set -euo pipefail

python -c 'from pytest_kebab_eval.cli import main; main()' \
  tag "${KEBAB_RUN_B:-$KEBAB_RUN}" "$KEBAB_MOVE_TAG" --db "$KEBAB_EVAL_DB"
