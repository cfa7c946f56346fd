"""The examples with a planted trouble: `summary` tells each right, and the remedy makes it go away. On the CPU plugin, whose arrays are
recorded at PJRT's interface."""
import json
import re
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOUR_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
STATE = 2 * 8 * 512 * 512 * 4           # jax_donation.py: parameters and momentum
KERNEL = 1024 * 1024 * 4                # jax_replication.py


@pytest.fixture(scope="module")
def record(vramscope, run, jax_python, plugin_environment, tmp_path_factory):
    """record("jax_leak", "fixed") -> (output, trace, findings by id)"""
    kept = {}

    def call(name, *arguments, **variables):
        key = name, arguments
        if key not in kept:
            folder = tmp_path_factory.mktemp("recording") / "out"
            done = run([vramscope, "run", "-o", folder, "--quiet", "--", jax_python, EXAMPLES / f"{name}.py", *arguments],
                       env={**plugin_environment, **variables})
            trace, = folder.glob("*.vram")
            kept[key] = done.stdout, trace, ask(vramscope, "summary", trace)["findings"]["findings"]
        return kept[key]

    return call


def ask(vramscope, verb, trace, *options):
    return json.loads(subprocess.check_output([vramscope, verb, "--json", trace, *options]))


def line_of(name):
    return next(i for i, text in enumerate((EXAMPLES / f"{name}.py").read_text().splitlines(), 1) if "# the defect" in text)


def ids(findings):
    return [finding["id"] for finding in findings]


def peak_of(vramscope, trace):
    return max(place["peak"] for place in ask(vramscope, "summary", trace)["overview"]["places"])


def test_leak_of_arrays(record, vramscope):
    out, trace, findings = record("jax_leak")
    assert findings[0]["id"] in ("leak", "held-tensors"), findings
    leaks = ask(vramscope, "leaks", trace)
    assert leaks["verdict"] == "growing" and leaks["bytes_per_step"] == pytest.approx(512 * 256 * 4), leaks
    live = float(re.search(r"([\d.]+) MiB in live arrays", out).group(1))
    assert live >= 30 * 0.5
    _, trace, findings = record("jax_leak", "fixed")
    assert not {"leak", "held-tensors"} & set(ids(findings))
    assert ask(vramscope, "leaks", trace)["verdict"] == "not growing"


def test_recompilation_in_every_step(record):
    out, _, findings = record("jax_recompilation")
    assert "12 executables" in out
    found = next(finding for finding in findings if finding["id"] == "retrace")
    assert f"train_step at jax_recompilation.py:{line_of('jax_recompilation')} was compiled 12 times" in found["title"]
    assert found["cause"] == "batch was f32[42,256], and is f32[43,256]; weights was f32[42], and is f32[43]"
    out, _, findings = record("jax_recompilation", "fixed")
    assert "1 executables" in out and "retrace" not in ids(findings)


def test_state_that_is_not_donated(record, vramscope):
    _, kept, findings = record("jax_donation")
    found = next(finding for finding in findings if finding["id"] == "state-not-donated")
    assert found["at_stake"] == STATE
    assert f"train_step at jax_donation.py:{line_of('jax_donation')} holds its state twice" in found["title"]
    assert 'donate_argnames=("params", "momentum")' in found["remedy"]
    out, fixed, findings = record("jax_donation", "fixed")
    assert "16 of 16" in out and not {"state-not-donated", "donation-failed"} & set(ids(findings))
    # The remedy saves what the finding promises.
    assert peak_of(vramscope, kept) - peak_of(vramscope, fixed) == pytest.approx(STATE, abs=64)      # numbers beside the arrays


def test_donation_that_failed(record):
    out, _, findings = record("jax_donation", "failed")
    assert "8 of 16" in out, "half of it could not be used"
    found = next(finding for finding in findings if finding["id"] == "donation-failed")
    assert found["at_stake"] == STATE // 2 and "momentum['layer_0']" in found["title"]
    assert found["cause"] == "momentum['layer_0'] is f32[512,512], but the result in its place is bf16[512,512]."


def test_replicated_parameters(record, vramscope):
    out, copied, findings = record("jax_replication", **FOUR_DEVICES)
    assert "4 devices; each holds 4.0 MiB" in out
    found = [finding for finding in findings if finding["id"] == "replicated-state"]
    assert [finding["at_stake"] for finding in found] == [KERNEL * 3 // 4] * 2 and "4 devices hold the same bytes" in found[0]["title"], findings
    assert "params['dense']['kernel']" in found[0]["cause"] + found[1]["cause"]
    assert not [finding for finding in findings if finding["id"] == "replicated-inputs"], "the batch is sharded"
    text = subprocess.check_output([vramscope, "peak", copied], text=True)
    assert text.count("Shard it over the devices") == 1 and "6.0 MiB" in text.partition("To do")[2], text
    out, spread, findings = record("jax_replication", "fixed", **FOUR_DEVICES)
    assert "each holds 1.0 MiB" in out and "replicated-state" not in ids(findings)
    before, after = peaks_of(vramscope, copied), peaks_of(vramscope, spread)
    assert len(before) == len(after) == 4
    # Parameters and optimizer state: a quarter on each device. The first one also holds the arrays before they are spread.
    for name in ("CPU_1 arrays", "CPU_2 arrays", "CPU_3 arrays"):
        assert before[name] >= 2 * KERNEL and before[name] - after[name] >= 2 * KERNEL * 3 // 4, (before, after)


def peaks_of(vramscope, trace):
    return {pool["name"]: pool["peak_bytes"] for pool in ask(vramscope, "summary", trace)["pools"]}


def test_without_a_known_allocator_temporaries_are_missing(record, vramscope):
    """Arrays that a program returns are not among them, and the summary says so."""
    _, trace, _ = record("jax_leak", "fixed")
    text = subprocess.check_output([vramscope, "summary", trace], text=True)
    assert "arrays are recorded, temporaries of programs are not" in text
    assert dict(ask(vramscope, "summary", trace)["settings"])["jax.allocator_found_by"] == "none"
    groups = {group["keys"][0]: group["bytes"] for group in ask(vramscope, "peak", trace, "--by", "category")["groups"]}
    assert "XLA temporaries" not in groups and groups["parameters"] >= 256 * 256 * 4, groups


def test_the_largest_batch_by_estimates(record):
    out, _, _ = record("jax_out_of_memory")
    limit, rows, fits, more, does_not = map(int, re.search(r"limit (\d+) MiB; (\d+) rows need (\d+) MiB, (\d+) rows (\d+) MiB", out).groups())
    assert (limit, more) == (2048, 4 * rows) and fits <= 0.7 * limit and does_not > 1.2 * limit
