"""The rows of callbacks, where peaks are reset between them, against TensorFlow's own counters."""
import pytest

LOOP = """
import json, sys
import tensorflow as tf
from vramscope._rows import MemoryRows

rows = MemoryRows("CPU:0", target_batches=[1, 3], reset=sys.argv[1])
readings = []                               # phase, batch, the most that TensorFlow had while that ran
running = []

def span(phase, batch, inside):
    rows.read(phase, 1, batch, "begin")
    running.append(0)
    inside()
    rows.read(phase, 1, batch, "end")
    readings.append((phase, batch, running.pop()))

def use(mib):
    kept = tf.zeros([mib, 1 << 18])
    running[:] = [max(tf.config.experimental.get_memory_info("CPU:0")["current"], before) for before in running]

def epoch():
    for batch, mib in enumerate([40, 200, 20, 10], 1):
        span("train", batch, lambda: use(mib))
    span("evaluate", None, lambda: use(30))

use(300)
try:
    span("train", None, lambda: 1 / 0)  # a training that failed
except ZeroDivisionError:
    pass
rows.rows.clear(), readings.clear(), running.clear()
span("train", None, epoch)
print(json.dumps([[(row.phase, row.batch, row.peak) for row in rows.rows if row.at == "end"],
                  [one for one in readings if one[1] in (1, 3, None)]]))
"""


@pytest.mark.parametrize("reset", ["batch", "epoch"])
def test_a_reset_inside_a_span_does_not_hide_its_peak(run_python, python, reset):
    ours, theirs = run_python(python, LOOP, arguments=[reset]).answer
    assert [row[:2] for row in ours] == [row[:2] for row in theirs] == [["train", 1], ["train", 3], ["evaluate", None], ["train", None]]
    # What an op uses besides its output for a moment is in our peaks alone.
    matching = [0 <= our[2] - their[2] <= 4096 for our, their in zip(ours, theirs) if reset == "batch" or our[1] is None]
    assert all(matching) and len(matching) == (4 if reset == "batch" else 2), (ours, theirs)


def test_wrong_choices_are_refused():
    from vramscope._rows import MemoryRows
    for wrong in ({"reset": "sometimes"}, {"target_batches": "most"}, {"target_batches": 3}, {"devices": "toaster"}, {"devices": ["CPU:0", 3]}):
        with pytest.raises(ValueError, match=next(iter(wrong)).rstrip("s")):
            MemoryRows(**wrong)
    with pytest.raises(ValueError, match="'begin' or 'end'"):
        MemoryRows("CPU:0").read("train", 1, None, "middle")


def test_time_per_step_leaves_out_tracing_and_pauses(monkeypatch):
    from vramscope import _rows
    now = iter([10.0, 10.5, 11.0, 90.0, 90.25, 95.0])
    monkeypatch.setattr(_rows.time, "perf_counter", lambda: next(now))
    pace = _rows.Pace()
    pace.epoch_begins()
    pace.batch_ended(0)                         # which traced
    assert pace.seconds is None
    pace.batch_ended(1)
    pace.batch_ended(3)                         # steps_per_execution
    assert pace.seconds == 1.0 / 3
    pace.epoch_begins()                         # after an evaluation
    pace.batch_ended(1)
    pace.batch_ended(2)
    assert pace.seconds == 0.25
    pace.epoch_begins()
    pace.batch_ended(0)                         # an epoch of one batch
    assert pace.seconds == 0.25
