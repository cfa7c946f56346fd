"""What verbs read and write: inputs that are damaged, foreign, hostile or out of range are refused with one line and exit code 2."""
import base64
import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))


def tracegen(case, file, *settings):
    subprocess.run([BUILD / "tracegen", case, file, *settings], check=True, capture_output=True)


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    for case in ("clean", "leak", "empty", "one", "hostile"):
        tracegen(case, folder / f"{case}.vram")
    return folder


@pytest.fixture
def folder(generated, tmp_path):
    """A place of its own with links to the generated traces: tests write beside them."""
    for trace in generated.glob("*.vram"):
        (tmp_path / trace.name).write_bytes(trace.read_bytes())
    return tmp_path


def run(folder, *words, timeout=120):
    return subprocess.run([BUILD / "vramscope", *words], cwd=folder, capture_output=True, text=True, timeout=timeout)


def refused(done, *parts):
    """One line, exit code 2, nothing that could be taken for an answer."""
    assert done.returncode == 2, done
    assert done.stdout == "" and done.stderr.count("\n") == 1, done
    for part in parts:
        assert part in done.stderr, done
    return True


# --- a file that is read is never written ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("output", ["clean.vram", "./clean.vram", "symlink.html", "hardlink.html", "run/inside.vram"])
def test_an_input_is_never_overwritten(folder, output):
    (folder / "run").mkdir()
    (folder / "run" / "inside.vram").write_bytes((folder / "clean.vram").read_bytes())
    (folder / "symlink.html").symlink_to("clean.vram")
    os.link(folder / "clean.vram", folder / "hardlink.html")
    (folder / "vram.toml").write_text('peak = "8GiB"\n')
    before = (folder / "clean.vram").read_bytes()
    trace = "run" if output.startswith("run/") else "clean.vram"
    refused(run(folder, "report", trace, "-o", output), output)
    refused(run(folder, "check", trace, "--budget", "vram.toml", "--junit", output), output)
    assert (folder / output).read_bytes() == before


@pytest.mark.parametrize("output", ["vram.toml", "leak.vram"])
def test_check_keeps_its_budget_and_its_baseline(folder, output):
    (folder / "vram.toml").write_text('[baseline]\npeak = "800%"\n')
    words = ["check", "clean.vram", "--budget", "vram.toml", "--baseline", "leak.vram", "--junit"]
    before = (folder / output).read_bytes()
    refused(run(folder, *words, output), output)
    assert (folder / output).read_bytes() == before
    assert run(folder, *words, "result.xml").returncode == 0
    assert "<testsuite" in (folder / "result.xml").read_text()


# --- check: what cannot be checked is not kept ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("trace, budget, more, part", [
    ("clean", '[layer]\nnolayer = "1MiB"', [], "nolayer"),
    ("clean", '[layer]\ndense = "1MiB"', [], "dense_0"),
    ("one", '[category]\nactivations = "1MiB"', [], "no steady steps"),
    ("empty", 'peak = "1MiB"', [], "nothing to check"),
    ("empty", "ooms = 0", [], "nothing to check"),
    ("clean", 'peak = "1GiB"', ["--where", "layer:zzz"], "layer:zzz"),
    ("clean", 'ooms = 0\npeak = "1e400GiB"', [], "line 2: peak"),
    ("clean", "peak = 99999999999999999999999", [], "peak"),
    ("clean", 'peak = "NaN"', [], "peak"),
    ("clean", 'end = "-5MiB"', [], "end"),
    ("clean", 'growth_per_step = "inf"', [], "growth_per_step"),
    ("clean", 'ooms = "nan"', [], "ooms"),
    ("clean", 'fragmentation = "-1%"', [], "fragmentation"),
    ("clean", '[layer]\ndense_1 = "much"', [], "dense_1"),
    ("clean", '[baseline]\npeak = "nan%"', ["--baseline", "clean.vram"], "peak"),
    ("clean", 'peak = "1GiB"\npeak = "2GiB"', [], "line 1"),
])
def test_check_refuses_what_it_cannot_check(folder, trace, budget, more, part):
    (folder / "limits.toml").write_text(budget + "\n")
    refused(run(folder, "check", f"{trace}.vram", "--budget", "limits.toml", *more), "limits.toml", part)


