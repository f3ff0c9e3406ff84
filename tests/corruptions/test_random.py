"""The default stream: NumPy's own SFC64, and draws of the distributions that they claim."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from shiftbed.corruptions._random import Stream, draws
from shiftbed.errors import InputError

#: Seeds are fixed, so that a value under this would be a fault, not bad luck.
DOUBT = 1e-4


def sfc64(*parts: object) -> np.random.SFC64:
    """Return NumPy's generator in the state that names the stream of these parts."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=32).digest()
    generator = np.random.SFC64()
    state = generator.state
    state["state"]["state"] = np.frombuffer(digest, "<u8").copy()
    generator.state = state
    generator.random_raw(12)  # mixes the digest
    return generator


def raw(count: int, *parts: object) -> npt.NDArray[np.uint64]:
    return np.asarray(sfc64(*parts).random_raw(count), np.uint64)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 512, 1001])
def test_the_words_are_those_of_numpys_sfc64(count: int) -> None:
    words = raw(count // 2 + 1, 0, "cat.jpg", "fog", 3)
    halves = np.stack([words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)], axis=1).reshape(-1)
    ours = Stream.keyed(0, "cat.jpg", "fog", 3).words(count)
    assert ours.dtype == np.uint32
    np.testing.assert_array_equal(ours, halves[:count])


def test_uniforms_are_bits_of_the_words() -> None:
    words = raw(500, 1, "a", "b", None)
    bits = np.stack([words >> np.uint64(40), (words >> np.uint64(8)) & np.uint64(0xFFFFFF)], axis=1)
    ours = Stream.keyed(1, "a", "b", None).random_sample((10, 100))
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours.reshape(-1), bits.reshape(-1) / 2.0**24)


def test_integers_are_scaled_words() -> None:
    words = raw(500, 2, "k", "n", 1)
    halves = np.stack([words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)], axis=1).reshape(-1)
    expected = -3 + (halves.astype(object) * 11 >> 32)
    ours = Stream.keyed(2, "k", "n", 1).randint(-3, 8, (20, 50))
    np.testing.assert_array_equal(ours.reshape(-1), expected.astype(int))


def test_known_values() -> None:
    """A change here changes every picture of the default generator."""
    stream = Stream.keyed(0, "cat.jpg", "fog", 3)
    assert stream.randint(0, 10, 4).tolist() == [5, 4, 1, 6]
    assert stream.words(2).tolist() == [351065546, 1927982939]
    assert [round(float(value), 6) for value in stream.normal(0.0, 1.0, 4)] == [
        -0.026802,
        -0.043774,
        -0.084847,
        0.506522,
    ]
    assert round(stream.uniform(-45.0, 45.0), 5) == 7.44641


def test_draws_go_on_where_the_last_ended() -> None:
    stream, whole = Stream.keyed("x"), Stream.keyed("x")
    parts = [stream.words(4), stream.words(6), stream.words(2)]
    np.testing.assert_array_equal(np.concatenate(parts), whole.words(12))
    normals = [stream.normal(0, 1, size) for size in (1, 511, 512, 513, (2, 3), 0)]
    assert [part.shape for part in normals] == [(1,), (511,), (512,), (513,), (2, 3), (0,)]
    values = np.concatenate([part.reshape(-1) for part in normals])
    assert len(np.unique(values)) > 0.999 * values.size


def test_normals_are_normal() -> None:
    values = Stream.keyed("normals").normal(0.0, 1.0, 4_000_000).astype(np.float64)
    assert stats.kstest(values, "norm").pvalue > DOUBT
    n = values.size
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        error = (np.mean(values**power) - moment) / np.sqrt(variance / n)
        assert abs(error) < 4, power
    # The edge of the ziggurat, beyond which another method draws; and far beyond it.
    for edge in (1.0, 2.0, 3.0, 3.442619855899, 3.6, 4.0, 4.5, 5.0):
        for beyond in (values > edge, values < -edge):
            count = int(np.count_nonzero(beyond))
            assert stats.binomtest(count, n, stats.norm.sf(edge)).pvalue > DOUBT, edge
    tail = values[np.abs(values) > 3.442619855899]
    expected = stats.truncnorm(3.442619855899, np.inf)
    assert stats.kstest(np.abs(tail), expected.cdf).pvalue > DOUBT


