#!/usr/bin/env bash
# Runs the record command, which finds the database in KEBAB_EVAL_DB and the id for its run in KEBAB_RUN.
set -euo pipefail

mkdir -p "$(dirname "$KEBAB_EVAL_DB")"
bash -euo pipefail -c "$KEBAB_RECORD"
if [[ ! -f $KEBAB_EVAL_DB ]]; then
  echo "::error::the record command wrote no $KEBAB_EVAL_DB; have it record there, or change the input db"
  exit 1
fi