def test_a_budget_is_no_folder(folder):
    refused(run(folder, "check", "clean.vram", "--budget", str(folder)), "is a folder, not a budget file")


def test_units_mean_what_they_say(folder):
    peak = json.loads(run(folder, "summary", "clean.vram", "--json").stdout)["overview"]["places"][0]["peak"]
    for unit, kept in (("MB", peak / 1e6), ("MiB", peak / 2**20)):
        (folder / "limits.toml").write_text(f'peak = "{kept + 0.01:.2f}{unit}"\n')
        assert run(folder, "check", "clean.vram", "--budget", "limits.toml").returncode == 0
        (folder / "limits.toml").write_text(f'peak = "{kept - 0.01:.2f}{unit}"\n')
        assert run(folder, "check", "clean.vram", "--budget", "limits.toml").returncode == 1


# --- damaged and foreign files ------------------------------------------------------------------------------------------------------------

@pytest.fixture
def bad(folder):
    whole = (folder / "leak.vram").read_bytes()
    (folder / "cut.vram").write_bytes(whole[:-1000])
    (folder / "random.vram").write_bytes(os.urandom(4096).replace(b"\n", b"x"))
    (folder / "nothing.vram").write_bytes(b"")
    return folder


def test_report_says_what_it_cannot_read(bad):
    done = run(bad, "report", "random.vram", "nothing.vram", "-o", "none.html")
    assert done.returncode == 2 and done.stderr.count("\n") == 2 and "random.vram" in done.stderr and "nothing.vram" in done.stderr, done
    assert not (bad / "none.html").exists()
    for traces in (["cut.vram"], ["clean.vram", "random.vram"]):
        done = run(bad, "report", *traces, "-o", "some.html")
        assert done.returncode == 2 and traces[-1] in done.stderr, done
        page = (bad / "some.html").read_text()
        payload = re.search(r'<script id="payload" type="text/plain">([^<]*)<', page).group(1)
        assert re.search(rb"unfinished block|not a vramscope trace", gzip.decompress(base64.b64decode(payload)))
        (bad / "some.html").unlink()
    assert run(bad, "report", "clean.vram", "-o", "whole.html").returncode == 0


@pytest.mark.parametrize("file", ["/etc/passwd", "/dev/null", "nothing.vram", "random.vram"])
def test_serve_refuses_what_is_no_trace(bad, file):
    refused(run(bad, "serve", file, timeout=30), file)


