"""Runs inside one Python: compares the stack walker with what this Python says about its own frames.

    python compare.py LIBRARY [CASE]

Exits with 0 if everything is equal, else with a message. Plain unittest-free code so that it runs in every Python from 3.9 on.
"""
import ctypes
import os
import random
import sys
import threading
import time
import traceback


class Labels(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("layer", ctypes.c_uint32), ("op", ctypes.c_uint32), ("phase", ctypes.c_uint32),
                ("has_frames", ctypes.c_uint32)]


def load(path):
    """Twice the same library: calls through CDLL release the interpreter lock, calls through PyDLL keep it."""
    both = ctypes.CDLL(path), ctypes.PyDLL(path)
    for probe in both:
        probe.probe_capture.restype = ctypes.c_uint64
        probe.probe_capture_many.restype = ctypes.c_uint64
        probe.probe_frame.restype = ctypes.c_uint64
        for name in ("probe_said", "probe_text"):
            getattr(probe, name).restype = ctypes.c_char_p
    return both


FREE, HELD = load(sys.argv[1])


def frames_of(stack_id):
    size = FREE.probe_stack_size(ctypes.c_uint64(stack_id))
    assert size >= 0, f"stack {stack_id:x} was never defined"
    out = []
    function, file = ctypes.c_char_p(), ctypes.c_char_p()
    line, first = ctypes.c_int(), ctypes.c_int()
    for i in range(size):
        FREE.probe_frame(ctypes.c_uint64(stack_id), i, ctypes.byref(function), ctypes.byref(file), ctypes.byref(line),
                         ctypes.byref(first))
        out.append((file.value.decode(), line.value, function.value.decode(), first.value))
    return out


def expected(frame):
    """What traceback.extract_stack() says, innermost first, with the qualified name where code objects have one."""
    said = traceback.extract_stack(frame)
    out = []
    for summary in reversed(said):
        code = frame.f_code
        assert (summary.filename, summary.name) == (code.co_filename, code.co_name)
        out.append((summary.filename, summary.lineno, getattr(code, "co_qualname", code.co_name), code.co_firstlineno))
        frame = frame.f_back
    return out


checked = 0


def check(probe):
    global checked
    # Both on one line: the line number of this frame is the same for both.
    stack_id, here = probe.probe_capture(), expected(sys._getframe())
    found = frames_of(stack_id)
    if found != here:
        print("walker:", *found[:6], sep="\n  ")
        print("python:", *here[:6], sep="\n  ")
        raise SystemExit("the stacks differ")
    checked += 1


# --- many ways to get to a place ------------------------------------------------------------------------------------------------

def plain(go, depth):
    return go(depth - 1)


def multi_line(go, depth):
    value = (
        1,
        go(depth - 1),
    )
    return value


def with_try(go, depth):
    try:
        raise KeyError(depth)
    except KeyError:
        return go(depth - 1)
    finally:
        depth += 1


def generator(go, depth):
    def inner():
        yield 1
        yield go(depth - 1)
    return list(inner())


def comprehension(go, depth):
    return [go(depth - 1)
            for _ in range(1)]


def closure(go, depth):
    def inner():
        return go(depth - 1)
    return inner()


class Thing:
    def method(self, go, depth):
        return go(depth - 1)

    def __getattr__(self, name):
        go, depth = self.__dict__["want"]
        return go(depth - 1)

    def __len__(self):
        go, depth = self.__dict__["want"]
        go(depth - 1)
        return 3


def method(go, depth):
    return Thing().method(go, depth)


def attribute(go, depth):
    thing = Thing()
    thing.__dict__["want"] = go, depth
    return thing.missing


def through_c(go, depth):
    thing = Thing()
    thing.__dict__["want"] = go, depth
    return len(thing)


def by_key(go, depth):
    return sorted([depth - 1], key=go)


def compiled(go, depth):
    line = random.randrange(1, 40)
    space = {"go": go, "depth": depth}
    exec(compile("\n" * line + "x = go(depth - 1)\n", f"<text ü {line}>", "exec"), space)


def unicode_name(go, depth):
    def größe_宽():
        return go(depth - 1)
    return größe_宽()


def coroutine(go, depth):
    async def inner():
        return go(depth - 1)

    async def outer():
        return await inner()
    try:
        outer().send(None)
    except StopIteration:
        pass


