"""Code that torch.compile wrote: which layer, and which line of the program, each of its lines works for.

The compiler keeps with each node of its graphs the modules and the stack of the program that led to it. When code has been made of
a graph, its lines that allocate are reported to the recorder, which then reads the layer off the stack of an allocation as it does
elsewhere. Nothing of ours runs in the step.

A fused kernel works for several layers: each of its buffers belongs to the layer that the buffer was made for. Code from the
compiler's cache comes without a graph. It brings the stack of the program for its lines; which of several equal layers (of equal
blocks) is meant follows from the names in its comments if there are any, and otherwise from its neighbors.
"""
from __future__ import annotations

import ctypes
import dis
import re
import weakref
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import torch_frames, torch_names, wrapping


class Origin(NamedTuple):
    part: str       # "blocks.0.mlp/Linear"; ".mlp/Linear": a part of the compiled layer; "": that layer itself
    trace: str      # the stack of the program, as printed by traceback


_ASSIGNED = re.compile(r"\s+(\w+)(?:: [^=]+)? = ")
_OUT = re.compile(r"\bout=(\w+)")
_FRAME = re.compile(r'File "(.+)", line (\d+), in (.+)')
_SOURCE_NODES = re.compile(r"# .*Source Nodes: \[([^\]]*)\]")
_KERNEL = re.compile(r"extern_kernels\.\w+|torch\.ops\.\w+|\w+_fused_\w+")
_ROOT = re.compile(r"[LG]\['(\w+)'\]")
_LOOP = "(training loop)/forward"      # same as in src/capture/torch/reporter.cpp
_WRAPPERS = {"OptimizedModule": "_orig_mod", "DistributedDataParallel": "module", "DataParallel": "module"}


def _part(modules: Dict[str, Any]) -> str:
    """{key: ("L['self'].blocks[0].mlp", its class)...}, innermost last."""
    inner: List[str] = []
    path, kind = "", ""
    for value in modules.values():
        if not isinstance(value, tuple) or len(value) != 2:
            return ""
        path, kind = str(value[0]), getattr(value[1], "__name__", str(value[1]).rpartition(".")[2])
        inner.append(_WRAPPERS.get(kind, ""))
    root = _ROOT.match(path)
    rest = path[root.end():] if root else path
    names = [name for name in re.split(r"[\[\]'\".]+|_modules", rest) if name]
    names = [name for name in names if name not in inner]
    if root is not None and root.group() == "L['self']":
        return "." + ".".join(names) + "/" + kind if names else ""
    return (".".join(names) or kind) + "/" + kind


_outside = ""       # part of what belongs to no module: the compiled layer itself, or the loop around all layers


def origin_of(node: Any) -> Optional[Origin]:
    """Origin of a node in any of the compiler's graphs. In backward: of the node whose gradient it computes."""
    modules = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    trace = (node.meta.get("stack_trace") or "").partition("\nGradient addition")[0]
    return Origin(_part(modules) if modules else _outside, trace) if modules or trace else None


class _Node(NamedTuple):
    index: int
    origin: Origin
    function: str


class _Graph:
    """Dynamo's graph of the program: the nodes that comments in the generated code refer to."""

    def __init__(self, nodes: Iterable[Any]) -> None:
        self._by_name: Dict[str, _Node] = {}
        self._by_trace: Dict[str, List[_Node]] = {}
        for index, node in enumerate(nodes):
            origin = origin_of(node)
            if origin is not None and node.op != "placeholder":
                known = self._by_name[node.name] = _Node(index, origin, getattr(node.target, "__name__", str(node.target)))
                self._by_trace.setdefault(origin.trace, []).append(known)

    def nearest(self, at: int, origin: Origin, code: Sequence[str]) -> Tuple[int, Origin]:
        """The node with the same stack that the code refers to, or else the next one from `at`."""
        spoken = [name.strip() for text in code for names in _SOURCE_NODES.findall(text) for name in names.split(",")]
        kernels = " ".join(kernel for text in code for kernel in _KERNEL.findall(text))
        named = [self._by_name[name] for name in spoken if name in self._by_name]
        equal = [node for node in named if node.origin.trace == origin.trace][-1:] or self._by_trace.get(origin.trace) or named[-1:]
        equal = [node for node in equal if f"_{node.function.strip('_')}_" in kernels] or equal
        if not equal:
            return at, origin
        best = min(equal, key=lambda node: abs(node.index - at))
        return best.index, best.origin


_graph: Optional[_Graph] = None     # being compiled, or compiled last
_places: Dict[str, int] = {}


def _place(trace: str) -> int:
    """The recorder's number for a stack of the program."""
    recorder = torch_frames.library()
    if trace not in _places and recorder is not None:
        place = 0
        for file, line, function in _FRAME.findall(trace):
            place = recorder.vramscope_add_place(file.encode("utf-8", "replace"), function.encode("utf-8", "replace"),
                                                 ctypes.c_uint32(int(line)), ctypes.c_uint32(place))
        _places[trace] = place
    return _places.get(trace, 0)


def _tell(codes: Iterable[CodeType], origins: Dict[int, Origin]) -> None:
    recorder = torch_frames.library()
    for code in codes:
        lines = sorted({line for _, line in dis.findlinestarts(code) if line in origins})
        if recorder is None or not lines:
            continue
        count = len(lines)
        parts = [origins[line].part.encode("utf-8", "replace") or None for line in lines]
        places = [_place(origins[line].trace) for line in lines]
        recorder.vramscope_name_lines(ctypes.c_uint64(id(code)), (ctypes.c_uint32 * count)(*lines), (ctypes.c_char_p * count)(*parts),
                                      (ctypes.c_uint32 * count)(*places), ctypes.c_size_t(count))
        _alive[id(code)] = weakref.ref(code, _forget(id(code)))


