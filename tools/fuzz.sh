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
# What some targets see at least, whatever the fuzzer finds: files with changes and valid checksums for the *_reseal targets, damaged
# spools; fewer where only a short look is asked for.
export seconds resealed=$((seconds >= 30 ? 2000 : 200)) spools=$((seconds >= 30 ? 500 : 50))

# replay TARGET KIND COUNT: COUNT files of this kind, the same in every run, each within 10 s and 2 GiB.
replay() {
  local target=$1 kind=$2 count=$3 made=.cache/fuzz/made-$1 program
  program=$(find build-fuzz -type f -name "$target" -perm -u+x)
  rm -rf "$made"
  python3 fuzz/make_corpus.py "--$kind" "$made" "$count" "$(cksum <<< "$target" | cut -d' ' -f1)"
  tools/progress.sh "fuzz $target, $count $kind" "$program" -runs=0 -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix=".cache/fuzz/$target/" "$made" || echo "$target" >>.cache/fuzz/failed
}
export -f replay

fuzz_one() {
  local target=$1 found=.cache/fuzz/$1 seeds=fuzz/corpus/${1%_fuzz} program
  program=$(find build-fuzz -type f -name "$target" -perm -u+x)
  [ -d "$seeds" ] || seeds=
  mkdir -p "$found"
  case $target in
    *_reseal_fuzz) replay "$target" decisions "$resealed" ;;
    spool_fuzz) replay "$target" spools "$spools" ;;
  esac
  tools/progress.sh "fuzz $target, $seconds s" "$program" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="$found/" "$found" $seeds || echo "$target" >>.cache/fuzz/failed
}
export -f fuzz_one

# A target keeps one core busy.
mkdir -p .cache/fuzz
rm -f .cache/fuzz/failed
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" bash -c 'fuzz_one "$1" || echo "$1" >>.cache/fuzz/failed' fuzz
if [ -s .cache/fuzz/failed ]; then
  echo "fuzz: failed: $(sort -u .cache/fuzz/failed | xargs); the inputs are in .cache/fuzz/*/crash-*"
  exit 1
fi
echo "fuzz: ok, $# targets"
