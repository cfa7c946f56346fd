"""Nearly all of what is live at the peak is known by category and by layer, without a word in the program."""
import collections
import json
import subprocess
from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parent / "models.py"


@pytest.mark.parametrize("model", ["transformer", "resnet", "lightning"])
def test_category_and_layer_are_known_at_the_peak(vramscope, record, model):
    recording = record(MODELS, model)
    text = subprocess.check_output([vramscope, "peak", recording.folder, "--by", "category,layer", "--phase", "all", "--rows", "0",
                                    "--json"], text=True)
    groups = [(*group["keys"], group["bytes"]) for group in json.loads(text)["groups"]]
    total = sum(size for _, _, size in groups)
    unknown = [group for group in groups if group[0] == "unknown" or not group[1]]
    assert total > 10 << 20
    assert sum(size for _, _, size in unknown) <= 0.05 * total, unknown[:5]
    # And they are what they say: an optimizer's state has the size of the parameters it is for.
    sums = collections.Counter()
    for category, _, size in groups:
        sums[category] += size
    states = {"transformer": 2, "resnet": 1, "lightning": 2}[model]
    assert sums["optimizer state"] == pytest.approx(states * sums["parameters"], rel=0.12)
    assert 0.4 * sums["parameters"] <= sums["gradients"] <= 1.6 * sums["parameters"]