@pytest.mark.parametrize("what", ["cut.vram", "."])
def test_serve_shows_damaged_traces_and_mixed_folders(bad, what):
    server = subprocess.Popen([BUILD / "vramscope", "serve", what], cwd=bad, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline().startswith("http://")
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_one_bad_file_does_not_hide_the_others(bad):
    runs = bad / "run"
    runs.mkdir()
    for name, source in (("a", "clean"), ("b", "nothing"), ("c", "random"), ("d", "cut"), ("e", "leak")):
        (runs / f"{name}.vram").write_bytes((bad / f"{source}.vram").read_bytes())
    for verb in ("summary", "ledger", "peak", "steps", "layers", "leaks", "fragmentation", "oom"):
        text = run(bad, verb, "run")
        assert text.returncode == 2, text
        assert all(f"{name}.vram" in text.stderr for name in "bcd") and text.stderr.count("\n") == 3, text.stderr
        if verb != "summary":
            assert all(f"{name}.vram\n" in text.stdout for name in "ade"), text.stdout
        answers = json.loads(run(bad, verb, "run", "--json").stdout)
        assert len(answers["processes"]) == 3


# --- names that would move the cursor -----------------------------------------------------------------------------------------------------

def test_no_verb_passes_control_characters_on(folder):
    (folder / "limits.toml").write_bytes(b'peak = "1KiB"\n[layer]\n"bell\x07\x1b[31m\x1b]0;title\x073" = "1KiB"\n"lost\x1b[2J" = "1KiB"\n')
    commands = [[verb, "hostile.vram", "-n", "0"] for verb in ("ledger", "peak", "steps", "layers", "leaks", "fragmentation", "oom", "xla")]
    commands += [["peak", "hostile.vram", "--by", by, "-n", "0"] for by in ("layer", "op", "line", "name", "pool", "phase")]
    commands += [["summary", "hostile.vram"], ["diff", "hostile.vram", "clean.vram", "-n", "0"], ["dump", "hostile.vram"],
                 ["check", "hostile.vram", "--budget", "limits.toml", "--github"], ["peak", "hostile.vram", "--where", "layer:\x1b[2J"]]
    for words in commands:
        done = subprocess.run([BUILD / "vramscope", *words], cwd=folder, capture_output=True, timeout=60)
        for text in (done.stdout, done.stderr):
            shown = text.decode()  # and it is UTF-8
            unwanted = "\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
            assert not re.search(f"[{unwanted}]", shown), (words, ascii(shown))
            if words[0] != "dump":
                assert max(map(len, shown.splitlines()), default=0) < 1000, words
    (folder / "limits.toml").write_bytes(b'peak = "1KiB"\n[layer]\n"bell\x07\x1b[31m\x1b]0;title\x073" = "1KiB"\n')
    done = run(folder, "check", "hostile.vram", "--budget", "limits.toml", "--github")
    assert done.returncode == 1 and "\x1b" not in done.stdout and "\\x1b[31m" in done.stdout, done


# --- instants, filters and numbers out of range ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("at", ["1e99s", "infs", "nans", "-5s", "100s", "step:2+9999s", "step:2+nans", "step:2+1e300h"])
def test_instants_lie_within_the_trace(folder, at):
    for verb in ("ledger", "peak", "layers"):
        refused(run(folder, verb, "leak.vram", f"--at={at}"), at)


def test_an_instant_beyond_the_end_says_where_the_end_is(folder):
    end = json.loads(run(folder, "summary", "leak.vram", "--json").stdout)["overview"]["duration_us"] / 1e6
    refused(run(folder, "ledger", "leak.vram", "--at", "100s"), f"{end:g}s")
    assert run(folder, "ledger", "leak.vram", "--at", f"{end:.6f}s").returncode == 0


@pytest.mark.parametrize("verb", ["summary", "ledger", "peak", "steps", "layers", "leaks", "fragmentation", "oom"])
def test_a_filter_that_matches_nothing_is_no_answer(folder, verb):
    refused(run(folder, verb, "leak.vram", "--where", "layer:zzz"), "layer:zzz")
    refused(run(folder, verb, "leak.vram", "--where", "layer:zzz", "--json"), "layer:zzz")


def test_a_filter_that_neither_side_matches_is_no_difference(folder):
    refused(run(folder, "diff", "leak.vram", "clean.vram", "--where", "layer:zzz"), "layer:zzz")
    assert run(folder, "diff", "hostile.vram", "clean.vram", "--where", "layer:dense_1").returncode == 0


@pytest.mark.parametrize("words", [["--rank", "5"], ["-n", "-1"], ["-n", "99999999999999999999"], ["-n", "1x"]])
def test_numbers_out_of_range(folder, words):
    refused(run(folder, "peak", "clean.vram", *words))


def test_a_pipe_in_place_of_the_index_is_passed_by(folder):
    os.mkfifo(folder / "clean.vram.index")
    assert run(folder, "summary", "clean.vram", timeout=30).returncode == 0


def test_latest_stays_on_the_last_run_with_a_trace(folder):
    runs = folder / "vramscope-runs"
    assert run(folder, "run", "-q", "--", "true").returncode == 0
    assert not os.path.lexists(runs / "latest")
    (runs / "before").mkdir()
    (runs / "latest").symlink_to("before")
    assert run(folder, "run", "-q", "--", "true").returncode == 0
    assert os.readlink(runs / "latest") == "before"
    keeps = "import glob, shutil; shutil.copy('clean.vram', [f for f in glob.glob('vramscope-runs/*') if 'python' in f][0])"
    assert run(folder, "run", "-q", "--", "python3", "-c", keeps).returncode == 0
    assert "python" in os.readlink(runs / "latest")
