"""What TensorFlow itself keeps its memory for.

Graph mode: the graph as the executor runs it (after Grappler), and which of its ops were traced by a tape's gradient() or by an optimizer. What
forward ops make and backward ops read is an activation; `tf_truth.py` reads that.
Eager mode: what the tape kept is what it hands to the function that differentiates an op.
Variables: by address, after each step.
"""
import ctypes

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, context
from tensorflow.python.framework import ops

from claims import Claims


def address_on_device(tensor):
    """DLPack hands tensors to other frameworks as they are. The address is the first member of what its capsule holds."""
    capsule = tf.experimental.dlpack.to_dlpack(tensor)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p.from_address(get(capsule, b"dltensor")).value or 0


def address(tensor):
    """Of an eager tensor. In host memory, NumPy can look at it without a copy."""
    try:
        if "GPU" in getattr(tensor, "device", ""):
            return address_on_device(tensor)
        return tensor._numpy_internal().ctypes.data if hasattr(tensor, "_numpy_internal") else 0
    except Exception:  # noqa: BLE001 - a resource, a string
        return 0


def address_of(variable):
    return address(tf.convert_to_tensor(variable))      # shares the variable's block


def flat(values):
    return [getattr(value, "values", value) for value in tf.nest.flatten(values) if value is not None]


class Oracle(Claims):
    """Made before the model; from then on tapes and optimizers are watched."""

    def __init__(self):
        super().__init__()
        self.traced = {"forward": [], "backward": [], "optimizer": []}     # names of the ops
        self.gradients = []                                 # names of the ops that make the gradient of a variable
        context.context().enable_graph_collection()
        self._watch_tapes()
        self._watch_optimizers()

    def _watch(self, window, call, then=None):
        """Calls, and notes what it traces, or the window in eager mode."""
        if tf.executing_eagerly():
            with self.window(window):
                result = call()
        else:
            graph = ops.get_default_graph()
            before = len(graph.get_operations())
            result = call()
            names = [op.name for op in graph.get_operations()]
            self.traced["forward"] += names[:before]
            self.traced[window] += names[before:]
        if then is not None:
            then(result)
        return result

    def _watch_tapes(self):
        taken, differentiate = backprop.GradientTape.gradient, backprop._gradient_function

        def gradient(tape, target, sources, *args, **kwargs):
            return self._watch("backward", lambda: taken(tape, target, sources, *args, **kwargs), self._took)

        def differentiated(*args):
            eager = tf.executing_eagerly()
            if eager:
                inputs, outputs, grads = args[3:6]
                self.claim("activations", *map(address, (*(inputs or ()), *(outputs or ()))))
                self.claim("activation gradients", *map(address, grads or ()))
            made = differentiate(*args)
            if eager:
                self.claim("activation gradients", *map(address, flat(made)))
            return made

        entered, left = backprop.GradientTape.__enter__, backprop.GradientTape.__exit__

        def enter(tape):
            if tf.executing_eagerly():
                tape._oracle = self.window("forward")
                tape._oracle.__enter__()
            return entered(tape)

        def leave(tape, *args):
            left(tape, *args)
            if tf.executing_eagerly():
                tape._oracle.__exit__()

        backprop.GradientTape.__enter__, backprop.GradientTape.__exit__ = enter, leave
        backprop.GradientTape.gradient = gradient
        backprop._gradient_function = differentiated
        pywrap_tfe.TFE_Py_RegisterGradientFunction(differentiated)

    def _took(self, gradients):
        if tf.executing_eagerly():
            self.claim("gradients", *map(address, flat(gradients)))
        else:
            self.gradients += [tensor.op.name for tensor in flat(gradients)]

    def _watch_optimizers(self):
        kind = tf.keras.optimizers.Optimizer
        for name in ("apply", "apply_gradients"):
            applied = getattr(kind, name)

            def apply(optimizer, *args, _applied=applied, **kwargs):
                return self._watch("optimizer", lambda: _applied(optimizer, *args, **kwargs))

            setattr(kind, name, apply)

    def inputs(self, *tensors):
        self.claim("inputs", *map(address, tensors))

    def look(self, model, *optimizers):
        """After a step."""
        slots = [v for optimizer in optimizers for v in optimizer.variables]
        trained = {id(v) for v in model.trainable_variables}
        for name, variables in (("parameters", [v for v in model.variables if id(v) in trained]),
                                ("buffers", [v for v in model.variables if id(v) not in trained]), ("optimizer state", slots)):
            self.claim(name, *map(address_of, variables))
            self.facts[name] = sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in variables)

    def after_each_step(self, model, *optimizers):
        """A callback for fit()."""
        oracle = self

        class ReportAfterSteps(tf.keras.callbacks.Callback):
            # Before tracing: a variable whose rows a graph reads is handed out as a copy from then on.
            def on_train_begin(self, logs=None):
                oracle.look(model, *(optimizers or (model.optimizer,)))

            def on_train_batch_end(self, batch, logs=None):
                oracle.look(model, *(optimizers or (model.optimizer,)))

        return ReportAfterSteps()

    def note_graphs(self):
        graphs = context.context().export_run_metadata().function_graphs
        self.facts["graphs"] = [[[node.name, node.op, list(node.input)] for node in graph.post_optimization_graph.node] for graph in graphs]
        self.facts["traced"], self.facts["gradients_made_by"] = self.traced, self.gradients
