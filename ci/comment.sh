#!/usr/bin/env bash
# Shows the report of the gate, an artifact of this workflow run, in one comment on the pull request: the first time
# it is made, later it is updated. Where there is no report, a comment that is there says so. A comment that cannot
# be made is a warning, since the verdict is the gate's exit code.
#
# The report is data, which the code that recorded may have written: it is shown, cut, and nobody is called by it.
set -euo pipefail

zero_width=$'\xe2\x80\x8b'
most_bytes=60000 # GitHub refuses a comment of more than 65,536 characters
export KEBAB_MARKER="<!-- kebab-eval: $KEBAB_NAME -->"
workflow_run=$GITHUB_SERVER_URL/$GH_REPO/actions/runs/$GITHUB_RUN_ID

give_up() {
  echo "::warning::$1"
  exit 0
}

if [[ ! $KEBAB_NAME =~ ^[A-Za-z0-9._-]+$ ]]; then
  echo "::error::the input name may have letters, digits, dots, - and _ only"
  exit 1
elif [[ $KEBAB_HEAD_REPOSITORY != "$GITHUB_REPOSITORY" ]]; then
  echo "::notice::a pull request of a fork has a token that may not comment; the report is in the gate's summary"
  exit 0
fi

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
body=$directory/body
report=
if [[ -n $KEBAB_REPORT ]]; then
  gh run download "$GITHUB_RUN_ID" --name "$KEBAB_NAME-report" --dir "$directory/report" ||
    give_up "could not fetch the report; the job needs permissions: actions: read"
  report=$(find "$directory/report" -type f -name report.md)
fi

# The lines that fit. What would notify people, refer to issues or command other bots gets a space without width.
shown_report() {
  local calls="s,(^|[^A-Za-z0-9_])([@#])([A-Za-z0-9]),\\1\\2$zero_width\\3,g" commands="s,^([[:space:]]*)/,\\1$zero_width/,"
  LC_ALL=C sed -E "$calls; $commands" "$report" | LC_ALL=C awk -v most="$most_bytes" '
    is_cut { next }
    { used += length($0) + 1 }
    used > most { is_cut = 1; print "\n… cut here: the whole report is an artifact of the workflow run."; next }
    { print }'
}

{
  echo "$KEBAB_MARKER"
  if [[ -f $report ]]; then
    shown_report
    printf '\n[workflow run](%s), with this report as an artifact\n' "$workflow_run"
  else
    echo "The retrieval gate did not get to a verdict on the last push; [the workflow run]($workflow_run) says why."
  fi
} >"$body"

may_not="could not comment on the pull request; the job needs permissions: pull-requests: write"
comments=repos/$GH_REPO/issues/$KEBAB_PULL_REQUEST/comments
ids=$(gh api --paginate "$comments?per_page=100" --jq '
  .[] | select(.user.type == "Bot" and (.body | startswith(env.KEBAB_MARKER))) | .id') || give_up "$may_not"
id=${ids%%$'\n'*}
if [[ -n $id ]]; then
  gh api --silent --method PATCH "repos/$GH_REPO/issues/comments/$id" -F "body=@$body" || give_up "$may_not"
elif [[ -f $report ]]; then
  gh api --silent --method POST "$comments" -F "body=@$body" || give_up "$may_not"
fi
