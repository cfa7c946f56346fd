#!/usr/bin/env bash
# Records the training of examples/demo_keras.py and sums it up.
set -euo pipefail
cd "$(dirname "$0")/.."
out=vramscope-runs/demo-$(date +%Y%m%d-%H%M%S)

# TensorFlow's GPU allocator serves the CPU too if it is asked to: the demo shows the same thing with and without a GPU.
export TF_CPU_ALLOCATOR_USE_BFC=1 TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 PYTHONWARNINGS=ignore KERAS_BACKEND=tensorflow
command=(build/vramscope run -o "$out" -- .venv/bin/python examples/demo_keras.py)

echo "==> ${command[*]}"
"${command[@]}"
echo
echo "==> build/vramscope summary $out"
build/vramscope summary "$out"
echo
echo "==> The trace is in $out. Ask it more: build/vramscope --help"
