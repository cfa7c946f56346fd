#!/usr/bin/env bash
# sanitized_tests.sh PRESET   builds with the preset asan or tsan and runs the C++ tests.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
tools/progress.sh "configure $preset" cmake --preset "$preset"
tools/progress.sh "build $preset" cmake --build "build-$preset" -j "$(nproc)"
# Whether a bus error is ours is what some tests are about.
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=handle_sigbus=0
ctest --test-dir "build-$preset" -j "$(nproc)" --output-on-failure --no-tests=error -LE "soak|no-sanitizer"
