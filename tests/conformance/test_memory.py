"""Recording does not change the memory of what is recorded: the framework's own current and peak at every step, equal to the byte where two
plain runs are."""
import json
import re
from pathlib import Path

import nbclient
import nbformat
import pytest

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.timeout(1200)

MIB = 1 << 20                           # of the smallest activation in these programs
# Where TensorFlow computes in threads of its own, two plain runs differ by up to 64 KiB: small tensors lie elsewhere, and the allocator hands
# out a larger piece whole. No tensor of these programs hides in there.
ROUGH = MIB // 4
TENSORFLOW, TORCH = "tensorflow_programs.py", "torch_programs.py"


def programs(*files):
    return [name for file in files for name in re.findall(r"^@program\ndef (\w+)", (HERE / file).read_text(), re.MULTILINE)]


EAGER, GRAPHS = programs("tensorflow_eager.py"), programs("tensorflow_graphs.py")
AT_REST = {"fit_with_arrays"}           # other threads read ahead: only what is in use in the end is the same in every run
# Those that are also attached to late. They run first, so that what they show does not depend on whether others follow.
FIRST = {TENSORFLOW: ["deque_of_activations", "tape_kept", "generators", "exceptions_kept"], TORCH: ["deque_of_activations", "module_hooks", "saved_tensors"]}
LATE = {TENSORFLOW: [*FIRST[TENSORFLOW], "graph_loop", "fit_with_callbacks"], TORCH: FIRST[TORCH]}
ALL = {file: list(dict.fromkeys(names)) for file, names in {TENSORFLOW: FIRST[TENSORFLOW] + EAGER + GRAPHS, TORCH: FIRST[TORCH] + programs("torch_loops.py")}.items()}


def differences(name, plain, recorded):
    """(step, current, peak), recorded less plain, of the steps where they differ."""
    assert len(plain) == len(recorded)
    rough = name in GRAPHS
    start = recorded[0][0] - plain[0][0] if rough else 0        # what others before have left
    steps = [(step, now[0] - was[0] - start, 0 if name in AT_REST else now[1] - was[1] - start)
             for step, (was, now) in enumerate(zip(plain, recorded)) if step or not rough]
    return [step for step in steps if max(map(abs, step[1:])) > (ROUGH if rough else 0)]


# Where threads free and allocate in another order, the allocator may hand out a chunk up to twice as large as was asked for, whole, and count all
# of it: plain runs differ by a tensor or two then. Something that recording keeps would be there in every run.
TRIES = 4


def check(name, compared, file, mode):
    """Equal to the byte; a program that computes in threads is equal to a plain run of its own in one of several tries."""
    seen = []
    for number in range(TRIES if name in GRAPHS else 1):
        plain, recorded = compared(file, mode, number)
        assert max(peak for _, peak in plain["counters"][name]) >= MIB
        seen.append(differences(name, plain["counters"][name], recorded["counters"][name]))
        if not seen[-1]:
            return
    assert not seen


def test_there_are_enough_programs():
    assert len(ALL[TENSORFLOW]) >= 20 and len(ALL[TORCH]) >= 10


@pytest.fixture
def interpreter(request):
    """By the programs' file."""
    return lambda file: request.getfixturevalue({TENSORFLOW: "newest_tensorflow", TORCH: "torch_python"}[file])


@pytest.fixture
def compared(measured, interpreter):
    """compared(file, mode) -> (plain, recorded), of one process each; another number gives other processes."""
    def call(file, mode, number=0):
        python, names = interpreter(file), (ALL if mode == "run" else LATE)[file]
        return measured(python, file, "plain", *ALL[file], number=number), measured(python, file, mode, *names, number=number)

    return call


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, names in ALL.items() for name in names])
def test_recorded(compared, file, name):
    check(name, compared, file, "run")


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, names in LATE.items() for name in names])
def test_attached_late(compared, file, name):
    check(name, compared, file, "attached")


@pytest.mark.parametrize("file", ALL)
def test_objects_go_when_the_program_drops_them(compared, file):
    """Tensors, layers, optimizers, tapes, functions, errors, and frames, identified by their locals."""
    plain, recorded = (each["alive"] for each in compared(file, "run"))
    assert len(plain["watched"]) > 20 and plain["watched"] == recorded["watched"]
    assert recorded["at once"] == plain["at once"]
    assert recorded["in the end"] == plain["in the end"] == []


@pytest.mark.parametrize("file", ALL)
def test_a_tensor_that_is_kept_is_found(compared, file):
    """The mistake that all of this is to find, made on purpose."""
    plain, holding = compared(file, "holding")
    for name in set(LATE[file]) - {"fit_with_callbacks"}:        # whose functions return only numbers
        found = differences(name, plain["counters"][name], holding["counters"][name])
        assert any(abs(current) >= MIB - ROUGH for _, current, _ in found), (name, found)


NOTEBOOK = ["deque_of_activations", "exceptions_kept", "generators"]
SETUP = f"""import sys; sys.path[:0] = [{str(HERE)!r}]
import json, counted, tensorflow_base, tensorflow_eager
%load_ext vramscope
said = {{}}

def measure():
    said.update((name, counted.run(name, tensorflow_base)) for name in {NOTEBOOK!r})

def fails():
    batch = tensorflow_base.tf.random.normal([512, 512])
    raise ValueError("on purpose")

def measure_error():
    counted.counters.clear()
    tensorflow_base.count()
    said["error in a cell"] = list(counted.counters)
"""


def run_notebook(folder, magic):
    """In a real kernel, with what IPython itself keeps of cells and errors."""
    folder.mkdir()
    cells = [SETUP, magic + "measure()", magic + "fails()", "measure_error()", "print(json.dumps(said))"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}}).execute()
    streams = [output["text"] for output in notebook.cells[-1].outputs if output.output_type == "stream"]
    assert streams, [output for cell in notebook.cells for output in cell.outputs]
    return json.loads(streams[-1])


def test_notebook(environment, tmp_path, monkeypatch, inject):
    for key, value in {**environment, "IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter")}.items():
        monkeypatch.setenv(key, value)
    plain, recorded = run_notebook(tmp_path / "plain", ""), run_notebook(tmp_path / "recorded", "%%vramscope -o out --no-chart\n")
    assert len(list((tmp_path / "recorded/out").glob("*.vram"))) == 2 and list(plain) == [*NOTEBOOK, "error in a cell"]
    for name in plain:
        assert not differences(name, plain[name], recorded[name]), name
