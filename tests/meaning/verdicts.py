"""Judges what is said about a recorded program against what the program is known to do (corpus.py): right, wrong or cannot tell."""
import json
import re
import subprocess

# True of many programs, and worth reading, but no trouble.
ALWAYS_TRUE = {"checkpointing", "optimizer-state", "xla", "layout-copies"}
MIB = 1 << 20
OTHER_FRAMEWORKS = {"torch": r"\btf\.|\bTF_|Keras|TensorFlow", "tf": r"torch|PYTORCH_"}


def ask(vramscope, verb, trace, *options):
    return json.loads(subprocess.check_output([vramscope, verb, "--json", *options, trace]))


def text_of(finding):
    return " ".join(finding[part] for part in ("title", "cause", "remedy"))


def strange_layers(vramscope, trace, expected):
    """What the list of layers has that the framework's own list has not, or in another order; empty if nothing."""
    named = [row["name"] for row in ask(vramscope, "layers", trace)["rows"] if row["name"] and not row["name"].startswith("(")]
    of_model = {name: max((known for known in expected if name == known or name.startswith(known + "/")), key=len, default=None) for name in named}
    unknown = [name for name, known in of_model.items() if known is None]
    if unknown:
        return f"layers {unknown[:8]} are not of the model, which has {expected[:8]}"
    return "" if named else f"no layer was found, the model has {expected[:8]}"


def too_many_gradients(vramscope, trace):
    """Gradients belong to parameters: there may be a copy of each, as when they are clipped, but not more."""
    sums = {group["keys"][0]: group["bytes"] for group in ask(vramscope, "peak", trace, "--by", "category", "-n", "0")["groups"]}
    gradients, parameters = sums.get("gradients", 0), sums.get("parameters", 0)
    return f"{gradients} bytes of gradients for {parameters} bytes of parameters" if gradients > 2 * parameters + MIB else ""


def judge(vramscope, trace, meant, framework):
    """("right" | "wrong" | "cannot tell", what was said)"""
    summary, leaks = ask(vramscope, "summary", trace), ask(vramscope, "leaks", trace)
    found = summary["findings"]["findings"]
    said = " | ".join([summary["sentence"], *(f"{one['id']}: {text_of(one)}" for one in found)])
    foreign = [one["id"] for one in found if re.search(OTHER_FRAMEWORKS[framework], text_of(one))]
    if foreign:
        return "wrong", f"advice for another framework in {foreign}: {said}"
    expected = meant["finds"]
    allowed = {*expected, *meant["also"], *ALWAYS_TRUE}
    extra = [one["id"] for one in found if one["id"] not in allowed]
    if extra:
        return "wrong", f"{extra} is not so: {said}"
    if meant["steps"] is not None:
        counted = sum(step["kind"] == "train" for step in ask(vramscope, "steps", trace)["steps"]["steps"])
        if counted != meant["steps"]:
            return "wrong", f"{counted} steps instead of {meant['steps']}: {said}"
    # Unless the program keeps those of earlier steps.
    if not expected and (excess := too_many_gradients(vramscope, trace)):
        return "wrong", f"{excess}: {said}"
    if meant.get("layers") and (strange := strange_layers(vramscope, trace, meant["layers"])):
        return "wrong", f"{strange}: {said}"
    if not expected:
        return "right", said
    first = next((one for one in found if one["id"] in expected), None)
    if first is None:
        denied = set(expected) & {"leak", "held-tensors"} and leaks["verdict"] == "not growing"
        return "wrong" if denied else "cannot tell", f"{expected} is missing ({leaks['sentence']}): {said}"
    if not re.search(meant["says"], text_of(first), re.DOTALL):
        return "wrong", f"{meant['says']!r} is not what is said: {said}"
    if meant["saving"] and not 0.9 <= (first["at_stake"] or 0) / meant["saving"] <= 1.1:
        return "wrong", f"a saving of {first['at_stake']} bytes instead of {meant['saving']}: {said}"
    return "right", said


def peak_of(vramscope, trace):
    overview = ask(vramscope, "summary", trace)
    return max(pool["peak_bytes"] for pool in overview["pools"])


def saving_of(vramscope, trace, fixed, meant):
    """(bytes that the first expected finding promises, bytes that the fixed program needs less)"""
    found = ask(vramscope, "summary", trace)["findings"]["findings"]
    promised = next((one["at_stake"] for one in found if one["id"] in meant["finds"]), None) or 0
    return promised, peak_of(vramscope, trace) - peak_of(vramscope, fixed)
