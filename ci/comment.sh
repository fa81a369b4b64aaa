#!/usr/bin/env bash
# Shows the report in one comment on the pull request: the first time it is made, later it is updated. Where there
# is no report, a comment that is there says so. A comment that cannot be made is a warning, since the verdict is
# the gate's exit code.
set -euo pipefail

most_bytes=60000 # GitHub refuses a comment of more than 65,536 characters
export KEBAB_MARKER="<!-- kebab-eval: $KEBAB_NAME -->"
workflow_run=$GITHUB_SERVER_URL/$GH_REPO/actions/runs/$GITHUB_RUN_ID

give_up() {
  echo "::warning::could not comment on the pull request; the job needs permissions: pull-requests: write"
  exit 0
}

shortened_report() {
  LC_ALL=C awk -v most="$most_bytes" '
    { used += length($0) + 1 }
    used > most { print "\n… cut here: the whole report is an artifact of the workflow run."; exit }
    { print }' "$KEBAB_REPORT"
}

body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
  echo "$KEBAB_MARKER"
  if [[ -n $KEBAB_REPORT ]]; then
    shortened_report
    printf '\n[workflow run](%s), with this report as an artifact\n' "$workflow_run"
  else
    echo "The retrieval gate did not get to a verdict on the last push; [the workflow run]($workflow_run) says why."
  fi
} >"$body"

comments=repos/$GH_REPO/issues/$KEBAB_PULL_REQUEST/comments
ids=$(gh api --paginate "$comments?per_page=100" --jq '
  .[] | select(.user.type == "Bot" and (.body | startswith(env.KEBAB_MARKER))) | .id') || give_up
id=${ids%%$'\n'*}
if [[ -n $id ]]; then
  gh api --silent --method PATCH "repos/$GH_REPO/issues/comments/$id" -F "body=@$body" || give_up
elif [[ -n $KEBAB_REPORT ]]; then
  gh api --silent --method POST "$comments" -F "body=@$body" || give_up
fi