WAYS = [plain, multi_line, with_try, generator, comprehension, closure, method, attribute, through_c, by_key, compiled, unicode_name,
        coroutine]


def roam(random_numbers, probe):
    def go(depth):
        if depth <= 0:
            check(probe)
            return 0
        return random_numbers.choice(WAYS)(go, depth)
    go(random_numbers.randrange(1, 12))


def case_equal():
    numbers = random.Random(7)
    for i in range(2500):
        roam(numbers, FREE if i % 2 else HELD)


def case_threads():
    """Four threads at once, the lock released: each must see its own frames only."""
    failures = []

    def work(seed):
        try:
            numbers = random.Random(seed)
            for _ in range(2000):
                roam(numbers, FREE)
        except BaseException as error:   # SystemExit of check() too
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(failures[0])


def case_deep():
    """Deeper than a stack record is long: the outer frames are counted, not lost silently."""
    def down(depth):
        if depth:
            return down(depth - 1)
        stack_id, here = FREE.probe_capture(), expected(sys._getframe())
        found = frames_of(stack_id)
        assert found == here[:len(found)], "the inner frames differ"
        assert len(found) + FREE.probe_truncated(ctypes.c_uint64(stack_id)) == len(here)
    down(700)


def case_reused_code():
    """New code objects at the addresses of dead ones must not be mistaken for them."""
    import gc
    seen = set()
    reused = 0
    for i in range(3000):
        space = {"check": check, "FREE": FREE}
        text = "def f_%d():\n%s    return check(FREE)\n" % (i % 977, "\n" * (i % 13))
        exec(compile(text, f"<generated {i % 31}>", "exec"), space)
        address = id(space["f_%d" % (i % 977)].__code__)
        reused += address in seen
        seen.add(address)
        space["f_%d" % (i % 977)]()
        del space
        if i % 50 == 0:
            gc.collect()
    assert reused > 100, f"only {reused} code addresses came back: the test proves nothing"


def case_foreign_layout():
    """Wrong layouts are refused, and even if one were believed nothing crashes."""
    numbers = random.Random(3)
    accepted = 0
    FREE.probe_capture()
    for i in range(6000):
        noise = [0xffff] * 10
        for field in numbers.sample(range(10), numbers.randrange(1, 10)):
            noise[field] = numbers.choice([numbers.randrange(0, 120, 8), numbers.randrange(0, 400, 4), numbers.randrange(0, 2000)])
        array = (ctypes.c_uint16 * 10)(*noise)
        result = FREE.probe_foreign_layout(array, 10, i % 2)
        assert result >= 0
        accepted += result
    assert accepted < 600, f"{accepted} of 6000 foreign layouts were believed"
    same = (ctypes.c_uint16 * 10)(*[0xffff] * 10)
    assert FREE.probe_foreign_layout(same, 10, 0) == 1, "the right layout is refused"
    assert b"frame" in FREE.probe_said(), "nothing was said about it"


def described(frame):
    codes, lines = [], []
    while frame is not None:
        codes.append(id(frame.f_code))
        lines.append(frame.f_lineno or 0)
        frame = frame.f_back
    return (ctypes.c_uint64 * len(codes))(*codes), (ctypes.c_uint32 * len(lines))(*lines), ctypes.c_size_t(len(codes))


def case_verify():
    assert FREE.probe_verify(*described(sys._getframe())) == 1, FREE.probe_said()
    codes, lines, count = described(sys._getframe())
    codes[1] = id(case_deep.__code__)
    assert FREE.probe_verify(codes, lines, count) == 0
    assert FREE.probe_capture() == 0, "still on after a failed verification"
    assert FREE.probe_said() != b""


class Layer:
    def __init__(self, inner=None):
        self.inner = inner

    def __call__(self):
        return self.inner() if self.inner is not None else labels()

    def in_cell(self):
        def inner():
            return self
        return self.inner() if self.inner is not None else (labels(), inner)[0]


def labels():
    out = Labels()
    FREE.probe_snapshot(ctypes.byref(out))
    return FREE.probe_text(out.layer).decode(), FREE.probe_text(out.op).decode(), out.phase, out.id


def backward(go):
    return go()


def again(go):
    return go()


