"""What a training's memory is made of, compared with what the model says about itself."""
import pytest

from attribution import gradients_equal_the_variables, most_is_known, variables_equal_the_models
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
