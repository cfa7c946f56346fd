"""What blocks of steps that take turns say: how certain a ratio is."""
import random
import statistics


def interval(values, rounds=2000):
    """95 % interval of the median, by drawing again."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]
