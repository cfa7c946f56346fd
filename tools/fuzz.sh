#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]   runs each fuzz target (or those named) for SECONDS, from fuzz/corpus/TARGET.
# New inputs go to .cache/fuzz/TARGET, a crash is left there as crash-*.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
tools/progress.sh "configure fuzz" cmake --preset fuzz
tools/progress.sh "build fuzz" cmake --build build-fuzz -j "$(nproc)" --target fuzz_targets

if [ $# = 0 ]; then
  set -- $(find build-fuzz -type f -name '*_fuzz' -perm -u+x -printf '%f\n' | sort)
fi
[ $# -gt 0 ] || { echo "fuzz: no targets (a target is an executable called *_fuzz)" >&2; exit 1; }
failed=()
for target; do
  found=.cache/fuzz/$target
  mkdir -p "$found"
  seeds=fuzz/corpus/${target%_fuzz}
  program=$(find build-fuzz -type f -name "$target" -perm -u+x)
  tools/progress.sh "fuzz $target, $seconds s" "$program" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="$found/" "$found" $([ -d "$seeds" ] && echo "$seeds") || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzz: failed: ${failed[*]}; the inputs are in .cache/fuzz/*/crash-*"
  exit 1
fi
echo "fuzz: ok, $# targets"
