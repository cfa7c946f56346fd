"""On a real GPU: forecasts from recordings at two small batches against the program at a larger one, and on pools of limited size."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
PROGRAMS = Path(__file__).resolve().parent.parent / "whatif"
PYTHON = {"torch": os.environ.get("PYTHON_GPU_TORCH", os.environ.get("PYTHON_GPU", sys.executable)), "tensorflow": os.environ.get("PYTHON_GPU", sys.executable)}
LIMITS_MIB = [160, 224, 320, 448, 640]
# Model, mode or optimizer, and the two batches of the recordings.
FORECASTS = [("torch", "resnet", "AdamW", 128, 256), ("torch", "transformer", "AdamW", 64, 128), ("torch", "lstm", "AdamW", 128, 256),
             ("tensorflow", "resnet", "graph", 128, 256), ("tensorflow", "transformer", "graph", 64, 128), ("tensorflow", "unet", "graph", 64, 128),
             ("tensorflow", "resnet", "eager", 128, 256), ("tensorflow", "transformer", "eager", 64, 128), ("tensorflow", "vae", "eager", 512, 1024)]
LIMITED = [case for case in FORECASTS if case[:3] in {("torch", "resnet", "AdamW"), ("torch", "transformer", "AdamW"), ("tensorflow", "transformer", "eager"),
                                                      ("tensorflow", "unet", "graph")}]


def command(framework, model, how, batch, limit=None):
    program = {"torch": "torch_models.py", "tensorflow": "tf_models.py"}[framework]
    more = [how, "4", "cuda"] if framework == "torch" else [how, "adam", "4"]
    return [PYTHON[framework], PROGRAMS / program, model, str(batch), *more, *([str(limit)] if limit else [])]


def environment():
    return {**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}


@pytest.fixture(scope="module")
def record(vramscope, tmp_path_factory):
    made = {}

    def call(*case):
        if case[0] == "tensorflow" and subprocess.run([PYTHON[case[0]], "-c", "import tensorflow"], capture_output=True).returncode:
            pytest.skip("TensorFlow is not installed for this Python")
        if case not in made:
            folder = tmp_path_factory.mktemp("fit")
            done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", *command(*case)], env=environment(), capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stdout + done.stderr
            made[case] = next(folder.glob("*.vram"))
        return made[case]

    return call


def ask(vramscope, *arguments):
    return json.loads(subprocess.check_output([vramscope, *map(str, arguments), "--json"], text=True))


@pytest.mark.parametrize("framework, model, how, small, large", FORECASTS, ids=lambda value: str(value))
def test_forecast_of_the_live_peak(record, vramscope, framework, model, how, small, large):
    runs = [record(framework, model, how, batch) for batch in (small, large)]
    batch = 4 * large
    answer = ask(vramscope, "fit", *runs, "--on", "1TiB", "--batch", batch)
    row = next(row for row in answer["rows"] if row["batch"] == batch)
    truth = ask(vramscope, "whatif", record(framework, model, how, batch), "--allocator", "recorded")
    error = row["live"] / truth["live"] - 1
    print(f"forecast {framework} {model} {how}: {row['live']} against {truth['live']}, {100 * error:+.2f} %, stated {answer['error']};"
          f" smallest {row['smallest']} against {truth['rows'][0]['smallest']}")
    assert abs(error) <= 0.02
    assert abs(truth["live"] / row["live"] - 1) <= answer["error"]


def completes(framework, model, how, batch, limit):
    done = subprocess.run(command(framework, model, how, batch, limit), env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 or "out of memory" in done.stderr.lower() or "OOM" in done.stderr or "ResourceExhausted" in done.stderr, done.stderr[-2000:]
    return done.returncode == 0


@pytest.mark.parametrize("framework, model, how, small, large", LIMITED, ids=lambda value: str(value))
def test_the_named_batch_runs_and_a_larger_one_does_not(record, vramscope, framework, model, how, small, large):
    runs = [record(framework, model, how, batch) for batch in (small, large)]
    named = {limit: ask(vramscope, "fit", *runs, "--limit", f"{limit}MiB")["cards"][0]["largest"] for limit in LIMITS_MIB}
    with ThreadPoolExecutor(5) as pool:
        fits = {limit: pool.submit(completes, framework, model, how, batch, limit) for limit, batch in named.items()}
        larger = {limit: pool.submit(completes, framework, model, how, batch + batch // 20 + 1, limit) for limit, batch in named.items()}
        fits, larger = ({limit: one.result() for limit, one in many.items()} for many in (fits, larger))
    print(f"fit {framework} {model} {how}: named {named}, run {fits}, 5 % more {larger}")
    assert all(fits.values()), (named, fits)
    assert sum(larger.values()) <= 1, (named, larger)
