"""The largest batch in a program: what the forecast is asked for, with answers of a stand-in for the program."""
import pytest

from vramscope import _largest

GIB = 1 << 30


def test_what_others_hold_of_a_device_is_passed_to_the_forecast(monkeypatch):
    asked = []

    def fit(*_, on=None, limit=None, outside=None, batches=None):
        asked.append((on, limit, outside))
        return {"cards": [{"memory": 2 * GIB, "available": GIB, "largest": 1024}], "rows": [], "sentence": "Done."}

    monkeypatch.setattr(_largest, "fit", fit)
    monkeypatch.setattr(_largest, "_recorded", lambda train, batch, steps, folder: "run")
    found = _largest.find(lambda _: None, 8, "2GiB", None, False, outside=lambda: GIB // 2)
    _largest.find(lambda _: None, 8, None, "2GiB", False, outside=lambda: GIB // 2)      # a limit is the pool's own
    assert asked == [("2GiB", None, str(GIB // 2)), (None, "2GiB", None)]
    assert found.batch == 1024 and found.sentence == "Done." and found.available == GIB


@pytest.mark.parametrize("on, limit", [(None, str(1000 << 20)), ("1200MiB", None)])
def test_a_step_that_needs_more_than_the_forecast_makes_the_batch_smaller(monkeypatch, on, limit):
    """The stand-in for the model needs a quarter more than its small batches show; of the device, 200 MiB is not the pool's."""
    def fit(*_, on=None, limit=None, outside=None, batches=None):
        memory = int(limit) if limit else int(on[:-3]) << 20
        available = memory - int(outside or 0)
        largest = available >> 20
        return {"cards": [{"memory": memory, "available": available, "largest": largest}], "rows": [{"batch": largest, "live": largest << 20}], "sentence": "Done."}

    monkeypatch.setattr(_largest, "fit", fit)
    monkeypatch.setattr(_largest, "_recorded", lambda train, batch, steps, folder: "run")
    monkeypatch.setattr(_largest, "_confirmed", lambda train, batch, folder: int(1.25 * (batch << 20)))
    found = _largest.find(lambda _: None, 8, on, limit, True, outside=lambda: 200 << 20)
    assert found.batch == 800 and found.confirmed and found.measured == 1000 << 20
    assert found.sentence == ("A step with batch 1,000 needed 25.0 % more than forecast, so a smaller one is chosen. "
                              "Done. A step with it needed 25.0 % more.")
