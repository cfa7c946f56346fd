"""What a recording says its memory is made of, compared with what the model said about itself."""
import json
import subprocess


def groups(recording, at, *keys):
    """{values of the keys: requested and granted bytes} of what is live."""
    answer = json.loads(subprocess.check_output([recording.vramscope, "peak", "--json", "--at", at, "--by", ",".join(keys), "-n", "0",
                                                 recording.trace]))
    return {tuple(g["keys"]): g for g in answer["groups"]}


def most_is_known(training):
    said = training.said
    live = groups(training, "steady", "category", "layer", "known")
    total = sum(g["bytes"] for g in live.values())
    attributed = sum(g["bytes"] for (category, layer, known), g in live.items() if category != "unknown" and layer and known != "unknown")
    assert attributed >= 0.95 * total, sorted(((g["bytes"], k) for k, g in live.items()), reverse=True)[:20]
    assert {known for _, _, known in live} >= {"told", "named", "inferred"}
    # The names are those of model.summary(), with parts of a layer behind a slash.
    of_layers = {layer.split("/")[0] for category, layer, _ in live if category in ("parameters", "activations", "optimizer state") and layer}
    assert of_layers and of_layers <= {*said["layers"], "compile_loss", "loss"}, of_layers - set(said["layers"])


def variables_equal_the_models(training):
    events, said = training.events(), training.said
    newest = {e["name"]: e for e in events if e["event"] == "tag"}
    told = {category: sum(e["bytes"] for e in newest.values() if e["category"] == category) for category in ("parameter", "optimizer_state")}
    assert told == {"parameter": said["parameters"], "optimizer_state": said["slots"]}
    # The same in the blocks that are live where training has ended; TensorFlow keeps single numbers elsewhere.
    # By its place and not by its time: samples of the host, stamped later, may stand before it.
    last = max(place for place, e in enumerate(events) if e["event"] == "tag")
    live = groups(training, f"moment:{last + 1}", "category", "name")
    for name, tag in newest.items():
        if tag["category"] in ("parameter", "optimizer_state") and tag["bytes"] > 64:
            shown = {"parameter": "parameters", "optimizer_state": "optimizer state"}[tag["category"]]
            assert live[shown, name]["requested"] == tag["bytes"], name


def gradients_equal_the_variables(training):
    events, said = training.events(), training.said
    makers = {e["key"].partition(".")[2] for e in events if e["event"] == "setting" and e["key"].startswith("gradient_op.")}
    steps = [(e["number"], e["edge"], place) for place, e in enumerate(events) if e["event"] == "mark" and e["kind"] == "step"]
    begin, = (place for number, edge, place in steps if (number, edge) == (8, "begin"))
    end, = (place for number, edge, place in steps if (number, edge) == (8, "end"))
    born = [e for e in events[begin:end] if e["event"] == "alloc" and e["op"].removeprefix("StatefulPartitionedCall/") in makers]
    assert sum(e["requested"] for e in born) == said["dense_gradients"]