def self_slot(code):
    if "self" in code.co_cellvars and sys.version_info < (3, 11):
        return code.co_nlocals + code.co_cellvars.index("self")
    return 0


def case_labels():
    layer_call, phase, recompute, op = 1, 2, 3, 4
    forward_phase, backward_phase = 2, 3
    assert FREE.probe_watch(ctypes.c_uint64(id(Layer.__call__.__code__)), layer_call, 0, 0, 0, b"") == 1
    cell_code = Layer.in_cell.__code__
    assert FREE.probe_watch(ctypes.c_uint64(id(cell_code)), layer_call, 0, self_slot(cell_code), 1, b"") == 1
    assert FREE.probe_watch(ctypes.c_uint64(id(backward.__code__)), phase, backward_phase, 0, 0, b"") == 1
    assert FREE.probe_watch(ctypes.c_uint64(id(again.__code__)), recompute, 0, 0, 0, b"recomputation") == 1
    inner, other = Layer(), Layer()
    outer = Layer(inner)
    assert inner()[:3] == ("", "", forward_phase)
    for layer, name in ((inner, b"outer.inner/Layer"), (outer, b"outer/Layer"), (other, b"other/Layer")):
        FREE.probe_name_object(ctypes.c_uint64(id(layer)), name)
    in_inner = ("outer.inner/Layer", "outer.inner/Layer", forward_phase)
    in_other = ("other/Layer", "other/Layer", forward_phase)
    for _ in range(3):
        assert outer()[:3] == in_inner
        assert other()[:3] == other.in_cell()[:3] == in_other
        assert backward(labels)[:3] == ("", "", backward_phase)
        assert backward(lambda: again(outer))[:3] == ("outer.inner/Layer", "outer.inner/recomputation", backward_phase)
        assert backward(other)[:3] == in_other   # the innermost counts
    results = [layer()[3] for layer in (inner, other)]
    assert results[0] == results[1] != 0, "the layer must not change the stack's id"
    definitions = FREE.probe_definitions()
    FREE.probe_new_spool()
    assert outer()[:3] == in_inner
    assert FREE.probe_definitions() > definitions, "nothing was defined in the new spool"


def case_native():
    """Frame pointers and unwind tables against glibc's backtrace(), in a library that has frame pointers."""
    def arrays():
        return [(ctypes.c_uint64 * 64)() for _ in range(3)], (ctypes.c_int * 3)()
    for depth in (0, 1, 5, 30):
        (frames, tables, glibc), counts = arrays()
        FREE.probe_native(depth, frames, tables, glibc, 64, counts)
        n_frames, n_tables, n_glibc = counts
        # Frames of the probe library itself are left out at the inner end: probe_native and its recursion.
        by_glibc = list(glibc[:n_glibc])[depth + 1:]
        assert list(tables[:n_tables])[:len(by_glibc)] == by_glibc[:n_tables], "unwind tables differ from backtrace()"
        assert n_tables >= min(len(by_glibc), 64 - depth - 1) > 5
        assert n_frames >= 1 and frames[0] == by_glibc[0], "the first frame outside the library differs"


def case_speed():
    """Prints the cost of one capture of 30 Python frames; the budget is checked by bench/."""
    def down(depth):
        if depth:
            return down(depth - 1)
        FREE.probe_capture_many(1000)
        best = min(timed() for _ in range(20))
        print(f"{best * 1e9:.0f} ns for {len(expected(sys._getframe()))} frames")

    def timed():
        start = time.perf_counter()
        FREE.probe_capture_many(20000)
        return (time.perf_counter() - start) / 20000
    down(30 - 5)


def case_fork():
    """A child defines everything anew in its own spool (it sees that by the recorder's generation)."""
    here = FREE.probe_capture()
    before = FREE.probe_definitions()
    for _ in range(10):
        FREE.probe_capture_many(10)
    after = FREE.probe_definitions()
    assert after <= before + 2, "stacks already seen are defined again"
    FREE.probe_new_spool()
    FREE.probe_capture()
    assert FREE.probe_definitions() > after + 1
    assert here != 0


def main():
    FREE.probe_mode(1, 0, 0)
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    cases[sys.argv[2]]()
    print(f"{os.path.basename(sys.executable)} {sys.version.split()[0]} {sys.argv[2]}: {checked} stacks equal")


main()
