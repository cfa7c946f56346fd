"""`vramscope run` stays out of the way: output, exit code, signals and files are the command's own."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recording_support import check_blocks


@pytest.fixture
def record(vramscope, tmp_path):
    """record([command...], option...) -> CompletedProcess; traces are in tmp_path / "out"."""

    def call(command, *options, **more):
        words = [vramscope, "run", "-o", tmp_path / "out", *options, "--", *command]
        return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **more)

    return call


def one_line(text):
    lines = [line for line in text.splitlines() if line.startswith("vramscope:")]
    assert len(lines) == 1, text
    return lines[0]


def test_output_and_exit_code_are_the_commands(record):
    done = record(["sh", "-c", "printf 'a\\0b'; printf warn >&2; exit 41"], "-q")
    assert (done.stdout, done.stderr, done.returncode) == ("a\0b", "warn", 41)


def test_a_script_without_an_interpreter_is_the_shells(record, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo script $1; exit 9\n")
    script.chmod(0o755)
    done = record([script, "one"], "-q")
    assert (done.stdout, done.returncode) == ("script one\n", 9)


def test_input_reaches_the_command(vramscope, tmp_path):
    done = subprocess.run([vramscope, "run", "-q", "-o", tmp_path / "out", "cat"], input="hello", capture_output=True, text=True, timeout=600)
    assert done.stdout == "hello"


def test_options_after_the_dashes_are_the_commands(record):
    assert record(["echo", "--quiet", "-o", "--", "x"], "-q").stdout == "--quiet -o -- x\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGABRT", "SIGSEGV", "SIGKILL", "SIGINT", "SIGPIPE"])
def test_it_dies_of_the_commands_signal(record, name):
    # A runner in the background of a shell ignores SIGINT, and so would everything it starts.
    default = lambda: signal.signal(getattr(signal, name), signal.SIG_DFL)
    done = record(["sh", "-c", f"kill -{name[3:]} $$"], "-q", preexec_fn=None if name == "SIGKILL" else default)
    assert done.returncode == -getattr(signal, name)


def test_dispositions_of_signals_are_inherited(record):
    show = "import signal; print([signal.getsignal(s) for s in (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)])"
    ignore = lambda: (signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    plain = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, preexec_fn=ignore).stdout
    assert record([sys.executable, "-c", show], "-q", preexec_fn=ignore).stdout == plain
    masks = ["sh", "-c", "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status"]
    assert record(masks, "-q").stdout == subprocess.run(masks, capture_output=True, text=True).stdout


def test_what_cannot_be_run_is_said_as_a_shell_says_it(record, vramscope, tmp_path, run):
    missing = record(["no-such-command"])
    assert missing.returncode == 127 and "not found" in one_line(missing.stderr)
    script = tmp_path / "script"
    script.write_text("echo")
    forbidden = record([script])
    assert forbidden.returncode == 126 and "not executable" in one_line(forbidden.stderr)
    nothing = run([vramscope, "run"], code=2)
    assert "no command" in one_line(nothing.stderr)
    assert not (tmp_path / "out").exists()


# Says each signal that comes, up to SIGUSR2 and what came before it.
SIGNALLED = """
import signal
import socket
awaited = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
print("ready", flush=True)
number = None
while number != signal.SIGUSR2:
    number = signal.sigwaitinfo(awaited).si_signo
    print(number, flush=True)
while more := signal.sigtimedwait(awaited, 0):
    print(more.si_signo, flush=True)
