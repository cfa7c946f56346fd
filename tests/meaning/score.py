"""Compares the category of every block at the steady peak with what the program claimed about it: a confusion matrix in bytes."""
import bisect
import collections
import json
import subprocess

# A block may be claimed for several things during its life; the first of these counts.
PRECEDENCE = ("parameters", "buffers", "optimizer state", "inputs", "gradients", "activations", "activation gradients")
VARIABLES = PRECEDENCE[:3]
SCRATCH = ("temporaries", "workspace")


class Truth:
    """What the claims say, by place of birth: the index of an allocation in the list of events."""

    def __init__(self, events, said):
        self.events, self.said = events, said
        self._places, self._found = {}, {}
        claims = collections.defaultdict(list)
        for mark, address, category in said["claims"]:
            claims[mark].append((address, category))
        live, addresses, self.at = {}, [], 0
        for place, event in enumerate(events):
            kind = event["event"]
            if kind == "alloc":
                if event["address"] not in live:
                    bisect.insort(addresses, event["address"])
                live[event["address"]] = place
            elif kind == "free" and event["address"] in live:
                del live[event["address"]]
                del addresses[bisect.bisect_left(addresses, event["address"])]
            elif kind == "mark" and event["name"] == "oracle":
                self._places[event["number"]] = place
                for address, category in claims.get(event["number"], ()):
                    at = bisect.bisect_right(addresses, address) - 1
                    if at >= 0 and address < addresses[at] + events[live[addresses[at]]]["granted"]:
                        self._claim(live[addresses[at]], category)
        self._looks = sorted({self._places[mark] for mark, _, category in said["claims"] if category in VARIABLES})
        self.windows = sorted((self._places[begin], self._places[end], name) for name, begin, end in said["windows"])

    def _claim(self, birth, category):
        old = self._found.get(birth)
        if old is None or PRECEDENCE.index(category) < PRECEDENCE.index(old):
            self._found[birth] = category

    def claimed(self, birth):
        return self._found.get(birth)

    def changes(self, birth, death):
        """Born since the claims before the moment that is looked at, or gone before those after it."""
        at = bisect.bisect_left(self._looks, self.at)
        return birth > (self._looks[at - 1] if at else 0) or (at < len(self._looks) and death < self._looks[at])

    def window_of(self, place):
        at = bisect.bisect_right(self.windows, (place, float("inf"), "")) - 1
        return self.windows[at] if at >= 0 and place < self.windows[at][1] else None

    def backward_after(self, place):
        return next((begin for begin, _, name in self.windows if name == "backward" and begin > place), None)


def accepted(truth, birth, death, event):
    """The categories that are right for a block. Nothing: nobody claimed anything about it."""
    claimed = truth.claimed(birth)
    return (claimed,) if claimed is not None else accepted_in_windows(truth, birth, death)


def accepted_in_windows(truth, birth, death):
    """For a block that is neither saved nor handed on nor anybody's state."""
    window = truth.window_of(birth)
    if window is None:
        return ()
    if window[2] == "forward":
        # Where the program holds it all the same, it is what the forward pass made.
        begin = truth.backward_after(birth)
        return ("temporaries", "activations", "workspace") if begin is not None and death > begin else SCRATCH
    return SCRATCH


def events_of(vramscope, trace):
    text = subprocess.check_output([vramscope, "dump", "--jsonl", trace], text=True, errors="surrogateescape")
    return [json.loads(line) for line in text.splitlines()]


def live_blocks(vramscope, trace, at="steady"):
    return json.loads(subprocess.check_output([vramscope, "peak", "--json", "--at", at, "--by", "block", "-n", "0", trace]))


def score(vramscope, trace, said, accepted=accepted):
    """{(truth, what was said): bytes}; truth "" where nobody knows. And the blocks that are wrong, largest first."""
    events = events_of(vramscope, trace)
    truth = Truth(events, said)
    answer = live_blocks(vramscope, trace)
    truth.at = answer["at"]
    births = {}
    for place, event in enumerate(events[:answer["at"]]):
        if event["event"] == "alloc":
            births[event["address"]] = place
    deaths = {}
    for place, event in enumerate(events[answer["at"]:], answer["at"]):
        if event["event"] in ("free", "alloc"):
            deaths.setdefault(event["address"], place)
    matrix, wrong = collections.Counter(), []
    for block in answer["blocks"]:
        birth = births[block["address"]]
        right = accepted(truth, birth, deaths.get(block["address"], len(events)), events[birth])
        said_as = block["category"]
        meant = said_as if said_as in right else right[0] if right else ""
        matrix[meant, said_as] += block["granted"]
        if right and said_as not in right:
            wrong.append((block["granted"], right[0], said_as, block["known"], block["phase"], block["op"], block["region"]))
    return matrix, sorted(wrong, reverse=True)


