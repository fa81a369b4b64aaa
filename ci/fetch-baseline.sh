#!/usr/bin/env bash
# Fetches the newest database that the baseline branch published. None yet is a notice; a download that fails
# stops the job, rather than pass for "none yet".
set -euo pipefail

file=$(basename "$KEBAB_EVAL_DB")
baseline=$KEBAB_DIRECTORY/baseline
rm -rf "$baseline"

# Not an artifact of a fork, whose branch may have the same name.
run_id=$(gh api "repos/$GH_REPO/actions/artifacts?name=$KEBAB_ARTIFACT&per_page=100" --jq '
  [.artifacts[] | select((.expired | not)
    and .workflow_run.head_branch == env.KEBAB_BASELINE_BRANCH
    and .workflow_run.head_repository_id == .workflow_run.repository_id)]
  | sort_by(.created_at) | last | .workflow_run.id // empty')
if [[ -z $run_id ]]; then
  echo "::notice::$KEBAB_BASELINE_BRANCH has no recorded run yet"
  exit 0
fi

gh run download "$run_id" --name "$KEBAB_ARTIFACT" --dir "$baseline"
if [[ ! -f $baseline/$file ]]; then
  echo "::error::the artifact $KEBAB_ARTIFACT of run $run_id has no $file; publish a baseline with this input db"
  exit 1
fi

# On the baseline branch the next run is added to those before it, so that the database has a history.
if [[ $KEBAB_PUBLISH == true && ! -e $KEBAB_EVAL_DB ]]; then
  mkdir -p "$(dirname "$KEBAB_EVAL_DB")"
  cp "$baseline/$file" "$KEBAB_EVAL_DB"
fi