"""


def has_pending(pid, number):
    return int(re.search(r"ShdPnd:\s*(\w+)", Path(f"/proc/{pid}/status").read_text()).group(1), 16) >> (number - 1) & 1


@pytest.mark.parametrize("whole_group", [False, True], ids=["alone", "group"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT", "SIGXCPU", "SIGABRT", "SIGPROF", "SIGRTMIN", "SIGRTMAX"])
def test_a_signal_arrives_exactly_once(vramscope, tmp_path, wait_until, name, whole_group):
    run = subprocess.Popen([vramscope, "run", "-q", "-o", tmp_path / "out", "--", sys.executable, "-c", SIGNALLED],
                           stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stdout.readline() == "ready\n"
    number = int(getattr(signal, name))
    os.killpg(run.pid, number) if whole_group else os.kill(run.pid, number)
    assert run.stdout.readline() == f"{number}\n"
    # `run` passes signals on one after the other: the last one shows that the first was dealt with, and what came of it.
    wait_until(lambda: not has_pending(run.pid, number), "run takes the signal")
    os.kill(run.pid, signal.SIGUSR2)
    assert run.stdout.read().split() == [str(int(signal.SIGUSR2))]
    assert run.wait(600) == 0
    run.stdout.close()


def test_nothing_recorded_names_the_usual_reason(record, monkeypatch):
    monkeypatch.delenv("TF_CPU_ALLOCATOR_USE_BFC", raising=False)
    assert "no trace" in (said := record(["true"]).stderr) and "TF_CPU_ALLOCATOR_USE_BFC=1" in said
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "1")
    assert "no trace" in (said := record(["true"]).stderr) and "TF_CPU" not in said


def children(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_readers_of_the_output_are_not_kept_waiting(vramscope, tmp_path, wait_until):
    """Only the command and `run` itself hold the output open: the reader sees its end when both are gone."""
    run = subprocess.Popen([vramscope, "run", "-q", "-o", tmp_path / "out", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    helper = wait_until(lambda: [pid for pid in children(run.pid) if Path(f"/proc/{pid}/comm").read_text() == "vramscope-wait\n"],
                        "run starts its helper")[0]
    wait_until(lambda: not os.listdir(f"/proc/{helper}/fd"), "the helper closes every file")
    assert run.communicate(b"done\n", timeout=600)[0] == b"done\n"


def test_events_of_all_threads_in_order(record, producer, counters, traces_in, tmp_path):
    done = record([producer, counters.path, "8", "6000", "print"])
    assert done.stdout == "done\n" and "none lost" in done.stderr
    trace, = traces_in(tmp_path / "out")
    check_blocks(trace, counters.read(8))
    numbers = [event["seq"] for event in trace.events if event["event"] in ("alloc", "free")]
    assert numbers == sorted(numbers) and len(set(numbers)) == len(numbers)
    assert trace.settings()["vramscope.totals_check"] == "equal"
    assert trace.settings()["process.exit_code"] == "0"
    manifest = json.loads(next((tmp_path / "out").glob("*.manifest.json")).read_text())
    assert manifest["exit_code"] == 0 and [each["file"] for each in manifest["traces"]] == [trace.path.name]


def test_no_address_lives_twice(record, producer, counters, traces_in, tmp_path):
    record([producer, counters.path, "8", "5000"], "-q")
    live = set()
    for event in traces_in(tmp_path / "out")[0].events:
        if event["event"] == "alloc":
            assert event["address"] not in live
            live.add(event["address"])
        if event["event"] == "free":
            live.remove(event["address"])


def test_threads_that_end_give_their_memory_back(record, producer, counters, traces_in, tmp_path):
    """1,200 threads with a segment each in a spool of 64: the producer continues whenever 16 of them are free."""
    done = record([producer, counters.path, "4", "15000", "threads-end", "segments=48"], "-q", "--spool-limit", "4MiB")
    assert done.returncode == 0
    trace, = traces_in(tmp_path / "out")
    check_blocks(trace, counters.read(4))
    assert not trace.kind("lost")


def test_fork_in_the_middle_gives_two_traces(record, producer, counters, traces_in, tmp_path):
    record([producer, counters.path, "4", "5000", "fork"], "-q")
    traces = traces_in(tmp_path / "out")
    assert len(traces) == 2
    parent, child = sorted(traces, key=lambda trace: 64 in trace.blocks())
    check_blocks(parent, counters.read(4))
    assert child.blocks()[64] == list(range(counters.read(65)[64]))


def test_exec_gives_two_traces(record, producer, counters, traces_in, tmp_path):
    record([producer, counters.path, "2", "2000", "exec"], "-q")
    traces = traces_in(tmp_path / "out")
    assert len(traces) == 2 and len({trace.settings()["process.pid"] for trace in traces}) == 1
    for trace in traces:
        check_blocks(trace, counters.read(2))


def test_children_that_never_allocate_leave_nothing(record, tmp_path):
    done = record(["sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true & i=$((i+1)); done; wait"])
    assert done.returncode == 0
    assert not list((tmp_path / "out").glob("*.vram"))
    assert "no trace" in one_line(done.stderr)


def test_200_children_that_record(record, producer, tmp_path, counters, vramscope, run):
    script = f"i=0; while [ $i -lt 200 ]; do {producer} {counters.path}.$i 1 50 & i=$((i+1)); done; wait"
    done = record(["sh", "-c", script], "-q")
    assert done.returncode == 0 and done.stderr == ""
    assert len(list((tmp_path / "out").glob("*.vram"))) == 200
    answer = json.loads(run([vramscope, "summary", "--json", tmp_path / "out"]).stdout)
    assert sum(each["pools"][0]["allocs"] for each in answer["processes"]) == 200 * 50


def test_a_process_that_outlives_the_command(record, producer, counters, traces_in, tmp_path, wait_until):
    under_way = f"until [ $(od -An -tu8 -N8 {counters.path}) -gt 100 ]; do sleep 0.02; done 2>/dev/null"
    done = record(["sh", "-c", f"{producer} {counters.path} 1 100000000 pause=1000 >/dev/null 2>&1 & echo $!; {under_way}"], "-q")
    try:
        assert "still running" in one_line(done.stderr)
        trace, = traces_in(tmp_path / "out")
        assert len(trace.kind("alloc")) > 100
        before, (count,) = trace.path.stat().st_size, counters.read(1)
        wait_until(lambda: counters.read(1)[0] > count + 1000, "the process goes on")
        assert trace.path.stat().st_size == before
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


def test_a_process_that_is_not_waited_for_is_named(record):
    done = record(["sh", "-c", "sleep 6000 >/dev/null 2>&1 & echo $!"])
    try:
        line = one_line(done.stderr)
        assert f"process {int(done.stdout)}" in line and "wait" in line and "doctor" not in line
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


def removed_meanwhile(folder, producer, counters, out):
    """A shell script that removes the folder once the trace has begun; half of the events come after that."""
    begun = f"until ls {out}/*.vram; do sleep 0.02; done"
    return (f"{producer} {counters.path} 1 6000 gate={counters.path}.gate & {{ {begun}; }} >/dev/null 2>&1; "
            f"rm -rf {folder}; touch {counters.path}.gate; wait")


def test_removing_the_spool_folder_ends_no_recording(record, producer, counters, traces_in, tmp_path):
    done = record(["sh", "-c", removed_meanwhile("$VRAMSCOPE_SPOOL", producer, counters, tmp_path / "out")], "-q")
    assert (done.returncode, done.stderr) == (0, "")
    trace, = traces_in(tmp_path / "out")
    assert counters.read(1) == (6000,)
    check_blocks(trace, counters.read(1))


def test_a_trace_that_was_removed_is_not_said_to_be_there(record, producer, counters, tmp_path):
    done = record(["sh", "-c", removed_meanwhile(tmp_path / "out", producer, counters, tmp_path / "out")])
    assert done.returncode == 0
    assert "was removed" in done.stderr and "trace in" not in done.stderr, done.stderr
    assert re.search(r"[\d,]+ events could not be written", done.stderr)


def test_a_small_spool_loses_the_oldest_and_says_so(record, producer, counters, tmp_path, run, vramscope):
    # The collector is stopped meanwhile, so that nothing is drained.
    stop_parent = f"kill -STOP $PPID; {producer} {counters.path} 2 60000; kill -CONT $PPID"
    done = record(["sh", "-c", stop_parent], "-q", "--spool-limit", "2MiB")
    assert done.returncode == 0
    line = one_line(done.stderr)
    assert "overwritten" in line and "--spool-limit" in line
    answer = json.loads(run([vramscope, "summary", "--json", tmp_path / "out"]).stdout)
    assert answer["lost"] > 0
    assert answer["pools"][0]["allocs"] == 120000, "totals are whole where detail is lost"


def test_final_oom_is_printed_at_once(record, producer, counters):
    done = record([producer, counters.path, "1", "100", "oom"], "-q")
    assert "out of memory in producer_pool: 5,120.0 MiB requested by model/too_big/MatMul" in done.stderr
    assert "largest holders" in done.stderr
    assert any(f"model/dense/{op}" in done.stderr for op in ("MatMul", "Relu"))


def test_names_are_hashed_on_request(record, producer, counters, tmp_path):
    record([producer, counters.path, "1", "100"], "-q", "--anonymize")
    host = os.uname().nodename
    for path in (tmp_path / "out").iterdir():
        data = path.read_bytes()
        assert b"MatMul" not in data and b"spool_producer" not in data, path
        assert f'"{host}"'.encode() not in data and not path.name.startswith(host + "-"), path


def test_two_runs_share_a_folder(record, producer, counters, tmp_path):
    for _ in range(2):
        assert record([producer, counters.path, "1", "50"], "-q").returncode == 0
    assert len(list((tmp_path / "out").glob("*.vram"))) == 2


def test_nothing_is_left_behind(record, producer, counters, tmp_path):
    before = set(os.listdir("/dev/shm"))
    record([producer, counters.path, "1", "50"], "-q")
    left = {name for name in set(os.listdir("/dev/shm")) - before if name.startswith("vramscope-")}
    mine = {name for name in left if os.path.realpath(f"/dev/shm/{name}/run") == str(tmp_path / "out")}
    assert not mine
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".vram", ".json"}


def test_a_taken_port_of_the_live_page(vramscope, tmp_path):
    """The hint names the option of this verb."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([str(vramscope), "run", "--live", "--live-port", str(port), "-o", str(tmp_path / "out"), "--", "/bin/echo", "fine"],
                              capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert f"no live page: 127.0.0.1 port {port}: cannot listen: Address already in use; choose another port with --live-port\n" in done.stderr
