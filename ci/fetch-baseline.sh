#!/usr/bin/env bash
# Fetches the newest database that the baseline branch published. None yet is a notice; a download that fails
# stops the job, rather than pass for "none yet", and so does a baseline that was there and has expired.
set -euo pipefail

fail() {
  echo "::error::$1"
  exit 1
}

file=$(basename "$KEBAB_EVAL_DB")
baseline=$KEBAB_DIRECTORY/baseline
rm -rf "$baseline"

# Not an artifact of a fork, whose branch may have the same name.
artifacts=$(gh api --paginate "repos/$GH_REPO/actions/artifacts?name=$KEBAB_ARTIFACT&per_page=100" --jq '
  .artifacts[] | select(.workflow_run.head_branch == env.KEBAB_BASELINE_BRANCH
    and .workflow_run.head_repository_id == .workflow_run.repository_id)
  | "\(.created_at) \(.workflow_run.id) \(.expired)"') ||
  fail "cannot list the artifacts of $GH_REPO; the job needs permissions: actions: read"

run_id='' has_expired=false
while read -r _ id expired; do
  if [[ $expired == true ]]; then
    has_expired=true
  elif [[ -n $id ]]; then
    # Nor one of an event that runs on that branch for other code, as workflow_run does.
    event=$(gh api "repos/$GH_REPO/actions/runs/$id" --jq .event)
    case $event in
      push | schedule | workflow_dispatch) run_id=$id && break ;;
    esac
  fi
done <<<"$(sort -r <<<"$artifacts")"

if [[ -z $run_id && $has_expired == false ]]; then
  echo "::notice::$KEBAB_BASELINE_BRANCH has no recorded run yet"
  exit 0
elif [[ -z $run_id && $KEBAB_PUBLISH == true ]]; then
  echo "::warning::the baseline has expired, with its history and its tags; this run begins a new one"
  exit 0
elif [[ -z $run_id ]]; then
  fail "the baseline has expired; run the workflow on $KEBAB_BASELINE_BRANCH, then this one again"
fi

gh run download "$run_id" --name "$KEBAB_ARTIFACT" --dir "$baseline"
if [[ ! -f $baseline/$file ]]; then
  fail "the artifact $KEBAB_ARTIFACT of run $run_id has no $file; publish a baseline with this input db"
fi

# On the baseline branch the next run is added to those before it, so that the database has a history.
if [[ $KEBAB_PUBLISH == true && ! -e $KEBAB_EVAL_DB ]]; then
  mkdir -p "$(dirname "$KEBAB_EVAL_DB")"
  cp "$baseline/$file" "$KEBAB_EVAL_DB"
fi
