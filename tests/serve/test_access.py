"""The server of the built program: who gets in, and who cannot keep the owner out."""
import http.client
import re
import resource
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

TRACE = Path(__file__).resolve().parent.parent / "traces/v1.0.vram"
TOKEN = "a-token-of-my-own_1234"


@pytest.fixture
def serve(vramscope):
    running = []

    def start(*options):
        server = subprocess.Popen([vramscope, "serve", TRACE, *options], stdout=subprocess.PIPE, text=True)
        running.append(server)
        address = server.stdout.readline()
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", address).groups()
        return server, int(port), token

    yield start
    for server in running:
        server.terminate()
        server.wait(30)


def ask(port, token, path="/api/hello"):
    return get(port, token, path)[0]


def get(port, token, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def test_the_token_is_in_no_list_of_processes(serve, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    server, port, token = serve("--token-file", file)
    assert token == TOKEN and ask(port, token) == 200
    assert ask(port, "") == 401 and ask(port, TOKEN[:-1]) == 401
    assert ask(port, "", "/") == 200, "the page itself holds nothing"
    assert TOKEN.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()


@pytest.mark.parametrize("text, mode", [(TOKEN, 0o644), (TOKEN, 0o640), (TOKEN, 0o620), (TOKEN, 0o602), ("short", 0o600), ("with spaces and more", 0o600)])
def test_a_bad_token_file_is_refused(run, vramscope, tmp_path, text, mode):
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    done = run([vramscope, "serve", TRACE, "--token-file", file], code=2)
    assert len(done.stderr.splitlines()) == 1 and str(file) in done.stderr
    run([vramscope, "serve", TRACE, "--token-file", tmp_path / "absent"], code=2)


def test_silent_connections_do_not_lock_the_owner_out(serve):
    _, port, token = serve()
    silent = []
    for i in range(300):
        peer = socket.create_connection(("127.0.0.1", port), timeout=60)
        if i % 3 == 0:
            peer.sendall(b"GET /api/hello HTTP/1.1\r\nHost:")
        silent.append(peer)
    assert [ask(port, token) for _ in range(10)] == [200] * 10
    for peer in silent:
        peer.close()


def test_few_descriptors(vramscope):
    """At the limit of open files strangers make room, and the processor is not burnt."""
    server = subprocess.Popen(["sh", "-c", f'ulimit -n 24; exec "{vramscope}" serve "{TRACE}"'], stdout=subprocess.PIPE, text=True)
    try:
        port, token = re.search(r":(\d+)/#token=(\S+)", server.stdout.readline()).groups()
        silent = [socket.create_connection(("127.0.0.1", int(port)), timeout=60) for _ in range(60)]
        assert [ask(int(port), token) for _ in range(5)] == [200] * 5
        for peer in silent:
            peer.close()
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More traces than fit into a limit of 64 open files."""
    folder = tmp_path_factory.mktemp("many")
    for i in range(80):
        shutil.copy(TRACE, folder / f"{i:02}.vram")
    return folder


def with_open_files(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("verb", ["serve", "report"])
def test_more_traces_than_open_files(vramscope, many, tmp_path, verb):
    done = subprocess.run([vramscope, verb, many], capture_output=True, text=True, timeout=300, cwd=tmp_path, preexec_fn=with_open_files(64, 64))
    assert done.returncode == 2 and not done.stdout and not list(tmp_path.iterdir())
    [line] = done.stderr.splitlines()
    assert "80 traces" in line and "ulimit -n" in line and "allows for 14" in line


def test_a_limit_that_may_be_raised_is_raised(vramscope, many, tmp_path):
    report = tmp_path / "report.html"
    done = subprocess.run([vramscope, "report", many, "-o", report], capture_output=True, text=True, timeout=300, preexec_fn=with_open_files(64, 1024))
    assert done.returncode == 0 and "open files" not in done.stderr, done.stderr
    server = subprocess.Popen([vramscope, "serve", many], stdout=subprocess.PIPE, text=True, preexec_fn=with_open_files(64, 1024))
    try:
        port, token = re.search(r":(\d+)/#token=(\S+)", server.stdout.readline()).groups()
        assert [get(int(port), token, f"/api/peak?trace={i}")[0] for i in (0, 79)] == [200, 200]
    finally:
        server.terminate()
        server.wait(30)
