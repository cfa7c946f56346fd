"""Names that are not ASCII, from the program to every answer: a recording of Größe.py."""
import http.client
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "Größe.py"
OLD = Path(__file__).resolve().parents[1] / "traces/v1.1-reports.vram"
# What is left of a character where its escape was not read, or where it was read as another encoding.
BROKEN = re.compile(r"u00[0-9a-f]{2}|Ã|\ufffd|\?berholt|Gr\?")
VERBS = {"summary": [], "peak": ["--by", "line"], "layers": [], "leaks": [], "steps": [], "ledger": [], "oom": [], "fragmentation": [],
         "dump": []}


@pytest.fixture(scope="module")
def trace(vramscope, run, tmp_path_factory, newest_tensorflow):
    folder = tmp_path_factory.mktemp("names") / "out"
    run([vramscope, "run", "-o", folder, "--quiet", "--", newest_tensorflow, PROGRAM], timeout=600,
        env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1"})
    found, = folder.glob("*.vram")
    return found


def ask(vramscope, trace, verb, *options):
    done = subprocess.run([vramscope, verb, *options, trace], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()           # strict: what is printed is UTF-8


def line_of(words):
    return PROGRAM.read_text().split(words)[0].count("\n") + 1


@pytest.fixture(params=["recorded now", "recorded in format 1.1"])
def any_trace(request):
    return request.getfixturevalue("trace") if request.param == "recorded now" else OLD


def events(vramscope, trace, *kinds):
    found = [json.loads(line) for line in ask(vramscope, trace, "dump", "--jsonl").splitlines()]
    return [event for event in found if event["event"] in kinds]


def test_every_fault_is_reported_with_its_names(vramscope, any_trace):
    expected = {
        "held_tensors": {"name": "verläufe", "container": "list", "owner": "global of __main__ (Größe.py)", "line": line_of("verläufe.append")},
        "persistent_tape": {"line": line_of("persistent=True")},
        "retrace": {"function": "überholt", "line": line_of("@tf.function\ndef überholt"), "traces": 10},
        "baked_constant": {"function": "nachschlagen", "line": line_of("tf.gather(tabelle"), "bytes": 600 * 600 * 4, "dtype": "float32"},
        "float64_variable": {"name": "größe", "line": line_of("dtype=tf.float64"), "bytes": 256 * 64 * 8},
        "dataset_on_device": {"device": "CPU:0", "line": line_of("from_tensor_slices(quelle)"), "bytes": 2048 * 1024 * 4},
        "cached_dataset": {"line": line_of(".cache()"), "bytes": 2048 * 1024 * 4, "elements": 2048 // 16},
    }
    newest = {event["event"]: event for event in events(vramscope, any_trace, *expected)}
    for kind, fields in expected.items():
        assert newest[kind].items() >= fields.items(), newest[kind]
        assert Path(newest[kind]["file"]).name == "Größe.py"


def test_findings_have_these_names(vramscope, any_trace):
    found = json.loads(ask(vramscope, any_trace, "summary", "--json"))["findings"]["findings"]
    printed = ask(vramscope, any_trace, "summary")
    titles = {finding["id"]: finding["title"] for finding in found}
    assert re.match(rf"Leak: .*verläufe \(Größe\.py:{line_of('verläufe.append')}\)", titles["held-tensors"])
    assert titles["baked-constant"] == f"1.4 MiB of constants is baked into a graph at Größe.py:{line_of('tf.gather(tabelle')}."
    assert all(title in printed for title in titles.values())


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("json_too", [False, True])
def test_every_verb_prints_names_as_they_are(vramscope, any_trace, verb, json_too):
    options = [*VERBS[verb], *([{"dump": "--jsonl"}.get(verb, "--json")] if json_too else [])]
    out = ask(vramscope, any_trace, verb, *options)
    assert not BROKEN.search(out), BROKEN.search(out)
    if verb in ("summary", "peak", "leaks", "dump"):
        assert "Größe.py" in out
    if json_too:
        for text in out.splitlines() if verb == "dump" else [out]:
            json.loads(text)


def test_the_page_gets_names_as_they_are(vramscope, any_trace):
    server = subprocess.Popen([vramscope, "serve", any_trace], stdout=subprocess.PIPE, text=True)
    try:
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", server.stdout.readline()).groups()
        answers = {}
        for path in ("overview?trace=0", "steps?trace=0", "peak?trace=0&at=peak&open=line&filter=", "leaks?trace=0",
                     "layers?trace=0&at=peak&filter=", "source?trace=0&at=peak&file=", "suggest?trace=0&text=line:G"):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
            connection.request("GET", "/api/" + path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            assert answer.status == 200, text
            assert not re.search(r"u00[0-9a-f]{2}|Ã|\?berholt|Gr\?", text), path
            answers[path.split("?")[0]] = text
            connection.close()
    finally:
        server.terminate()
        server.wait(30)
    for name in ("overview", "peak", "leaks", "source"):
        assert "Größe.py" in answers[name], name
    assert "verläufe" in answers["overview"]


def test_the_variable_behind_an_op_has_its_name(vramscope, any_trace):
    tags = {event["name"] for event in events(vramscope, any_trace, "tag")}
    assert "größe" in tags
    reports = events(vramscope, any_trace, "variable_op")
    ops = {(event["role"], event["category"]) for event in reports}
    assert ops >= {("gradient", "gradient"), ("storage", "parameter"), ("storage", "optimizer_state")}
    # The gradients are those of the model's variables, and these are tagged by their addresses too.
    gradients = {event["variable"] for event in reports if event["role"] == "gradient"}
    assert gradients and gradients <= tags


def test_a_stack_that_was_cut_says_so(vramscope, any_trace):
    assert json.loads(ask(vramscope, any_trace, "summary", "--json"))["cut_stacks"] > 0
    assert re.search(r"\(\d+ more frames\)", ask(vramscope, any_trace, "dump", "--jsonl"))


def test_an_old_trace_gives_the_answers_that_it_gave_then(vramscope):
    """What variables and gradients are was reported in settings; the sums are those that the program printed that recorded it.
    The peak was at 139.3 ms then, which is before the first step."""
    printed = ask(vramscope, OLD, "summary")
    assert "Training needs 17.2 MiB on host. The 24.1 MiB peak was reached before the first step." in printed
    assert ("At the steady peak: inputs 8.1 MiB, unknown 6.3 MiB, constants 1.9 MiB, optimizer state 517.3 KiB, parameters 386.5 KiB, "
            "temporaries 4.8 KiB, workspace 3.5 KiB.") in printed
    # What has another name now: the constants were called temporaries, what the optimizer makes workspace, and a value of adam/iteration, which the
    # trace reports as the optimizer's state in other steps, an activation.
    assert "4 stacks are too deep" in printed
