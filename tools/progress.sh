#!/usr/bin/env bash
# progress.sh LABEL COMMAND...
# Runs COMMAND with its output in .cache/log/, says every ten seconds how far it is, and shows the end of the output if it fails.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
label=$1
shift
log=$root/.cache/log/$(printf '%s' "$label" | tr -cs 'A-Za-z0-9.' '-').log
mkdir -p "$(dirname "$log")"

echo "==> $label"
SECONDS=0
"$@" >"$log" 2>&1 </dev/null &
command_pid=$!
trap 'kill $command_pid 2>/dev/null' INT TERM

said=0
while kill -0 $command_pid 2>/dev/null; do
  sleep 0.2
  if ((SECONDS >= said + 10)); then
    said=$SECONDS
    printf '    %4d s  %s\n' "$SECONDS" "$(tail -c 4000 "$log" | tr "\r" "\n" | grep -a "[^ ]" | tail -n 1 | cut -c1-100)"
  fi
done
wait $command_pid
code=$?
if ((code != 0)); then
  tail -n 60 "$log"
  echo "==> $label: failed with exit code $code after $SECONDS s; all of its output is in ${log#"$root"/}"
elif ((SECONDS >= 10)); then
  echo "    $SECONDS s"
fi
exit $code
