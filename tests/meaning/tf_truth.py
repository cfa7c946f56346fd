"""What each op's result is for, read from the graphs that TensorFlow ran."""
import collections

import score

# Hand on the block of their input as it is, or hold it in a list.
PASS = {"Identity", "IdentityN", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient", "Enter", "Exit", "NextIteration", "Merge",
        "Switch", "CheckNumerics", "Snapshot", "TensorListPushBack", "TensorListFromTensor", "TensorListSetItem", "Split", "SplitV", "Unpack",
        "Slice", "_Retval", "EnsureShape"}
# May compute in place: the result takes over the block of an input that nobody else reads.
IN_PLACE = {"Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Tanh", "Sigmoid", "Softplus", "Softmax", "LogSoftmax", "Add", "AddV2", "AddN", "Sub", "Mul",
            "RealDiv", "Div", "BiasAdd", "Maximum", "Minimum", "Square", "SquaredDifference", "Sqrt", "Rsqrt", "Exp", "Log", "Log1p", "Neg", "Abs",
            "Erf", "Pow", "Select", "SelectV2", "Cast", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "_FusedBatchNormEx", "MulNoNan",
            "DivNoNan", "ReluGrad", "Relu6Grad", "TanhGrad", "SigmoidGrad", "LeakyReluGrad", "RsqrtGrad", "Xlogy", "Expm1", "Reciprocal", "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits"}
# Read only the shape.
SHAPE = {"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "BroadcastGradientArgs", "ConcatOffset", "NoOp"}
INPUT = {"IteratorGetNext", "OptionalGetValue", "IteratorGetNextAsOptional"}
CONSTANT = {"Const", "_HostConst"}


def producer(text):
    return text.lstrip("^").partition(":")[0]


class Graph:
    def __init__(self, nodes, said):
        self.type = {name: kind for name, kind, _ in nodes}
        self.inputs = {name: [producer(i) for i in inputs if not i.startswith("^")] for name, _, inputs in nodes}
        self.readers = collections.defaultdict(list)
        for name, inputs in self.inputs.items():
            for made in inputs:
                self.readers[made].append(name)
        # What was there before an optimizer or a second tape is in their lists too: the last word counts.
        self.traced = {name: stage for stage in ("forward", "backward", "optimizer") for name in said["traced"][stage]}
        self.gradients = set(said["gradients_made_by"])
        self._stage = {}
        for name, _, _ in nodes:
            self.stage(name)

    def stage(self, name):
        """forward, backward or optimizer: as traced; what Grappler made stands where its inputs stand."""
        waiting = [name]
        while waiting:
            now = waiting[-1]
            if now in self._stage:
                waiting.pop()
                continue
            traced = self._traced_stage(now)
            missing = [] if traced else [i for i in self.inputs.get(now, ()) if i not in self._stage and i not in waiting]
            if missing:
                waiting += missing
                continue
            order = ("forward", "backward", "optimizer")
            made_by = [i for i in self.inputs.get(now, ()) if self.type.get(i) not in CONSTANT]      # constants are shared
            self._stage[now] = traced or max((self._stage.get(i, "forward") for i in made_by), key=order.index, default="forward")
            waiting.pop()
        return self._stage[name]

    def _traced_stage(self, name):
        *_, scope = names_inside(name)
        while scope:        # what a loop holds has its name in front
            if scope in self.traced:
                return self.traced[scope]
            scope = scope.rpartition("/")[0]
        return None

    def holders(self, name, in_place=True):
        """The ops whose result may lie in the block that this op made."""
        found, waiting, stage = {name}, [name], self.stage(name)
        while waiting:
            for reader in self.readers[waiting.pop()]:
                kind = self.type[reader]
                if reader not in found and (kind in PASS or (in_place and kind in IN_PLACE and self.stage(reader) == stage)):
                    found.add(reader)
                    waiting.append(reader)
        return found

    def _makes_gradient(self, holders):
        return any(inner in self.gradients for holder in holders for inner in names_inside(holder))

    def meaning(self, name):
        kind, stage = self.type[name], self.stage(name)
        if kind in CONSTANT:
            return ("constants",)
        if kind in INPUT:
            return ("inputs",)
        holders = self.holders(name)
        if stage == "forward":
            read = any(self.stage(r) == "backward" and self.type[r] not in SHAPE for h in holders if self.stage(h) == "forward"
                       for r in self.readers[h])
            return ("activations",) if read else score.SCRATCH
        if stage == "backward":
            if self._makes_gradient(self.holders(name, in_place=False)):
                return ("gradients",)
            # What a later op may turn into a gradient in place is on its way to it.
            return ("activation gradients", "gradients") if self._makes_gradient(holders) else ("activation gradients",)
        return score.SCRATCH


def names_inside(name):
    """The name, and the names that it had in the functions that were put in place of their calls."""
    parts = name.split("/")
    yield name
    for i, part in enumerate(parts[:-1]):
        if part.startswith(("StatefulPartitionedCall", "PartitionedCall")):
            yield "/".join(parts[i + 1:])


def accepted(said):
    # Ops that run outside of functions have graphs of one op.
    traced = {name for names in said["traced"].values() for name in names}
    graphs = [Graph(nodes, said) for nodes in said["graphs"] if any(inner in traced for name, _, _ in nodes for inner in names_inside(name))]
    eager = not said["traced"]["backward"]
    known = {}

    def meaning(op):
        if op not in known:
            known[op] = next((g.meaning(op) for g in graphs if op in g.type), None)
        return known[op]

    def of_block(truth, birth, death, event):
        claimed = truth.claimed(birth)
        if not event["op"] and claimed not in score.VARIABLES:
            return ("inputs",)              # these programs have nothing else without an op; a tape keeps batches too
        if claimed in score.VARIABLES and meaning(event["op"]) == ("constants",):
            return (claimed, "constants")   # assigned to a variable, which shares its block until the next assignment
        if claimed is not None and not (claimed in score.VARIABLES and truth.changes(birth, death)):
            return (claimed,)
        if claimed is not None:     # an update is under way: of the old and of the new value one is the variable
            return (claimed, *score.SCRATCH, *(meaning(event["op"]) or ()))
        if "__cf__" in event["op"]:         # the runtime's own name for a constant that it computed when it built the graph
            return ("constants",)
        if event["region"] == "temp":       # some kernels (Einsum, Mean) hand their scratch out as the result
            return (*score.SCRATCH, *((meaning(event["op"]) or ()) if not eager else ()))
        if not event["region"] and event["op"]:
            return score.SCRATCH
        if not eager:
            return meaning(event["op"]) or ()
        return score.accepted_in_windows(truth, birth, death)

    return of_block
