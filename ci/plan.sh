#!/usr/bin/env bash
# Decides what this run of the action does: the id of the run, whether to publish a baseline, which tag to move,
# whether to comment.
set -euo pipefail

fail() {
  echo "::error::$1"
  exit 1
}

[[ $KEBAB_NAME =~ ^[A-Za-z0-9._-]+$ ]] || fail "the input name may have letters, digits, dots, - and _ only"
[[ $KEBAB_RUN != *$'\n'* ]] || fail "the input run must be one line"
[[ $KEBAB_MOVE_TAG =~ ^[A-Za-z0-9._-]*$ ]] || fail "the input move-tag may have letters, digits, dots, - and _ only"
if [[ $GITHUB_EVENT_NAME == pull_request_target ]]; then
  fail "pull_request_target would run the code of a fork with a token that may write; use pull_request"
fi

publish=false comment=false run=run tag=
if [[ $GITHUB_EVENT_NAME == pull_request ]]; then
  run=pr-$KEBAB_PULL_REQUEST
  if [[ $KEBAB_COMMENT == true && $KEBAB_HEAD_REPOSITORY == "$GITHUB_REPOSITORY" ]]; then
    comment=true
  elif [[ $KEBAB_COMMENT == true ]]; then
    echo "::notice::this pull request is from a fork, whose token may not comment; the report is in the summary"
  fi
elif [[ $GITHUB_REF == "refs/heads/$KEBAB_BASELINE_BRANCH" ]]; then
  publish=true tag=$KEBAB_MOVE_TAG
fi

{
  echo "run=${KEBAB_RUN:-$run-$GITHUB_RUN_ID-$GITHUB_RUN_ATTEMPT}"
  echo "publish=$publish"
  echo "tag=$tag"
  echo "comment=$comment"
  echo "directory=$RUNNER_TEMP/kebab-eval-$KEBAB_NAME"
} >>"$GITHUB_OUTPUT"
