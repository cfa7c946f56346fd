#!/usr/bin/env bash
# Checks $TRACE against $BUDGET, shows the result in the job's summary and in one comment on $PULL_REQUEST, and exits with the code of the check.
set -uo pipefail

marker='<!-- vramscope check -->'
report=$(mktemp)
trap 'rm -f "$report" "$report.check"' EXIT
baseline=()
[ -z "${BASELINE:-}" ] || [ ! -e "$BASELINE" ] || baseline=("$BASELINE")

vramscope check "$TRACE" --budget "$BUDGET" ${baseline:+--baseline "${baseline[0]}"} --github >"$report.check" 2>&1
code=$?
cat "$report.check"

# An indented block is shown as it is: no name in a trace can end it.
indented() { grep -v '^::' | sed 's/^/    /'; }
{
  echo "$marker"
  case $code in
    0) echo "### GPU memory: within budget" ;;
    1) echo "### GPU memory: over budget" ;;
    *) echo "### GPU memory: not checked" ;;
  esac
  echo
  indented <"$report.check"
  if [ ${#baseline[@]} -gt 0 ]; then
    printf '\nCompared with the baseline:\n\n'
    vramscope diff "${baseline[0]}" "$TRACE" --ascii 2>&1 | indented
  fi
} | head -c 60000 >"$report" # a comment may have 65,536 characters

[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$report" >>"$GITHUB_STEP_SUMMARY"

# One comment per pull request, which later runs replace.
comment() {
  local comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments id
  id=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$marker\")) | .id" | head -n 1) || return
  if [ -n "$id" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$report"
  else
    gh api --silent --method POST "$comments" --field "body=@$report"
  fi
}
if [ -n "${PULL_REQUEST:-}" ] && ! comment; then
  # The token of a pull request from a fork may not comment.
  echo "::notice::vramscope: no comment was written; the result is in the job's summary"
fi
exit $code