_alive: Dict[int, "weakref.ref[CodeType]"] = {}


def _forget(code: int) -> Callable[[Any], None]:
    def freed(_: Any) -> None:
        _alive.pop(code, None)
        recorder = torch_frames.library_loaded
        if recorder is not None:
            recorder.vramscope_name_lines(ctypes.c_uint64(code), None, None, None, ctypes.c_size_t(0))
    return freed


def _origins_by_name(source: str, origin: Callable[[str], Optional[Origin]]) -> Dict[int, Origin]:
    """By line: the origin of what the line creates; other lines serve what was created last."""
    found: Dict[int, Origin] = {}
    last: Optional[Origin] = None
    for number, text in enumerate(source.splitlines(), 1):
        made = _ASSIGNED.match(text) or _OUT.search(text)
        last = (origin(made.group(1)) if made else None) or last
        if last is not None:
            found[number] = last
    return found


def _of_buffer(graph: Any) -> Callable[[str], Optional[Origin]]:
    """`graph` is inductor's. A buffer knows the node whose value it holds, and the nodes that were computed along with it."""
    buffers = graph.name_to_buffer

    def origin(name: str) -> Optional[Origin]:
        buffer = buffers.get(name)
        first = getattr(buffer, "origin_node", None)
        nodes = ([] if first is None else [first]) + list(getattr(buffer, "origins", ()))
        known = [found for found in map(origin_of, nodes) if found is not None]
        return next((found for found in known if found.part), known[0] if known else None)
    return origin


def _origins_by_trace(source: str, line_traces: Sequence[Tuple[int, str]], graph: Optional[_Graph]) -> Dict[int, Origin]:
    """By line, for code from the cache: each (line, trace) applies up to the next one."""
    lines = source.splitlines()
    found: Dict[int, Origin] = {}
    at = 0      # in the graph
    ends = [line for line, _ in line_traces[1:]] + [len(lines) + 1]
    for (begin, trace), end in zip(line_traces, ends):
        origin = Origin("", (trace or "").partition("\nGradient addition")[0])
        if graph is not None and trace:
            kernel = next((line for line in range(begin - 1, len(lines)) if _KERNEL.search(lines[line])), end - 1)
            at, origin = graph.nearest(at, origin, lines[begin - 1:max(kernel + 1, end - 1)])
        for line in range(begin, end):
            found[line] = origin
    return found


def _codes_in(values: Iterable[Any], file: str) -> Iterator[CodeType]:
    for value in values:
        if isinstance(value, FunctionType):
            value = value.__code__
        if isinstance(value, type) and value.__module__ not in ("builtins", "torch"):
            yield from _codes_in([v for v in vars(value).values() if isinstance(v, FunctionType)], file)
        elif isinstance(value, CodeType) and value.co_filename == file:
            yield value
            yield from _codes_in(value.co_consts, file)


def watch_dynamo(output_graph: Any) -> None:
    """torch._dynamo.output_graph"""
    def begins(self: Any, module: Any, *_: Any, **__: Any) -> None:
        global _graph, _outside
        _outside = "" if torch_names.is_module(self.local_scope.get("self")) else _LOOP
        _graph = _Graph(module.graph.nodes)
        torch_names.name_all_models()

    wrapping.wrap(output_graph.OutputGraph, "call_user_compiler", begins)


def watch_graph_modules(graph_module: Any) -> None:
    """torch.fx.graph_module: a graph that runs as Python code, one line per node."""
    def recompiled(token: None, ok: bool, result: Any, module: Any, **_: Any) -> None:
        if ok:
            _graph_module(module)

    wrapping.wrap(graph_module.GraphModule, "recompile", after=recompiled)


def _graph_module(module: Any) -> None:
    nodes = {node.name: node for node in module.graph.nodes if node.meta.get("stack_trace")}
    code = torch_frames.code_of(vars(type(module)).get("forward"))
    if nodes and code is not None:
        _tell([code], _origins_by_name(module._code, lambda name: origin_of(nodes[name]) if name in nodes else None))


def watch_inductor(codecache: Any) -> None:
    """torch._inductor.codecache"""
    cache = codecache.PyCodeCache
    method = vars(cache).get("load_by_key_path")
    if method is None or wrapping.is_wrapped(method.__func__):
        return

    def loaded(token: None, ok: bool, module: Any, cls: Any, key: Any, path: Any, linemap: Any = None, *_: Any, **__: Any) -> None:
        if ok and linemap:
            _generated(module, path, linemap)

    cache.load_by_key_path = classmethod(wrapping.around(method.__func__, after=loaded))


def _generated(module: Any, path: str, line_traces: Sequence[Tuple[int, str]]) -> None:
    from torch._inductor.virtualized import V
    with open(path, encoding="utf-8") as file:
        source = file.read()
    if hasattr(V.graph, "name_to_buffer"):
        origins = _origins_by_name(source, _of_buffer(V.graph))
    else:
        origins = _origins_by_trace(source, line_traces, _graph)
    _tell(_codes_in(list(vars(module).values()), path), origins)


def watch_training(runtime: Any) -> None:
    """torch._functorch._aot_autograd.runtime_wrappers: a forward pass compiled for training runs without gradients, because it
    has its own backward pass. It is not an evaluation."""
    values = [value for value in vars(runtime).values() if getattr(value, "__module__", "") == runtime.__name__]
    for code in _codes_in(values, runtime.__file__):
        if code.co_name == "CompiledFunction":
            for inner in code.co_consts:
                if isinstance(inner, CodeType) and inner.co_name == "forward":
                    torch_frames.watch(inner, torch_frames.PHASE, torch_frames.CHECKPOINTED)
