"""A number read while something runs is the one of that moment: inside a function, from a second thread, from a second session."""
import json
import subprocess

IN_A_FUNCTION = """
import json
import tensorflow as tf
import vramscope.tf as vtf

weights = tf.Variable(tf.random.normal([300, 300]))

@tf.function
def step(x):
    y = tf.matmul(x, weights)
    with tf.control_dependencies([y]):
        middle = vtf.bytes_in_use(name="in_the_middle")
    with tf.control_dependencies([middle]):
        z = tf.matmul(y, weights) + y
    with tf.control_dependencies([z]):
        late = vtf.bytes_in_use(name="late")
    with tf.control_dependencies([late]):
        return tf.reduce_sum(z), middle, late

values = []
for rows in range(100, 140):
    _, middle, late = step(tf.random.normal([rows, 300]))
    values += [int(middle), int(late)]
print(json.dumps(values))
"""


def test_an_op_in_a_function_equals_the_recorded_total_at_its_own_sequence_number(record_python, each_python, vramscope):
    trace, out = record_python(each_python, IN_A_FUNCTION)
    said = json.loads(out.splitlines()[-1])
    lines = subprocess.check_output([vramscope, "dump", "--jsonl", *trace.glob("*.vram")], text=True, errors="surrogateescape")
    live, total, recorded = {}, 0, []
    for event in map(json.loads, lines.splitlines()):
        if event["event"] == "alloc" and event["pool"] == "bfc_cpu_allocator_for_gpu":
            live[event["address"]] = event["granted"]
            total += event["granted"]
            if event["op"].endswith(("in_the_middle", "late")):
                recorded.append(total)                  # with its own output, which is allocated before it reads
        elif event["event"] == "free" and event["pool"] == "bfc_cpu_allocator_for_gpu":
            total -= live.pop(event["address"])
    assert len(said) == 80 and recorded == said


WHILE_A_STEP_RUNS = """
import json, threading
import tensorflow as tf
import vramscope, vramscope.tf as vtf

v1 = tf.compat.v1
inside, go_on = threading.Event(), threading.Event()

def wait():
    inside.set()
    go_on.wait(60)
    return 0.0

step, reading = tf.Graph(), tf.Graph()
with step.as_default():
    block = tf.random.uniform([1024, 1024])
    with tf.control_dependencies([block]):
        waited = tf.numpy_function(wait, [], tf.double)
    with tf.control_dependencies([waited]):
        result = tf.reduce_sum(block)
with reading.as_default():
    used = vtf.bytes_in_use()

def read():
    info = tf.config.experimental.get_memory_info("CPU:0")["current"]
    seen = []
    other = threading.Thread(target=lambda: seen.append(vramscope.memory_info("CPU:0").current))
    other.start(); other.join()
    return [info, seen[0], int(second.run(used))]

tf.zeros([1])
with v1.Session(graph=step) as first, v1.Session(graph=reading) as second:
    second.run(used)
    go_on.set(); first.run(result); go_on.clear(); inside.clear()       # everything that stays is there now
    before = read()
    runner = threading.Thread(target=lambda: first.run(result))
    runner.start()
    assert inside.wait(60)
    during = read()
    go_on.set(); runner.join()
    after = read()
print(json.dumps({"before": before, "during": during, "after": after}))
"""


def test_a_second_thread_and_a_second_session_read_while_a_step_runs(run_python, each_python):
    answer = run_python(each_python, WHILE_A_STEP_RUNS).answer
    for info, thread, session in answer.values():
        assert thread == info and session == info + 256                 # the op's own output is in it
    assert answer["during"][0] - answer["before"][0] in range(4 << 20, (4 << 20) + 4096)
    assert answer["after"] == answer["before"]
