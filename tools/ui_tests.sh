#!/usr/bin/env bash
# The tests of the user interface: types, units, and a real browser where one is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$(tools/setup.sh node):$PATH"
npm --prefix ui run --silent check
npm --prefix ui run --silent test
if [ -x "${CHROMIUM:-/usr/bin/chromium}" ]; then
  npm --prefix ui run --silent e2e
else
  echo "ui: no Chromium here, the browser tests are left out (install chromium, or set CHROMIUM)"
fi
