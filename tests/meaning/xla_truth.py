"""What the blocks of a program that XLA compiled are for: variables by address, and the temporaries by the size that XLA planned for them."""
import re

import score

# "allocation 61: size 9008708, preallocated-temp:", as XLA writes its plans.
_TEMPORARIES = re.compile(r"^allocation \d+: size (\d+), preallocated-temp", re.MULTILINE)
_RESULTS = re.compile(r"^allocation \d+: size (\d+), .*maybe-live-out", re.MULTILINE)


def planned_sizes(folders, kind=_TEMPORARIES):
    """Of the blocks for temporaries, or for results, in all plans in the folders."""
    return {int(size) for folder in folders for plan in folder.rglob("*buffer-assignment.txt") for size in kind.findall(plan.read_text())}


def accepted(folders):
    sizes, results = planned_sizes(folders), planned_sizes(folders, _RESULTS)
    assert sizes, "XLA wrote no plan with temporaries"

    def of_block(truth, birth, death, event):
        claimed = truth.claimed(birth)
        if claimed in score.VARIABLES:      # the old and the new value of a variable that is being updated
            return (claimed, *score.SCRATCH, "XLA temporaries") if truth.changes(birth, death) else (claimed,)
        if not event["op"] and event["requested"] in sizes:
            return ("XLA temporaries",)
        if event["device"] >= 0 and not event["op"]:      # there, batches are copied by an op; a result is an executable's until a variable takes it
            return ("XLA temporaries", *score.SCRATCH) if event["requested"] in results else ()
        # Apart from scalars, these programs have nothing else without an op.
        return ("inputs",) if not event["op"] and event["requested"] >= 4096 else ()

    return of_block
