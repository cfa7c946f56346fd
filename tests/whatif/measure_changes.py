"""What `whatif` claims about changes to small programs, beside recordings of the changed programs: measure_changes.py VRAMSCOPE PYTHON_TF PYTHON_TORCH [FILTER].
KEEP=FOLDER keeps the recordings. Prints the rows of the table in docs/dev/measurements.md."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
# option, value, and the words that make the change in the program
COMMON = [("accumulate", "4", ["accumulate=4"]), ("precision", "bf16", ["precision=bf16"])]
TENSORFLOW = [*COMMON, ("checkpoint", "all", ["checkpoint=all"]), *(("optimizer", name, [name]) for name in ("sgd", "momentum", "lion", "adafactor"))]
TORCH = [*COMMON, *(("optimizer", option, [name]) for option, name in (("sgd", "SGD"), ("momentum", "momentum"), ("adafactor", "Adafactor")))]
TORCH_LAYERS = {"blocks": "0,1,2,3", "resnet": "1,3", "transformer": "layers.0,layers.1"}


def cases(python_tf, python_torch):
    for mode in ("eager", "graph"):
        for model, batch in (("dense", 256), ("resnet", 64), ("transformer", 64)):
            yield f"TensorFlow {mode}", model, [python_tf, HERE / "tf_models.py", model, batch, mode], "adam", TENSORFLOW
    for model, batch in (("blocks", 1024), ("resnet", 64), ("transformer", 64)):
        layers = TORCH_LAYERS[model]
        yield "PyTorch", model, [python_torch, HERE / "torch_models.py", model, batch], "AdamW", [*TORCH, ("checkpoint", layers, ["checkpoint=" + layers])]


def record(vramscope, command, folder):
    done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", *map(str, command)], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)
    if done.returncode != 0:
        shutil.rmtree(folder)
        return None
    return next(Path(folder).glob("*.vram"))


def live(vramscope, trace, *options):
    done = subprocess.run([vramscope, "whatif", trace, "--allocator", "recorded", *options, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    answer = json.loads(done.stdout)
    return answer["live"], answer["confidence"]


def main(vramscope, python_tf, python_torch, wanted=""):
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(os.environ.get("KEEP", folder))
        for framework, model, command, optimizer, changes in cases(python_tf, python_torch):
            def trace(words):
                words = words if words and "=" not in words[0] else [optimizer, *words]
                place = kept / "-".join([framework.replace(" ", "-"), model, *words]).replace("=", "-")
                return next(iter(place.glob("*.vram")), None) or record(vramscope, [*command, *words], place)
            for option, value, words in changes:
                if wanted not in f"{framework} {model} {option} {value}":
                    continue
                plain = trace([])
                before, _ = live(vramscope, plain)
                claimed, confidence = live(vramscope, plain, f"--{option}", value)
                changed = trace(words)
                if changed is None:
                    print(f"| {framework}, {model} | `--{option} {value}` | {before / 2**20:.2f} | the changed program fails |", flush=True)
                    continue
                truth, _ = live(vramscope, changed)
                off = "" if claimed is None else f"{100 * (claimed / truth - 1):+.1f} %"
                print(f"| {framework}, {model} | `--{option} {value}` | {before / 2**20:.2f} | {'–' if claimed is None else f'{claimed / 2**20:.2f}'} | "
                      f"{truth / 2**20:.2f} | {off} | {confidence} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
