"""Ctrl-C, Ctrl-Z, fg and hang-up, typed at a terminal of its own with a real shell in between."""
import os
import pty
import re
import select
import signal
import sys
import time

import pytest

PROGRAM = """
import os, signal, sys, time
def interrupted(number, frame):
    os.write(1, b"got %d, " % number)     # print() may be what the signal interrupted
    sys.exit(33)
signal.signal(signal.SIGINT, interrupted)
print("program", "ready", os.getpid(), 0, flush=True)
while True:
    time.sleep(0.05)
"""


class Terminal:
    """A shell with job control behind a pseudo-terminal."""

    def __init__(self):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1="$ ", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.seen = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern, seconds=600):
        """Waits for the pattern in what was not looked at yet."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.seen!r}"
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 4096).decode(errors="replace")

    def close(self):
        os.close(self.master)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(vramscope, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    terminal = Terminal()
    terminal.type(f"run() {{ {vramscope} run -q -o {tmp_path}/out -- {sys.executable} {program}; }}\n")
    yield terminal
    terminal.close()


def test_ctrl_c_is_the_programs(terminal):
    terminal.type("run; echo code $?\n")
    terminal.expect("program ready")
    terminal.type("\x03")
    terminal.expect("got 2")
    terminal.expect("code 33")


def state_of(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def wait_for_state(wait_until):
    return lambda pid, states: wait_until(lambda: state_of(pid) in states, lambda: f"process {pid} is {state_of(pid)}, not {states}")


def test_ctrl_z_stops_both_and_fg_continues_both(terminal, vramscope, tmp_path, wait_for_state):
    terminal.type(f"{vramscope} run -q -o {tmp_path}/out -- {sys.executable} {tmp_path}/program.py\n")
    pid = int(terminal.expect(r"program ready (\d+) \d+").group(1))
    parent = int(re.search(r"PPid:\s*(\d+)", open(f"/proc/{pid}/status").read()).group(1))
    for _ in range(3):
        terminal.type("\x1a")
        terminal.expect("Stopped")
        wait_for_state(pid, "T")
        wait_for_state(parent, "T")
        terminal.type("fg\n")
        wait_for_state(pid, "RSD")
        wait_for_state(parent, "RSD")
    terminal.type("\x03")
    terminal.expect("got 2")
    terminal.expect(r"\$ ")
    terminal.type("echo code $?\n")
    terminal.expect("code 33")


def test_continuing_the_collector_alone_continues_the_program(terminal, vramscope, tmp_path, wait_for_state):
    terminal.type(f"{vramscope} run -q -o {tmp_path}/out -- {sys.executable} {tmp_path}/program.py\n")
    pid = int(terminal.expect(r"program ready (\d+) \d+").group(1))
    parent = int(re.search(r"PPid:\s*(\d+)", open(f"/proc/{pid}/status").read()).group(1))
    terminal.type("\x1a")
    terminal.expect("Stopped")
    wait_for_state(pid, "T")
    wait_for_state(parent, "T")
    os.kill(parent, signal.SIGCONT)
    wait_for_state(pid, "RSD")
    os.kill(pid, signal.SIGINT)
    terminal.expect("got 2")


def test_in_the_background(terminal, vramscope, tmp_path):
    terminal.type(f"{vramscope} run -q -o {tmp_path}/out -- {sys.executable} {tmp_path}/program.py &\n")
    terminal.expect("program ready")
    terminal.type("kill -INT %1; wait %1; echo code $?\n")
    # A background job of an interactive shell takes SIGINT; each process of the group gets it once.
    terminal.expect("got 2")
    terminal.expect("code 33")


def test_the_terminal_is_the_programs(terminal, vramscope, tmp_path):
    terminal.type(f"{vramscope} run -q -o {tmp_path}/out -- sh -c 'echo asks at $((6 * 7)); read line; echo read $line; test -t 0 -a -t 1 && echo on a terminal'\n")
    terminal.expect("asks at 42")
    terminal.type("hello\n")
    terminal.expect("read hello")
    terminal.expect("on a terminal")


def test_hang_up_ends_the_program(vramscope, tmp_path, wait_until):
    program = tmp_path / "program.py"
    program.write_text(f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nprint('program ready', flush=True)\ntime.sleep(6000)\n")
    terminal = Terminal()
    terminal.type(f"exec {vramscope} run -q -o {tmp_path}/out -- {sys.executable} {program}\n")
    terminal.expect("program ready")
    pid = int((tmp_path / "pid").read_text())
    os.close(terminal.master)
    wait_until(lambda: os.waitpid(terminal.pid, os.WNOHANG)[0] != 0, "the run ends with its terminal")
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the program ends with its terminal")
