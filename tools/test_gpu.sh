#!/usr/bin/env bash
# Runs the tests that need an NVIDIA GPU, with the Python that has the GPU build of the frameworks (PYTHON_GPU, else python3).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON_GPU:-python3}
if ! "$python" -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then
  echo "test-gpu: no NVIDIA driver on this machine (libcuda.so.1 cannot be loaded); run it on a machine with a GPU" >&2
  exit 2
fi
VRAMSCOPE_REQUIRE_ALL=1 exec "$python" -m pytest -m gpu tests python/tests "$@"
