#!/usr/bin/env bash
# Decides what this run of the action does: the id of the run, whether to publish a baseline, which tag to move.
set -euo pipefail

fail() {
  echo "::error::$1"
  exit 1
}

[[ $KEBAB_NAME =~ ^[A-Za-z0-9._-]+$ ]] || fail "the input name may have letters, digits, dots, - and _ only"
[[ $KEBAB_RUN != *$'\n'* ]] || fail "the input run must be one line"
[[ $KEBAB_MOVE_TAG =~ ^[A-Za-z0-9._-]*$ ]] || fail "the input move-tag may have letters, digits, dots, - and _ only"
[[ $KEBAB_KEEP_RUNS =~ ^[1-9][0-9]*$ ]] || fail "the input keep-runs must be a number, 1 or more"
if [[ $GITHUB_EVENT_NAME == pull_request_target ]]; then
  fail "pull_request_target would run the code of a fork with a token that may write; use pull_request"
fi

publish=false run=run tag=
if [[ $GITHUB_EVENT_NAME == pull_request ]]; then
  run=pr-$KEBAB_PULL_REQUEST
elif [[ $GITHUB_REF == "refs/heads/$KEBAB_BASELINE_BRANCH" ]]; then
  # Other events run on that branch, too, for whatever code they are told to check out: workflow_run for a fork's.
  case $GITHUB_EVENT_NAME in
    push | schedule | workflow_dispatch) publish=true tag=$KEBAB_MOVE_TAG ;;
    *) echo "::notice::no baseline is published for the event $GITHUB_EVENT_NAME; the run is judged" ;;
  esac
fi

{
  echo "run=${KEBAB_RUN:-$run-$GITHUB_RUN_ID-$GITHUB_RUN_ATTEMPT}"
  echo "publish=$publish"
  echo "tag=$tag"
  echo "directory=$RUNNER_TEMP/kebab-eval-$KEBAB_NAME"
} >>"$GITHUB_OUTPUT"
