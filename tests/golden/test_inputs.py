"""What verbs read and write: inputs that are damaged, foreign, hostile or out of range are refused with one line and exit code 2."""
import base64
import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from verbs import OF_ONE_TRACE

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


def run(folder, *words, timeout=600, **environment):
    environment = {**os.environ, **{key: str(value) for key, value in environment.items()}}
    return subprocess.run([BUILD / "vramscope", *words], cwd=folder, capture_output=True, text=True, timeout=timeout, env=environment)


def refused(done, *parts):
    """One line, exit code 2, nothing that could be mistaken for an answer."""
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
    ("clean", 'peak = "1GiB"\npeak = "2GiB"', [], "line 2: peak"),
    ("clean", "peak: 8MiB", [], 'line 1: this is YAML, and budgets are TOML: write peak = "8MiB"'),
    ("clean", "peak = 8MiB", [], 'as in peak = "8MiB"'),
    ("clean", 'peak = "\x1b[31m8MiB"', [], "line 1: peak"),
])
def test_check_refuses_what_it_cannot_check(folder, trace, budget, more, part):
    (folder / "limits.toml").write_text(budget + "\n")
    refused(run(folder, "check", f"{trace}.vram", "--budget", "limits.toml", *more), "limits.toml", part)


def test_a_budget_is_no_folder(folder):
    refused(run(folder, "check", "clean.vram", "--budget", str(folder)), "is a folder; name a budget file")


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
    refused(run(bad, "serve", file, timeout=600), file)


