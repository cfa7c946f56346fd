#!/usr/bin/env bash
# Records the training run of examples/demo_keras.py and prints a summary.
set -euo pipefail
cd "$(dirname "$0")/.."
out=vramscope-runs/demo-$(date +%Y%m%d-%H%M%S)

# Makes TensorFlow use its GPU allocator on the CPU too, so that the demo shows the same with and without a GPU.
export TF_CPU_ALLOCATOR_USE_BFC=1 TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 PYTHONWARNINGS=ignore KERAS_BACKEND=tensorflow
command=(build/vramscope run -o "$out" -- .venv/bin/python examples/demo_keras.py)

echo "==> ${command[*]}"
"${command[@]}"
echo
echo "==> build/vramscope summary $out"
build/vramscope summary "$out"
echo
echo "==> The trace is in $out. For more questions to ask, see build/vramscope --help"
