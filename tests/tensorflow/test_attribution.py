"""What the memory of a training run consists of, compared with what the model reports about itself."""
import pytest

from attribution import (gradients_equal_the_variables, groups, most_is_known, variables_equal_the_models,
                         variables_equal_the_models_at_the_peak)
from tensorflow_support import HERE

PROGRAMS = HERE / "attribution_programs.py"
RUNS = {"2.21 cnn": {}, "2.21 transformer": {}, "2.21 custom_loop": {}, "2.16 custom_loop": {}, "2.16 cnn": {}}


@pytest.fixture(params=RUNS)
def training(request, record, python_with):
    version, program = request.param.split()
    return record([python_with(version), PROGRAMS, program], env=RUNS[request.param])


def test_a_training_is_attributed(training):
    most_is_known(training)
    variables_equal_the_models(training)
    gradients_equal_the_variables(training)


@pytest.mark.parametrize("program, replicas", [("steps_per_execution", 1), ("mirrored", 2), ("batches", 1), ("nested", 1)])
def test_variables_whose_blocks_are_replaced_stay_known(program, replicas, record, python_with):
    training = record([python_with("2.21"), PROGRAMS, program])
    if replicas == 1:       # of several, the sum of their gradients is sometimes made by an op that was not reported
        most_is_known(training)
    variables_equal_the_models_at_the_peak(training, replicas)


def test_accumulated_gradients_are_state_of_the_optimizer(record, python_with):
    training = record([python_with("2.21"), PROGRAMS, "accumulation"])
    most_is_known(training)
    live, said = groups(training, "steady", "category"), training.said
    assert live["parameters",]["requested"] == said["parameters"]
    # Accumulators that were reset share one constant of zeros, which is nobody's own.
    assert said["slots"] - said["parameters"] <= live["optimizer state",]["requested"] + 12 <= said["slots"] + 24
