#!/usr/bin/env bash
# Judges the recorded run against the baseline; its exit code is pytest's. The plugin itself adds report.md to the
# summary of the step. The project's addopts are for its tests: a threshold of coverage would fail every gate.
set -euo pipefail
unset PYTEST_ADDOPTS

reports=$KEBAB_DIRECTORY/reports
rm -rf "$reports"
mkdir -p "$reports"
echo "reports=$reports" >>"$GITHUB_OUTPUT"

run_a=${KEBAB_RUN_A:-latest@$KEBAB_BASELINE_BRANCH}
db_a=$KEBAB_DIRECTORY/baseline/$(basename "$KEBAB_EVAL_DB")
if [[ $KEBAB_PUBLISH == true && -z $KEBAB_RUN_A && -f $db_a ]]; then
  # On the baseline branch that is the run before, and meant to be: a tag, in the copy that was fetched, says so.
  python -m pytest_kebab_eval tag "$run_a" the-run-before --db "$db_a"
  run_a=tag:the-run-before
fi

for file in pytest.ini .pytest.ini pytest.toml .pytest.toml pyproject.toml tox.ini setup.cfg; do
  if [[ -f $file ]] && grep -q -e '--kebab-' "$file"; then
    echo "::warning::$file has options --kebab-…; in addopts the gate leaves them out, so give them as kebab_…"
  fi
done

arguments=(
  -o addopts=
  "$KEBAB_EVAL_GOLDEN" "--kebab-golden=$KEBAB_EVAL_GOLDEN"
  "--kebab-run-a=$run_a" "--kebab-db-a=$db_a"
  "--kebab-run-b=${KEBAB_RUN_B:-$KEBAB_RUN}" "--kebab-db-b=$KEBAB_EVAL_DB"
  "--kebab-if-no-baseline=$KEBAB_IF_NO_BASELINE" "--kebab-runs-dir=$reports" "--junitxml=$reports/junit.xml"
)
while IFS= read -r gate; do
  [[ -z ${gate// /} ]] || arguments+=("--kebab-gate=$gate")
done <<<"$KEBAB_GATES"
while IFS= read -r argument; do
  [[ -z ${argument// /} ]] || arguments+=("$argument")
done <<<"$KEBAB_PYTEST_ARGS"

code=0
python -m pytest "${arguments[@]}" || code=$?
echo "report=$(find "$reports" -name report.md)" >>"$GITHUB_OUTPUT"
exit "$code"