def share_right(matrix):
    judged = sum(size for (truth, _), size in matrix.items() if truth)
    return sum(size for (truth, said), size in matrix.items() if truth == said) / judged if judged else 0.0


def share_judged(matrix):
    return sum(size for (truth, _), size in matrix.items() if truth) / max(1, sum(matrix.values()))


def as_text(matrix):
    """The matrix as a table in KiB: a row for each truth, a column for each word that was said."""
    said = sorted({s for _, s in matrix})
    rows = [f"{'KiB: truth, then said':22}" + "".join(f"{s[:12]:>13}" for s in said)]
    for truth in sorted({t for t, _ in matrix}):
        rows.append(f"{truth or '(nobody knows)':22}" + "".join(f"{matrix[truth, s] / 1024:13,.0f}" for s in said))
    return "\n".join(rows)


def as_recorded(vramscope, folder, claims, output, accepted_for):
    """{program: (matrix, wrong blocks, what cannot be)} of a recording of `run_each`, which printed `output`; accepted_for(name, what it said) as
    `accepted`."""
    result = {}
    for line in map(json.loads, (text for text in output.splitlines() if text.startswith("{"))):
        name = line["name"]
        assert line["code"] == 0, f"{name} ended with {line['code']}"
        trace, = folder.glob(f"*-{line['pid']}-*.vram")
        said = json.loads((claims / f"{name}.json").read_text())
        broken = broken_sums(name, said, sums_of(vramscope, trace))
        if "graphs" not in said:        # TensorFlow's executor runs the ops of a step in another order each time
            # The steady peak may be in one of the first three steps, at the end of which all variables are reported.
            broken += broken_sums(f"{name}, step 5", said, sums_of(vramscope, trace, "step:5")) + unsteady(vramscope, name, trace)
        result[name] = *score(vramscope, trace, said, accepted_for(name, said)), broken
    return result


def sums_of(vramscope, trace, at="steady"):
    """{category: bytes that were asked for}"""
    sums = collections.Counter()
    for block in live_blocks(vramscope, trace, at)["blocks"]:
        sums[block["category"]] += block["requested"]
    return sums


def broken_sums(name, said, sums):
    """What cannot be, by the program's own sums: variables that are too few or too many, gradients that are larger than the parameters."""
    report = []
    for category in VARIABLES:
        known = said.get(category)
        if known is not None and not 0.98 * known <= sums[category] <= 1.02 * known + 4096:
            report.append(f"{name}: {sums[category]:,} bytes are {category}, the program has {known:,}")
    if sums["gradients"] > 1.02 * said["parameters"] + 4096:
        report.append(f"{name}: {sums['gradients']:,} bytes are gradients of {said['parameters']:,} bytes of parameters")
    return report


def unsteady(vramscope, name, trace):
    """Each step of a steady state has the same bytes in the same categories."""
    steps = [sums_of(vramscope, trace, f"step:{number}") for number in (5, 6, 7)]
    return [] if steps[0] == steps[1] == steps[2] else [f"{name}: steps 5 to 7 differ: {steps}"]


def too_low(results, least, at_least):
    """A line for each program in which less than `least` is right, less than nine tenths are judged or something cannot be, and one for all if less than
    `at_least` is right."""
    report, overall = [], collections.Counter()
    for name, (matrix, wrong, broken) in results.items():
        overall += matrix
        report += broken
        if share_judged(matrix) < 0.9:
            report.append(f"{name}: the oracle knows {share_judged(matrix):.1%} only")
        if share_right(matrix) < least:
            report += [f"{name}: {share_right(matrix):.1%} right", *map(str, wrong[:20])]
    if share_right(overall) < at_least:
        report.append(f"all: {share_right(overall):.1%} right")
    return report
