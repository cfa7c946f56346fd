import subprocess


def test_is_recording(python, vramscope, root, tmp_path):
    program = "import vramscope; print(vramscope.is_recording())"
    environment = {"PYTHONPATH": str(root / "python"), "PATH": "/usr/bin:/bin"}
    plain = subprocess.run([python, "-c", program], capture_output=True, text=True, env=environment)
    recorded = subprocess.run([vramscope, "run", "-o", tmp_path / "run", "--", python, "-c", program], capture_output=True, text=True, env=environment)
    assert (plain.stdout, recorded.stdout) == ("False\n", "True\n"), plain.stderr + recorded.stderr