def test_normals_fill_every_layer_evenly() -> None:
    values = Stream.keyed("layers").normal(0.0, 1.0, 2_000_000).astype(np.float64)
    counts = np.bincount((stats.norm.cdf(values) * 1000).astype(int), minlength=1000)
    assert stats.chisquare(counts).pvalue > DOUBT


def test_normals_are_scaled_and_moved() -> None:
    plain = Stream.keyed("s").normal(0.0, 1.0, 1000)
    moved = Stream.keyed("s").normal(0.55, 0.3, 1000)
    np.testing.assert_allclose(moved, 0.55 + 0.3 * plain, atol=1e-6)


def test_neighbours_do_not_know_each_other() -> None:
    n = 1_000_000
    stream = Stream.keyed("neighbours")
    for values in (stream.normal(0, 1, n), stream.random_sample(n)):
        centred = values.astype(np.float64) - values.mean(dtype=np.float64)
        size = np.abs(centred) - np.abs(centred).mean()
        for series in (centred, size):
            for lag in (1, 2, 3, 511, 512, 513, 1024):
                correlation = np.mean(series[:-lag] * series[lag:]) / np.var(series)
                assert abs(correlation) * np.sqrt(n) < 4.5, lag


def test_uniforms_are_even_in_their_interval() -> None:
    values = Stream.keyed("uniform").random_sample(1_000_000)
    assert values.min() >= 0
    assert values.max() < 1
    assert stats.kstest(values, "uniform").pvalue > DOUBT
    angles = [Stream.keyed("angle", i).uniform(-135, -45) for i in range(2000)]
    assert stats.kstest(angles, stats.uniform(-135, 90).cdf).pvalue > DOUBT
    assert max(angles) - min(angles) > 0.995 * 90
    sample = float(Stream.keyed("angle", 0).random_sample(1)[0])
    assert angles[0] == -135 + 90 * sample


def test_a_range_of_one_integer() -> None:
    assert set(Stream.keyed("one").randint(4, 5, 100).tolist()) == {4}


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 1), (-5, 5), (0, 27), (7, 1000)])
def test_integers_are_even_in_their_range(low: int, high: int) -> None:
    values = Stream.keyed("integers").randint(low, high, 200_001)
    assert values.min() == low
    assert values.max() == high - 1
    assert stats.chisquare(np.bincount(values - low, minlength=high - low)).pvalue > DOUBT


def test_keys_have_streams_of_their_own() -> None:
    names = [
        (0, "a", "fog", 1),
        (0, "a", "fog", 2),
        (0, "a", "fo", 1),
        (1, "a", "fog", 1),
        (0, "1", "fog", 1),
        (0, 1, "fog", 1),
        (0, "", "fog", None),
        (0, "', '", "fog", 1),
        (0, "a', 'fog", 1),
        (0, "\udc80", "fog", 1),  # as file names that are no UTF-8 are read
        *((0, str(i), "fog", 1) for i in range(2, 50)),
    ]
    n = 2000
    drawn = np.stack([Stream.keyed(*name).normal(0, 1, n) for name in names]).astype(np.float64)
    assert len({row.tobytes() for row in drawn}) == len(names)
    correlation = np.corrcoef(drawn)[np.triu_indices(len(names), 1)] * np.sqrt(n)
    assert np.abs(correlation).max() < 5
    assert stats.kstest(correlation, "norm").pvalue > DOUBT
    # The same place in many streams is as random as many places in one.
    first = [Stream.keyed(0, str(i), "fog", 1).random_sample(1)[0] for i in range(5000)]
    assert stats.kstest(first, "uniform").pvalue > DOUBT
    pairs = itertools.pairwise(first)
    assert abs(stats.pearsonr(*zip(*pairs, strict=True)).statistic) * np.sqrt(5000) < 4


def test_a_generator_seeds_streams_one_after_another() -> None:
    def two(seed: int) -> list[npt.NDArray[np.uint32]]:
        generator = np.random.default_rng(seed)
        return [Stream.from_generator(generator).words(8) for _ in range(2)]

    first, again, other = two(1), two(1), two(2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], other[0])
    assert isinstance(draws(np.random.Generator(np.random.PCG64(1))), Stream)
    legacy = np.random.RandomState(1)
    assert draws(legacy) is legacy
    unfit: list[Any] = [3, None, np.random.SFC64(1), "seed"]
    for generator in unfit:
        with pytest.raises(InputError, match=r"rng is a numpy\.random\.RandomState or"):
            draws(generator)
