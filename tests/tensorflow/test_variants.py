"""`vramscope.tf.compare`: each way of training is measured by itself, and trains what the others train."""
import json
import os

from tensorflow_support import HERE

WAYS = ["eager", "function", "XLA", "mixed precision", "fit", "custom loop", "gradient accumulation"]


def test_variants_are_measured_in_fresh_processes(run, root, build, newest_tensorflow, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(root / "python"), "VRAMSCOPE_BUILD": str(build), "CUDA_VISIBLE_DEVICES": "",
                   "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    said = json.loads(run([newest_tensorflow, HERE / "variant_programs.py"], env=environment, cwd=tmp_path).stdout.splitlines()[-1])

    assert list(said["apart"]) == WAYS
    assert all(apart < (0.2 if name == "mixed precision" else 1e-3) for name, apart in said["apart"].items()), said["apart"]
    measured = {name: dict(zip(("peak", "steady", "seconds", "samples_per_s", "failed"), one)) for name, one in said["measured"].items()}
    assert all(not one["failed"] and one["seconds"] > 0 and one["samples_per_s"] > 0 for one in measured.values()), measured
    peaks = {name: (one["peak"], one["steady"]) for name, one in measured.items()}
    assert list(peaks) == WAYS and all(peak >= steady > 0 for peak, steady in peaks.values())

    theirs = said["theirs"]
    assert said["peaks"]["by hand"] == {"peak": max(theirs["peaks"]), "steady": max(theirs["peaks"][4:])}
    assert theirs["process"] != said["here"] and max(theirs["peaks"]) > 1.5 * max(theirs["peaks"][4:])
    assert theirs["seconds"] / 2 < said["seconds"]["by hand"] < theirs["seconds"] * 2
    # The program's stopwatch before and after each step_done().
    least, most = theirs["samples_per_s"]
    assert least <= said["samples_per_s"]["by hand"] <= most and said["samples_per_s"]["fails"] is None
    assert "samples per s" in said["table"].splitlines()[0]
    assert said["peaks"]["fails"] == {"peak": None, "steady": None}
    assert "fails failed: InvalidArgumentError" in said["table"] and "time per step" in said["table"].splitlines()[0]
    assert "<svg" in (tmp_path / "variants.svg").read_text(encoding="utf-8")
    assert said["errors"][0].startswith("TypeError: ") and "top level of a module" in said["errors"][1] and said["errors"][2].startswith("ValueError: steps=2")
