"""What the blocks of a program that XLA compiled are for: variables by address, and the temporaries by the size that XLA planned for them."""
import re

import score

# "allocation 61: size 9008708, preallocated-temp:", as XLA writes its plans.
_TEMPORARIES = re.compile(r"^allocation \d+: size (\d+), preallocated-temp", re.MULTILINE)


def planned_sizes(folder):
    """Of the blocks for temporaries in all plans below a folder."""
    return {int(size) for plan in folder.rglob("*buffer-assignment.txt") for size in _TEMPORARIES.findall(plan.read_text())}


def accepted(folder):
    sizes = planned_sizes(folder)
    assert sizes, "XLA wrote no plan with temporaries"

    def of_block(truth, birth, death, event):
        claimed = truth.claimed(birth)
        if claimed in score.VARIABLES:      # the old and the new value of a variable that is being updated
            return (claimed, *score.SCRATCH, "XLA temporaries") if truth.changes(birth, death) else (claimed,)
        if not event["op"] and event["requested"] in sizes:
            return ("XLA temporaries",)
        # Apart from scalars, these programs have nothing else without an op.
        return ("inputs",) if not event["op"] and event["requested"] >= 4096 else ()

    return of_block
