"""Cost of a recorded TensorFlow event, on a stand-in allocator."""
import re

from measure.tree import Measured

NAMES = ["tf_event_ns", "tf_event_first_ns", "tf_free_ns", "tf_pair_instructions"]
ROUNDS = 5
PAIRS = 400_000
FEW_NAMES = 256
NEW_NAMES = 20_000


def instructions(tree, pairs, environment=None):
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    said = tree.events(pairs, FEW_NAMES, environment, prefix=valgrind)[1]
    return int(re.search(r"Collected : (\d+)", said).group(1))


def pair_instructions(tree, few=2_560, many=12_800):
    """Of the recorder alone, for an allocation and its free, when all names are known: set-up is in both runs and cancels out."""
    with tree.preloaded() as environment:
        recorded = instructions(tree, many, environment) - instructions(tree, few, environment)
    plain = instructions(tree, many) - instructions(tree, few)
    return (recorded - plain) / (many - few)


def measure(tree):
    plain, recorded, first_plain, first = [], [], [], []
    with tree.preloaded() as environment:
        for _ in range(ROUNDS):
            plain.append(tree.events(PAIRS, FEW_NAMES)[0])
            recorded.append(tree.events(PAIRS, FEW_NAMES, environment)[0])
            first_plain.append(tree.events(NEW_NAMES, NEW_NAMES)[0])
            first.append(tree.events(NEW_NAMES, NEW_NAMES, environment)[0])

    def fastest(runs, key):
        return min(run[key] for run in runs)

    def cost(key):
        return Measured(fastest(recorded, key) - fastest(plain, key))

    return {
        "tf_event_ns": cost("alloc_ns"),
        "tf_free_ns": cost("free_ns"),
        # Names are new only once in a process, so this is the fastest batch of one pass over all of them.
        "tf_event_first_ns": Measured(fastest(first, "alloc_ns") - fastest(first_plain, "alloc_ns")),
        "tf_pair_instructions": Measured(pair_instructions(tree)),
    }