@pytest.mark.parametrize("what", ["cut.vram", "."])
def test_serve_shows_damaged_traces_and_mixed_folders(bad, what):
    server = subprocess.Popen([BUILD / "vramscope", "serve", what], cwd=bad, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline().startswith("http://")
    finally:
        server.terminate()
        server.communicate(timeout=600)


def test_one_bad_file_does_not_hide_the_others(bad):
    runs = bad / "run"
    runs.mkdir()
    for name, source in (("a", "clean"), ("b", "nothing"), ("c", "random"), ("d", "cut"), ("e", "leak")):
        (runs / f"{name}.vram").write_bytes((bad / f"{source}.vram").read_bytes())
    for verb in [verb for verb in OF_ONE_TRACE if verb != "whatif"]:    # which finds nothing to replay in the cut trace
        text = run(bad, verb, "run")
        assert text.returncode == 2, text
        assert all(f"{name}.vram" in text.stderr for name in "bcd") and text.stderr.count("\n") == 3, text.stderr
        if verb != "summary":
            assert all(f"{name}.vram\n" in text.stdout for name in "ade"), text.stdout
        answers = json.loads(run(bad, verb, "run", "--json").stdout)
        assert len(answers["processes"]) == 3


def test_without_a_place_for_temporary_files(folder):
    """The message names the place, and what to do."""
    (folder / "log.csv").write_text("Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x1000,256,0x0\n")
    absent = folder / "absent"
    for words in (["summary", "log.csv"], ["query", "clean.vram", "select 1"]):
        assert refused(run(folder, *words, TMPDIR=absent), f"{absent}: ", "set TMPDIR")


def test_a_link_that_leads_to_itself(folder):
    (folder / "loop.vram").symlink_to("loop.vram")
    assert refused(run(folder, "diff", "loop.vram", "loop.vram"), "loop.vram: Too many levels of symbolic links")


# --- names that would move the cursor -----------------------------------------------------------------------------------------------------

def test_no_verb_passes_control_characters_on(folder):
    (folder / "limits.toml").write_bytes(b'peak = "1KiB"\n[layer]\n"bell\x07\x1b[31m\x1b]0;title\x073" = "1KiB"\n"lost\x1b[2J" = "1KiB"\n')
    (folder / "escaped.toml").write_bytes(b'peak = "1KiB"\n[layer]\n"bell\\u0007\\u001b[31m\\u001b]0;title\\u00073" = "1KiB"\n"lost\\u001b[2J" = "1KiB"\n')
    commands = [[verb, "hostile.vram", "-n", "0"] for verb in [*OF_ONE_TRACE, "xla"] if verb != "summary"]
    commands += [["peak", "hostile.vram", "--by", by, "-n", "0"] for by in ("layer", "op", "line", "name", "pool", "phase")]
    commands += [["summary", "hostile.vram"], ["diff", "hostile.vram", "clean.vram", "-n", "0"], ["dump", "hostile.vram"],
                 ["check", "hostile.vram", "--budget", "limits.toml", "--github"],
                 ["check", "hostile.vram", "--budget", "escaped.toml", "--github"], ["peak", "hostile.vram", "--where", "layer:\x1b[2J"]]
    for words in commands:
        done = subprocess.run([BUILD / "vramscope", *words], cwd=folder, capture_output=True, timeout=600)
        for text in (done.stdout, done.stderr):
            shown = text.decode()  # and it is UTF-8
            unwanted = "\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
            assert not re.search(f"[{unwanted}]", shown), (words, ascii(shown))
            if words[0] != "dump":
                assert max(map(len, shown.splitlines()), default=0) < 1000, words
    (folder / "limits.toml").write_bytes(b'peak = "1KiB"\n[layer]\n"bell\\u0007\\u001b[31m\\u001b]0;title\\u00073" = "1KiB"\n')
    done = run(folder, "check", "hostile.vram", "--budget", "limits.toml", "--github")
    assert done.returncode == 1 and "\x1b" not in done.stdout and "\\x1b[31m" in done.stdout, done


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_no_line_is_a_command_to_a_ci_system(folder, more):
    """GitHub's runner skips spaces before "::" and looks for "##[" anywhere in a line, Azure for "##vso["."""
    (folder / "limits.toml").write_text('peak = "1KiB"\n[layer]\n"::error file=train.py::bought9" = "1KiB"\n')
    commands = [[verb, "hostile.vram", "-n", "0"] for verb in OF_ONE_TRACE if verb != "summary"]
    commands += [["peak", "hostile.vram", "--by", by, "-n", "0"] for by in ("layer", "op", "line", "name", "pool", "phase")]
    commands += [["summary", "hostile.vram"], ["diff", "hostile.vram", "clean.vram", "-n", "0"], ["dump", "hostile.vram"],
                 ["check", "hostile.vram", "--budget", "limits.toml"]]
    seen = 0
    for words in commands:
        done = run(folder, *words, *(["--jsonl"] if more and words[0] == "dump" else more))
        for line in (done.stdout + done.stderr).splitlines():
            assert not line.lstrip().startswith("::") and "##" not in line, (words, line)
            seen += "bought" in line
    assert seen > 10
    if more:
        names = json.dumps(json.loads(run(folder, "layers", "hostile.vram", "-n", "0", "--json").stdout))
        assert "a###[error]bought ##vso[" in names


def test_a_report_of_names_of_many_kilobytes_stays_small(tmp_path):
    """They pack to nothing, but every answer contains them: the page unpacks what the file holds into the browser's memory."""
    subprocess.run([BUILD / "tracegen", "longnames", "long.vram"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=120)
    done = run(tmp_path, "report", "long.vram", "-o", "long.html", timeout=60)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "long.html").read_text()
    payload = re.search(r'<script id="payload" type="text/plain">([^<]+)<', page).group(1)
    assert len(page) < 8 << 20 and 1 << 20 < len(gzip.decompress(base64.b64decode(payload))) < 128 << 20


# --- instants, filters and numbers out of range ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("at", ["1e99s", "infs", "nans", "-5s", "100s", "step:2+9999s", "step:2+nans", "step:2+1e300h"])
def test_instants_lie_within_the_trace(folder, at):
    for verb in ("ledger", "peak", "layers"):
        refused(run(folder, verb, "leak.vram", f"--at={at}"), at)


def test_an_instant_beyond_the_end_says_where_the_end_is(folder):
    end = json.loads(run(folder, "summary", "leak.vram", "--json").stdout)["overview"]["duration_us"] / 1e6
    refused(run(folder, "ledger", "leak.vram", "--at", "100s"), f"{end:g}s")
    assert run(folder, "ledger", "leak.vram", "--at", f"{end:.6f}s").returncode == 0


@pytest.mark.parametrize("verb", OF_ONE_TRACE)
def test_a_filter_that_matches_nothing_is_no_answer(folder, verb):
    refused(run(folder, verb, "leak.vram", "--where", "layer:zzz"), "layer:zzz")
    refused(run(folder, verb, "leak.vram", "--where", "layer:zzz", "--json"), "layer:zzz")


def test_a_filter_that_neither_side_matches_is_no_difference(folder):
    refused(run(folder, "diff", "leak.vram", "clean.vram", "--where", "layer:zzz"), "layer:zzz")
    assert run(folder, "diff", "hostile.vram", "clean.vram", "--where", "layer:dense_1").returncode == 0


@pytest.mark.parametrize("words", [["--rank", "5"], ["-n", "-1"], ["-n", "99999999999999999999"], ["-n", "1x"]])
def test_numbers_out_of_range(folder, words):
    refused(run(folder, "peak", "clean.vram", *words))


# --- nothing is written beside a trace, and the cache is the user's own ------------------------------------------------------------------

def test_a_trace_is_opened_without_writing_beside_it(folder):
    """Links that somebody put there lead nowhere: the process id in a name can be guessed, so all of them are tried."""
    trap = folder / "trap"
    trap.mkdir()
    mine = folder / "mine"
    mine.write_text("precious")
    tracegen("large", trap / "large.vram", "events=3000000")
    before = sorted(os.listdir(trap))
    for name in ("large.vram.index", *(f"large.vram.index.{pid}.tmp" for pid in range(os.getpid(), os.getpid() + 400))):
        (trap / name).symlink_to(mine)
    cache = folder / "cache"
    cache.mkdir(mode=0o700)
    for verb in ("summary", "peak"):
        assert run(folder, verb, "trap/large.vram", XDG_CACHE_HOME=cache).returncode == 0
    assert mine.read_text() == "precious"
    assert sorted(name for name in os.listdir(trap) if not (trap / name).is_symlink()) == before
    ours = cache / "vramscope"
    assert ours.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in ours.iterdir())
    indexes = list(ours.glob("*.index"))
    assert len(indexes) <= 1  # none on a machine that opens it at once
    assert all(index.stat().st_size <= 5 * (trap / "large.vram").stat().st_size for index in indexes)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_root_leaves_nothing_in_the_home_of_somebody_else(folder):
    home = folder / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    tracegen("large", folder / "large.vram", "events=1500000")
    assert run(folder, "peak", "large.vram", HOME=home, XDG_CACHE_HOME="").returncode == 0
    assert list(home.iterdir()) == []


