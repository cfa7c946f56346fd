"""On a real GPU: forecasts from recordings at two small batches against the program at a larger one, on pools of limited size, and after a request failed."""
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "whatif"
PYTHON = {"torch": os.environ.get("PYTHON_GPU_TORCH", os.environ.get("PYTHON_GPU", sys.executable)), "tensorflow": os.environ.get("PYTHON_GPU", sys.executable)}
LIMITS_MIB = [160, 224, 320, 448, 640]
AT_ONCE = 8  # processes: most of the time of each one is its start
# Framework, model, mode or optimizer, and the two batches of the recordings.
FORECASTS = [("torch", "resnet", "AdamW", 128, 256), ("torch", "transformer", "AdamW", 64, 128), ("torch", "lstm", "AdamW", 128, 256),
             ("torch", "unet", "AdamW", 64, 128), ("torch", "vae", "AdamW", 512, 1024), ("torch", "transformer", "compiled", 64, 128),
             ("tensorflow", "resnet", "graph", 128, 256), ("tensorflow", "transformer", "graph", 64, 128), ("tensorflow", "unet", "graph", 64, 128),
             ("tensorflow", "resnet", "eager", 128, 256), ("tensorflow", "transformer", "eager", 64, 128), ("tensorflow", "vae", "eager", 512, 1024),
             ("tensorflow", "transformer", "xla", 64, 128)]
LIMITED = [case for case in FORECASTS if case[:3] in {("torch", "resnet", "AdamW"), ("torch", "transformer", "AdamW"), ("tensorflow", "transformer", "eager"),
                                                      ("tensorflow", "unet", "graph")}]


def command(framework, model, how, batch, limit=None):
    program = {"torch": "torch_models.py", "tensorflow": "tf_models.py"}[framework]
    compiled = ["compiled=1"] if how == "compiled" else []
    more = ["AdamW" if compiled else how, "4", "cuda"] if framework == "torch" else [how, "adam", "4"]
    return [PYTHON[framework], PROGRAMS / program, model, str(batch), *more, *([str(limit)] if limit else []), *compiled]


