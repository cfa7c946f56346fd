"""The worst thing first, in the same words everywhere: the last line of `run`, `summary` and the overview page."""
import http.client
import json
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "verdict_programs.py"
LINE = next(i for i, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "# the defect" in text)
LEAK = rf"Leak: 1\.0 MiB per step since step \d+, \d\d\.\d MiB so far, allocated at verdict_programs\.py:{LINE}"
NEED = r"Training needs [\d.]+ [KM]iB on host, in every steady step\."
# trouble, how it ends -> exit code of `run`, what is said
CASES = {
    ("leak", "killed"): (-9, LEAK + r", and the program was killed by SIGKILL (in|after) step (39|40)\."),
    ("leak", "failed"): (3, LEAK + r", and the program exited with code 3 (in|after) step (39|40)\."),
    ("leak", "normal"): (0, LEAK + r"\."),
    ("none", "killed"): (-9, r"The program was killed by SIGKILL (in|after) step (39|40)\. " + NEED),
    ("none", "normal"): (0, NEED),
}


def page_sentence(vramscope, trace):
    server = subprocess.Popen([vramscope, "serve", trace], stdout=subprocess.PIPE, text=True)
    try:
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", server.stdout.readline()).groups()
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        connection.request("GET", "/api/overview?trace=0", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        assert answer.status == 200
        body = answer.read()                                # a word, the length of the document, the document, columns
        return json.loads(body[8:8 + int.from_bytes(body[4:8], "little")])["sentence"]
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize("trouble, how", CASES)
def test_the_worst_first_and_everywhere_the_same(vramscope, torch_python, tmp_path, trouble, how):
    code, expected = CASES[trouble, how]
    done = subprocess.run([vramscope, "run", "-o", tmp_path / "out", "--", torch_python, PROGRAM, trouble, how], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["kept"] == (40 if trouble == "leak" else 0)
    trace, = (tmp_path / "out").glob("*.vram")
    text = subprocess.check_output([vramscope, "summary", trace], text=True)
    said = text.splitlines()[0]
    assert re.fullmatch(expected, said), said
    assert f"vramscope: {said} " in done.stderr, done.stderr
    assert page_sentence(vramscope, trace) == said
    answer = json.loads(subprocess.check_output([vramscope, "summary", "--json", trace]))
    assert answer["sentence"] == said
    # Advice for PyTorch only, no saving of a few KiB, no comparison with steps that do not exist.
    assert not re.search(r"TF_|\btf\.|autotuning| later\b", text), text
    assert all(finding["at_stake"] is None or finding["at_stake"] >= 1 << 20 for finding in answer["findings"]["findings"]), text