# --- what a file claims to hold is not believed ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("verb", [*OF_ONE_TRACE, "report"])
@pytest.mark.parametrize("case", ["manyallocs", "manyfrees", "manymarks", "manysettings", "manyooms", "manysamples", "manyheads"])
def test_a_small_file_cannot_take_the_machines_memory(folder, case, verb, run_measured):
    tracegen(case, folder / "forged.vram")
    size = (folder / "forged.vram").stat().st_size
    assert size < 25_000
    memory, code, out, err = run_measured([BUILD / "vramscope", verb, "forged.vram"], cwd=folder)
    assert memory <= (512 << 20) + 256 * size, (memory, err)
    assert code in (0, 2), (code, err)
    if code == 2 and out == "":
        assert err.startswith("vramscope: ") and err.count("\n") == 1, err


def test_latest_stays_on_the_last_run_with_a_trace(folder):
    runs = folder / "vramscope-runs"
    assert run(folder, "run", "-q", "--", "true").returncode == 0
    assert not os.path.lexists(runs / "latest")
    (runs / "2026-01-02T03-04-05-before").mkdir()
    (runs / "latest").symlink_to("2026-01-02T03-04-05-before")
    assert run(folder, "run", "-q", "--", "true").returncode == 0
    assert os.readlink(runs / "latest") == "2026-01-02T03-04-05-before"
    keeps = "import glob, shutil; shutil.copy('clean.vram', [f for f in glob.glob('vramscope-runs/*') if 'python' in f][0])"
    assert run(folder, "run", "-q", "--", "python3", "-c", keeps).returncode == 0
    assert "python" in os.readlink(runs / "latest")


