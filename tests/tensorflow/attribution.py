"""What a recording says its memory is made of, compared with what the model said about itself."""
import json
import subprocess


GROUPS = ("(input)", "(optimizer)", "(loss and metrics)", "(all-reduce)")


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
    how = {known for _, _, known in live}
    assert "reported" in how and how & {"named", "inferred"}
    # The names are those of model.summary(), with parts of a layer behind a slash; the rest is grouped by what it is for.
    rows = json.loads(subprocess.check_output([training.vramscope, "layers", "--json", training.trace]))["rows"]
    named = {layer.split("/")[0] for _, layer, _ in live} | {row["name"].split("/")[0] for row in rows}
    assert set(said["layers"]) & named
    assert named <= {*said["layers"], *GROUPS, f"({said['model']})", ""}, named - set(said["layers"])


def variables_equal_the_models(training):
    events, said = training.events(), training.said
    newest = {e["name"]: e for e in events if e["event"] == "tag"}
    tagged = {category: sum(e["bytes"] for e in newest.values() if e["category"] == category) for category in ("parameter", "optimizer_state")}
    assert tagged == {"parameter": said["parameters"], "optimizer_state": said["slots"]}
    # The same in the blocks that are live where training has ended; TensorFlow keeps single numbers elsewhere.
    # By its place and not by its time: samples of the host, stamped later, may stand before it.
    last = max(place for place, e in enumerate(events) if e["event"] == "tag")
    live = groups(training, f"moment:{last + 1}", "category", "name")
    for name, tag in newest.items():
        if tag["category"] in ("parameter", "optimizer_state") and tag["bytes"] > 64:
            shown = {"parameter": "parameters", "optimizer_state": "optimizer state"}[tag["category"]]
            assert live[shown, name]["requested"] == tag["bytes"], name


def variables_equal_the_models_at_the_peak(training, replicas=1):
    """Single numbers (a step count, a learning rate) lie elsewhere, or twice while they are counted up."""
    live = groups(training, "steady", "category")
    for shown, truth in (("parameters", "parameters"), ("optimizer state", "slots")):
        assert abs(live[shown,]["requested"] - replicas * training.said[truth]) <= 12 * replicas, (shown, live, training.said)


def gradients_equal_the_variables(training):
    events, said = training.events(), training.said
    makers = {e["op"] for e in events if e["event"] == "variable_op" and e["role"] == "gradient"}
    steps = [(e["number"], e["edge"], place) for place, e in enumerate(events) if e["event"] == "mark" and e["kind"] == "step"]
    begin, = (place for number, edge, place in steps if (number, edge) == (8, "begin"))
    end, = (place for number, edge, place in steps if (number, edge) == (8, "end"))
    born = [e for e in events[begin:end] if e["event"] == "alloc" and e["op"].removeprefix("StatefulPartitionedCall/") in makers]
    assert sum(e["requested"] for e in born) == said["dense_gradients"]