def environment(**more):
    return {**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2", **more}


def installed(framework):
    return subprocess.run([PYTHON[framework], "-c", f"import {framework}"], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def record(vramscope, tmp_path_factory):
    """record(case) -> trace. All recordings are made side by side, before the first one is needed."""
    there = {framework: installed(framework) for framework in PYTHON}
    cases = [(*case[:3], batch) for case in FORECASTS if there[case[0]] for batch in (case[3], case[4], 4 * case[4])]

    root = tmp_path_factory.mktemp("fit")  # not in the threads, which would make one base folder each

    def make(case):
        folder = root / "-".join(map(str, case))
        done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", *command(*case)], env=environment(), capture_output=True, text=True, timeout=300)
        return next(folder.glob("*.vram")) if done.returncode == 0 else done.stdout + done.stderr

    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = dict(zip(cases, pool.map(make, cases)))

    def call(*case):
        if not there[case[0]]:
            pytest.skip(f"{case[0]} is not installed for this Python")
        if case[2] == "compiled" and isinstance(made[case], str) and "triton" in made[case].lower():
            pytest.skip("torch.compile does not work on this machine")
        assert not isinstance(made[case], str), made[case]
        return made[case]

    return call


def ask(vramscope, *arguments):
    return json.loads(subprocess.check_output([vramscope, *map(str, arguments), "--json"], text=True))


ERRORS = {}  # of all forecasts: live, smallest


@pytest.mark.parametrize("framework, model, how, small, large", FORECASTS, ids=lambda value: str(value))
def test_forecast_of_the_live_peak(record, vramscope, framework, model, how, small, large):
    runs = [record(framework, model, how, batch) for batch in (small, large)]
    batch = 4 * large
    answer = ask(vramscope, "fit", *runs, "--on", "1TiB", "--batch", batch)
    row = next(row for row in answer["rows"] if row["batch"] == batch)
    truth = ask(vramscope, "whatif", record(framework, model, how, batch), "--allocator", "recorded")
    error, smallest = row["live"] / truth["live"] - 1, row["smallest"] / truth["rows"][0]["smallest"] - 1
    ERRORS[framework, model, how] = abs(error), abs(smallest)
    print(f"forecast {framework} {model} {how}: {row['live']} against {truth['live']}, {100 * error:+.2f} %, stated {answer['error']};"
          f" smallest {row['smallest']} against {truth['rows'][0]['smallest']}, {100 * smallest:+.2f} %")
    assert abs(truth["live"] / row["live"] - 1) <= answer["error"]
    assert abs(error) <= 0.02
    assert abs(smallest) <= 0.01


def test_the_median_of_all_forecasts():
    """After those above."""
    if len(ERRORS) < 5:
        pytest.skip("too few forecasts were made")
    live = [one[0] for one in ERRORS.values()]
    print(f"live: median {100 * statistics.median(live):.2f} %, worst {100 * max(live):.2f} %")
    assert statistics.median(live) <= 0.005


def completes(command_line, **more):
    done = subprocess.run(command_line, env=environment(**more), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 or "out of memory" in done.stderr.lower() or "OOM" in done.stderr or "ResourceExhausted" in done.stderr, done.stderr[-2000:]
    return done.returncode == 0


@pytest.mark.parametrize("framework, model, how, small, large", LIMITED, ids=lambda value: str(value))
def test_the_named_batch_runs_and_a_larger_one_does_not(record, vramscope, framework, model, how, small, large):
    runs = [record(framework, model, how, batch) for batch in (small, large)]
    named = {limit: ask(vramscope, "fit", *runs, "--limit", f"{limit}MiB")["cards"][0]["largest"] for limit in LIMITS_MIB}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        fits = {limit: pool.submit(completes, command(framework, model, how, batch, limit)) for limit, batch in named.items()}
        larger = {limit: pool.submit(completes, command(framework, model, how, batch + batch // 20 + 1, limit)) for limit, batch in named.items()}
        fits, larger = ({limit: one.result() for limit, one in many.items()} for many in (fits, larger))
    print(f"fit {framework} {model} {how}: named {named}, run {fits}, 5 % more {larger}")
    assert all(fits.values()), (named, fits)
    assert sum(larger.values()) <= 1, (named, larger)


def failed_request(vramscope, folder, command_line, **more):
    """What `oom` says about a program that is meant to fail."""
    done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", *command_line], env=environment(**more), capture_output=True, text=True, timeout=300)
    assert done.returncode != 0, "meant to fail"
    answer = ask(vramscope, "oom", next(folder.glob("*.vram")))
    print(answer["sentence"], answer["advice"], answer["events"][-1]["replay"])
    return answer["events"][-1]


@pytest.mark.parametrize("framework, how", [("torch", "AdamW"), ("tensorflow", "eager")])
def test_oom_names_a_batch_beyond_which_it_fails(vramscope, tmp_path, framework, how):
    if not installed(framework):
        pytest.skip(f"{framework} is not installed for this Python")
    batch, limit = 2048, 320
    replay = failed_request(vramscope, tmp_path, command(framework, "transformer", how, batch, limit))["replay"]
    largest = int(batch * replay["largest_share"])
    assert 0 < largest < batch
    assert not completes(command(framework, "transformer", how, largest + largest // 20 + 1, limit)), largest
    if replay["whole_step"]:
        assert completes(command(framework, "transformer", how, largest, limit)), largest


def test_oom_names_the_setting_that_avoids_it(vramscope, tmp_path):
    program = [PYTHON["torch"], HERE / "fragmented.py"]
    event = failed_request(vramscope, tmp_path, program, PYTORCH_CUDA_ALLOC_CONF="")
    assert event["verdict"] == "fragmentation", event
    settings = {one["name"]: one["setting"] for one in event["replay"]["avoided_by"]}
    assert "expandable" in settings, settings
    name, value = settings["expandable"].split("=", 1)
    assert completes(program, **{name: value})
