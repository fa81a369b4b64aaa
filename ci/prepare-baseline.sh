#!/usr/bin/env bash
# Makes the database what pull requests will be held against: the run that held its gates gets the tag, if one is
# to be moved, old runs go, and the file is put where it is published from.
set -euo pipefail

if [[ -n $KEBAB_MOVE_TAG ]]; then
  python -m pytest_kebab_eval tag "${KEBAB_RUN_B:-$KEBAB_RUN}" "$KEBAB_MOVE_TAG" --db "$KEBAB_EVAL_DB"
fi
python -m pytest_kebab_eval prune --keep "$KEBAB_KEEP_RUNS" --db "$KEBAB_EVAL_DB"

published=$KEBAB_DIRECTORY/published
rm -rf "$published"
mkdir -p "$published"
cp "$KEBAB_EVAL_DB" "$published/"
echo "database=$published/$(basename "$KEBAB_EVAL_DB")" >>"$GITHUB_OUTPUT"