# --- plans of XLA: only what lies in a folder beside the trace --------------------------------------------------------------------------

PLAN = """BufferAssignment:
allocation 0: size 4096, preallocated-temp:
 value: <1 secret.1 @0> (size=4096,offset=0): f32[1024]{0}
BufferLiveRange:
    secret.1{}:RANGE
"""


def with_plans(folder, span="0-1"):
    tracegen("xlaplans", folder / "xlaplans.vram")
    plans = folder / "elsewhere"
    plans.mkdir()
    (plans / "module_1.a-buffer-assignment.txt").write_text(PLAN.replace("RANGE", span))
    return plans


def test_a_link_in_place_of_the_plans_is_not_followed(folder):
    plans = with_plans(folder)
    (folder / "xla-plans").symlink_to(plans)
    done = run(folder, "xla", "xlaplans.vram")
    refused(done, "xla-plans")
    assert "secret" not in done.stderr
    (folder / "xla-plans").unlink()
    plans.rename(folder / "xla-plans")
    done = run(folder, "xla", "xlaplans.vram")
    assert done.returncode == 0 and "secret.1" in done.stdout, done


def test_a_link_in_place_of_a_plan_is_not_followed(folder):
    plans = with_plans(folder)
    (folder / "xla-plans").mkdir()
    (folder / "xla-plans" / "module_1.a-buffer-assignment.txt").symlink_to(plans / "module_1.a-buffer-assignment.txt")
    refused(run(folder, "xla", "xlaplans.vram"), "module_1.a-buffer-assignment.txt")


@pytest.mark.parametrize("span", ["0-18446744073709551615", "18446744073709551615-18446744073709551615", "0-18446744073709551614"])
def test_instructions_of_a_plan_do_not_wrap_around(folder, span):
    with_plans(folder, span).rename(folder / "xla-plans")
    block, = json.loads(run(folder, "xla", "--json", "xlaplans.vram").stdout)["blocks"]
    assert block["instructions"] > block["fullest"] and block["unused"] == 0, block


# --- options: every message has one shape, whether it is the parser's or ours -------------------------------------------------------------

@pytest.mark.parametrize("words, message", [
    (["run", "--stacks", "x", "--", "true"], '--stacks: invalid value "x": expected python, native, both, none; see \'vramscope run --help\''),
    (["run", "--sample-hz", "x", "--", "true"], '--sample-hz: invalid number "x": expected a number; see \'vramscope run --help\''),
    (["run", "--stray", "--", "true"], 'unknown option "--stray"; see \'vramscope run --help\''),
    (["peak", "--stray", "clean.vram"], 'unknown option "--stray"; see \'vramscope peak --help\''),
    (["peak", "clean.vram", "leak.vram"], 'unexpected argument "leak.vram"; see \'vramscope peak --help\''),
    (["peak", "clean.vram", "-n", "-1"], '--rows: invalid number "-1": expected a non-negative integer; see \'vramscope peak --help\''),
    (["peak", "clean.vram", "-n"], "--rows: missing value; see 'vramscope peak --help'"),
    (["peak", "clean.vram", "-n", "1", "-n", "2"], "--rows: given more than once; see 'vramscope peak --help'"),
    (["peak", "clean.vram", "--rank", "x"], '--rank: invalid number "x": expected an integer; see \'vramscope peak --help\''),
    (["peak", "clean.vram", "--at", "x"],
     'clean.vram: invalid instant "x": expected peak, steady, end, step:N, oom, or a time such as 6.2s or 250ms'),
    (["peak"], "trace is required; see 'vramscope peak --help'"),
    (["serve", "clean.vram", "--port", "70000"], "--port must be at most 65535"),
    (["run", "--live-port", "70000", "--", "true"], "--live-port must be at most 65535"),
    (["check", "clean.vram"], "no budget given; name a budget file with --budget"),
    (["completion", "x"], 'unknown shell "x": expected bash, zsh or fish'),
    (["frob"], 'unknown command "frob"; see \'vramscope --help\''),
])
def test_errors_have_one_shape(folder, words, message):
    done = run(folder, *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"vramscope: {message}\n")
