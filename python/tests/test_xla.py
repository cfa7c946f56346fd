"""`run --xla` and `vramscope xla`: the block that an executable takes for its temporaries, opened up, compared with XLA's own words."""
import json
import re
import subprocess

TRAINING = """
import keras, numpy as np, tensorflow as tf

model = keras.Sequential([
    keras.Input((64,)),
    keras.layers.Dense(256, activation="gelu", name="wide"),        # line 6
    keras.layers.Dense(10, name="narrow"),                          # line 7
])
model.compile("adam", "mse", jit_compile=True)
model.fit(np.zeros((256, 64), "float32"), np.zeros((256, 10), "float32"), batch_size=64, verbose=0)
"""


def said_by_xla(text):
    """(instruction of the peak, {value: bytes}) as XLA itself sums its live ranges up."""
    at, listed = re.search(r"Live ranges at (\d+) \(peak\):\n((?:    \S+: \d+ bytes.*\n)+)", text).groups()
    return int(at), {name: int(size) for name, size in re.findall(r"    (\S+?)(?:\{\})?: (\d+) bytes", listed)}


def test_a_temporary_block_is_opened_up(record_python, python, vramscope):
    folder, _ = record_python(python, TRAINING, options=["--xla"])
    files = [file for plans in folder.glob("xla-*") for file in plans.glob("module_*")]
    dump, = [file for file in files if file.name.endswith("-buffer-assignment.txt")]
    assert {file.name for file in files} <= {dump.name, dump.name.replace("-buffer-assignment", "")}    # the plan and the module's text
    answer = json.loads(subprocess.check_output([vramscope, "xla", "--json", folder]))
    block, = answer["blocks"]
    assert block["bytes"] == int(re.search(r"size (\d+), preallocated-temp", dump.read_text()).group(1))
    assert sum(part["bytes"] for part in block["parts"]) + block["unused"] == block["bytes"]
    assert block["unused"] < 0.1 * block["bytes"]
    assert block["recorded"] == 4                                   # one block in each of the four batches
    at, theirs = said_by_xla(dump.read_text())
    assert at == block["fullest"]
    assert all(theirs[part["instruction"]] == part["bytes"] for part in block["parts"])
    known = {(part["layer"], part["line"]) for part in block["parts"] if part["bytes"] >= 1 << 15}
    assert known == {("wide", "script.py:6"), ("narrow", "script.py:7")}
    assert "not in use then" in subprocess.check_output([vramscope, "xla", folder], text=True)


def test_without_plans_it_says_how_to_get_them(record_python, python, vramscope):
    folder, _ = record_python(python, "import tensorflow as tf\ntf.random.normal([1000])\n")
    done = subprocess.run([vramscope, "xla", folder], capture_output=True, text=True)
    assert done.returncode == 2 and "vramscope run --xla" in done.stderr
