"""What holds for every corruption of every variant, whatever the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbed.corruptions import VARIANTS, Spec, corrupt, corruptions

Picture = npt.NDArray[np.uint8]
Options = Callable[[str], dict[str, Any]]

SPECS = [spec for variant in VARIANTS for spec in corruptions(variant)]


def each(specs: list[Spec]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("spec", specs, ids=[f"{s.variant}-{s.name}" for s in specs])


each_corruption = each(SPECS)
#: The same examples on every run.
repeatable = settings(derandomize=True, deadline=None, database=None)

EXTREMES = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 300), (300, 1), (2, 150), (7, 260)]
CONTENTS = ["noise", "flat", "black", "white", "checks", "ramp"]
LAYOUTS = ["plain", "strided", "reversed", "columns first", "read-only"]


def paint(content: str, shape: tuple[int, ...], seed: int) -> Picture:
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape[:2]).reshape(2, *shape[:2], *([1] * (len(shape) - 2)))
    picture = {
        "noise": lambda: rng.integers(0, 256, shape),
        "flat": lambda: np.full(shape, rng.integers(1, 255)),
        "black": lambda: np.zeros(shape),
        "white": lambda: np.full(shape, 255),
        "checks": lambda: np.broadcast_to(255 * ((rows // 2 + columns // 2) % 2), shape),
        "ramp": lambda: np.broadcast_to(5 * rows + 3 * columns, shape) + rng.integers(0, 9, shape),
    }[content]()
    return picture.astype(np.uint8)


def lay_out(picture: Picture, layout: str) -> Picture:
    """Return a view of the same values, laid out in memory in some other way."""
    if layout == "strided":
        wide = np.zeros((2 * picture.shape[0], 3 * picture.shape[1], *picture.shape[2:]), np.uint8)
        wide[::2, ::3] = picture
        return wide[::2, ::3]
    if layout == "reversed":
        return picture[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "columns first":
        return np.asfortranarray(picture)
    view = picture.copy()
    view.flags.writeable = layout != "read-only"
    return view


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    sides = st.integers(1, 100)
    size = draw(st.one_of(st.sampled_from(EXTREMES), st.tuples(sides, sides)))
    channels = draw(st.sampled_from([(), (1,), (3,)]))
    return paint(draw(st.sampled_from(CONTENTS)), (*size, *channels), draw(st.integers(0, 99)))


@each_corruption
@settings(repeatable, max_examples=16)
@given(picture=pictures(), layout=st.sampled_from(LAYOUTS), data=st.data())
def test_a_picture_gives_a_picture(
    options: Options, spec: Spec, picture: Picture, layout: str, data: st.DataObject
) -> None:
    severity = data.draw(st.sampled_from(spec.severities or (None,)), "severity")
    source = lay_out(picture, layout)

    def corrupted(picture: Picture, **given: Any) -> Picture:
        chosen = {**options(spec.name), **given}
        return corrupt(picture, spec.name, severity, variant=spec.variant, **chosen)

    result = corrupted(source, key="k")
    assert result.shape == picture.shape
    assert result.dtype == np.uint8
    assert result.flags.writeable
    assert not np.shares_memory(result, source)
    np.testing.assert_array_equal(source, picture, "the input was changed")
    np.testing.assert_array_equal(corrupted(picture.copy(), key="k"), result)

    for generator in (np.random.RandomState, np.random.default_rng):
        first = corrupted(source, rng=generator(3))
        assert first.shape == picture.shape
        assert first.dtype == np.uint8
        np.testing.assert_array_equal(corrupted(picture.copy(), rng=generator(3)), first)
    np.testing.assert_array_equal(source, picture, "the input was changed")


@each_corruption
def test_a_batch_is_its_pictures_in_any_order_on_any_threads(options: Options, spec: Spec) -> None:
    severity = (spec.severities or (None,))[-1]

    def corrupted(pictures: Picture, key: Any, **given: Any) -> Picture:
        chosen = {**options(spec.name), **given}
        return corrupt(pictures, spec.name, severity, variant=spec.variant, key=key, **chosen)

    for shape in ((13, 17, 3), (9, 8, 1)):
        batch = np.stack([paint("noise", shape, seed) for seed in range(6)])
        keys = ["a", "b", "c", "a", "é", ""]
        singles = np.stack([corrupted(*pair) for pair in zip(batch, keys, strict=True)])
        for workers in (None, 1, 2, 7):
            np.testing.assert_array_equal(corrupted(batch, keys, workers=workers), singles)
        order = [4, 0, 5, 2, 1, 3]
        shuffled = corrupted(batch[order], [keys[i] for i in order], workers=2)
        np.testing.assert_array_equal(shuffled, singles[order])
        np.testing.assert_array_equal(corrupted(batch[::2], keys[::2]), singles[::2])
        # Without keys, a picture's key is its place.
        places = [str(place) for place in range(len(batch))]
        np.testing.assert_array_equal(corrupted(batch, ""), corrupted(batch, places))
        assert corrupted(batch[:0], []).shape == (0, *shape)


@each_corruption
def test_a_generator_is_drawn_from_picture_after_picture(options: Options, spec: Spec) -> None:
    severity = (spec.severities or (None,))[0]

    def corrupted(pictures: Picture, rng: Any, **given: Any) -> Picture:
        chosen = {**options(spec.name), **given}
        return corrupt(pictures, spec.name, severity, variant=spec.variant, rng=rng, **chosen)

    batch = np.stack([paint("ramp", (12, 15, 3), seed) for seed in range(4)])
    for generator in (np.random.RandomState, np.random.default_rng):
        rng = generator(11)
        singles = [corrupted(picture, rng) for picture in batch]
        together = corrupted(batch, generator(11), workers=2)
        np.testing.assert_array_equal(together, np.stack(singles))


@each_corruption
def test_what_is_random_follows_seed_and_key(options: Options, spec: Spec) -> None:
    picture = paint("ramp", (28, 28, 3), 1)
    for severity in spec.severities or (None,):

        def results(variations: list[dict[str, Any]], severity: int | None = severity) -> int:
            found = set()
            for variation in variations:
                chosen = {**options(spec.name), **variation}
                out = corrupt(picture, spec.name, severity, variant=spec.variant, **chosen)
                found.add(out.tobytes())
            return len(found)

        keys = results([{"key": f"picture {i}"} for i in range(8)])
        seeds = results([{"seed": i, "key": "k"} for i in range(8)])
        legacy = results([{"rng": np.random.RandomState(i)} for i in range(8)])
        if spec.random:
            assert min(keys, seeds, legacy) > 1, (severity, keys, seeds, legacy)
        else:
            assert max(keys, seeds, legacy) == 1, (severity, keys, seeds, legacy)


def test_numbers_and_words_of_numpy_name_the_same_stream() -> None:
    picture = paint("ramp", (16, 16, 3), 2)
    expected = corrupt(picture, "gaussian_noise", 3, seed=7, key="b")
    named: dict[str, Any] = {"severity": np.int64(3), "seed": np.uint8(7), "key": np.str_("b")}
    np.testing.assert_array_equal(corrupt(picture, "gaussian_noise", **named), expected)
    named["key"] = np.array(["a", "b"])
    keyed = corrupt(np.stack([picture, picture]), "gaussian_noise", **named)
    np.testing.assert_array_equal(keyed[1], expected)


def test_severities_and_corruptions_have_streams_of_their_own() -> None:
    black = np.zeros((64, 64), np.uint8)
    flipped = [corrupt(black, "impulse_noise", severity, key="k") for severity in (4, 5)]
    shared = np.count_nonzero((flipped[0] > 0) & (flipped[1] > 0)) / black.size
    # Salt falls on 8.5% and 13.5%: if one stream drew both, the first would lie in the second.
    assert shared < 0.03


#: Drawn for each value, so that three equal channels do not stay equal.
PER_CHANNEL = {"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"}
#: What they lay over a picture, or make of a grey one, has a colour.
COLOURED = {"frost", "spatter", "saturate"}


@each([spec for spec in SPECS if spec.name not in PER_CHANNEL | COLOURED])
def test_grey_is_treated_as_colour_with_equal_channels(options: Options, spec: Spec) -> None:
    for severity in spec.severities or (None,):
        for content in ("noise", "flat", "ramp"):
            grey = paint(content, (31, 26, 1), 5)

            def corrupted(picture: Picture, severity: int | None = severity) -> Picture:
                chosen = options(spec.name)
                return corrupt(picture, spec.name, severity, variant=spec.variant, **chosen)

            alone = corrupted(grey).astype(np.int16)
            np.testing.assert_array_equal(corrupted(grey[..., 0]), alone[..., 0])
            # Sums and means of channels are rounded in another order than a grey level.
            assert np.abs(corrupted(np.repeat(grey, 3, axis=2)) - alone).max() <= 1


@pytest.mark.parametrize("variant", [variant for variant in VARIANTS if variant != "mnist-c"])
def test_saturating_grey_is_the_grey_of_what_it_would_be_in_colour(variant: str) -> None:
    grey = paint("noise", (20, 21, 1), 3)
    for severity in range(1, 6):
        colour = corrupt(np.repeat(grey, 3, axis=2), "saturate", severity, variant=variant)
        expected = corrupt(colour, "greyscale", variant=variant)[..., :1]
        result = corrupt(grey, "saturate", severity, variant=variant)
        np.testing.assert_array_equal(result, expected)
