"""The default generator's pictures have the distribution of the legacy one's.

Each comparison draws with fixed seeds, so that it gives the same answer every time: a p-value
under :data:`DOUBT` is a fault. That the comparisons can fail is shown by telling severities apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy import stats

from shiftbed.corruptions import VARIANTS, Spec, corrupt, corruptions

Picture = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Options = Callable[[str], dict[str, Any]]

DOUBT = 1e-5


def many(
    source: Picture, name: str, severity: int | None, count: int, *, legacy: bool, **given: Any
) -> Picture:
    """Return many corrupted copies of a picture, from either generator."""
    if legacy:
        rng = np.random.RandomState(12345)
        return np.stack([corrupt(source, name, severity, rng=rng, **given) for _ in range(count)])
    return np.stack([corrupt(source, name, severity, key=str(i), **given) for i in range(count)])


def ramp(height: int, width: int) -> Picture:
    """Return a colour picture whose red tells the column and whose green tells the row."""
    rows, columns = np.indices((height, width))
    blue = 255 * ((rows // 5 + columns // 5) % 2)
    return np.stack([rows * 0 + 40 + 4 * columns, 40 + 4 * rows, blue], -1).astype(np.uint8)


def describe(pictures: Picture, clean: Picture) -> dict[str, Floats]:
    """Return numbers that say something of where, how much and how coarsely a picture changed."""
    values = pictures.reshape(len(pictures), *clean.shape[:2], -1).astype(np.float64)
    change = np.abs(values - clean.reshape(*clean.shape[:2], -1))
    grey = values.mean(axis=3)
    across, down = np.diff(grey, axis=2), np.diff(grey, axis=1)
    return {
        "mean": values.mean(axis=(1, 2, 3)),
        "spread": values.std(axis=(1, 2, 3)),
        "share changed": (change > 8).mean(axis=(1, 2, 3)),
        "roughness across": np.abs(across).mean(axis=(1, 2)),
        "roughness down": np.abs(down).mean(axis=(1, 2)),
        "slant": (across[:, :-1] * down[:, :, :-1]).mean(axis=(1, 2)),
        "left against right": grey[:, :, : grey.shape[2] // 2].mean((1, 2)) - grey.mean((1, 2)),
        "top against bottom": grey[:, : grey.shape[1] // 2].mean((1, 2)) - grey.mean((1, 2)),
        "middle": grey[:, grey.shape[1] // 2, grey.shape[2] // 2],
        "corner": grey[:, 1, 1],
    }


def likeness(first: dict[str, Floats], second: dict[str, Floats]) -> dict[str, float]:
    """Return the p-value of a Kolmogorov-Smirnov test of each number."""
    return {
        name: float(stats.ks_2samp(first[name], second[name], method="asymp").pvalue)
        for name in first
    }


RANDOM = [spec for variant in VARIANTS for spec in corruptions(variant) if spec.random]


@pytest.mark.parametrize("spec", RANDOM, ids=[f"{s.variant}-{s.name}" for s in RANDOM])
def test_pictures_of_both_generators_are_alike(options: Options, spec: Spec) -> None:
    source = ramp(28, 28)[..., :1] if spec.variant == "mnist-c" else ramp(40, 32)
    given = {"variant": spec.variant, **options(spec.name)}
    # The published draws of MNIST-C's glass blur take a Python loop over the pixels.
    count = 80 if (spec.variant, spec.name) == ("mnist-c", "glass_blur") else 250
    for severity in {spec.standard or 3, len(spec.levels)} if spec.levels else {None}:
        ours, theirs = (
            many(source, spec.name, severity, count, legacy=legacy, **given)
            for legacy in (False, True)
        )
        found = likeness(describe(ours, source), describe(theirs, source))
        assert min(found.values()) > DOUBT, (severity, found)


@pytest.mark.parametrize(
    ("name", "severities"),
    [
        ("gaussian_noise", (1, 2)),
        ("glass_blur", (1, 3)),
        ("snow", (4, 5)),
        ("fog", (1, 2)),
        ("elastic_transform", (1, 2)),
        ("spatter", (2, 3)),
        ("motion_blur", (1, 2)),
    ],
)
def test_the_comparison_tells_neighbouring_severities_apart(
    name: str, severities: tuple[int, int]
) -> None:
    source = ramp(40, 32)
    milder, worse = (
        describe(many(source, name, severity, 250, legacy=severity == severities[0]), source)
        for severity in severities
    )
    assert min(likeness(milder, worse).values()) < DOUBT


# ---------------------------------------------------------------- noise, value by value

FLAT = np.full((400, 500), 0, np.uint8)


def chi_square(first: Picture, second: Picture) -> float:
    """Return the p-value of two samples of levels being of one distribution."""
    counts = np.stack([np.bincount(s.reshape(-1), minlength=256) for s in (first, second)])
    rare = counts.sum(axis=0) < 20
    pooled = np.concatenate([counts[:, ~rare], counts[:, rare].sum(axis=1, keepdims=True)], axis=1)
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    return float(stats.chi2_contingency(pooled).pvalue) if pooled.shape[1] > 1 else 1.0


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", ["gaussian_noise", "speckle_noise", "shot_noise", "impulse_noise"])
@pytest.mark.parametrize("variant", ["imagenet-c", "cifar-c"])
def test_noise_has_the_levels_of_the_legacy_stream(variant: str, name: str, severity: int) -> None:
    for level in (0, 37, 128, 250):
        source = FLAT + np.uint8(level)
        ours = corrupt(source, name, severity, variant=variant, key="noise")
        rng = np.random.RandomState(level)
        theirs = corrupt(source, name, severity, variant=variant, rng=rng)
        assert chi_square(ours, theirs) > DOUBT, level


@pytest.mark.parametrize(("severity", "photons"), list(enumerate((60, 25, 12, 5, 3), 1)))
def test_shot_noise_counts_as_poisson_does(severity: int, photons: int) -> None:
    for level in (1, 20, 90, 180, 255):
        drawn = corrupt(FLAT + np.uint8(level), "shot_noise", severity, key=str(level))
        counts = np.arange(photons)
        # Counts of all the photons and more are white.
        chances = stats.poisson.pmf(counts, level / 255 * photons)
        chances = np.append(chances, 1 - chances.sum())
        levels = np.append((counts / photons * 255).astype(int), 255)
        observed = np.bincount(drawn.reshape(-1), minlength=256)
        assert observed[levels].sum() == drawn.size
        likely = chances * drawn.size > 5
        rest = [observed[levels[~likely]].sum()], [chances[~likely].sum() * drawn.size]
        seen = np.append(observed[levels[likely]], rest[0])
        expected = np.append(chances[likely] * drawn.size, rest[1])
        keep = expected > 1e-3
        assert seen[~keep].sum() <= 2
        score = ((seen - expected)[keep] ** 2 / expected[keep]).sum()
        assert stats.chi2.sf(score, max(keep.sum() - 1, 1)) > DOUBT, level


@pytest.mark.parametrize(("severity", "scale"), list(enumerate((0.08, 0.12, 0.18, 0.26, 0.38), 1)))
def test_gaussian_noise_has_its_moments(severity: int, scale: float) -> None:
    """In the middle of the range, where little is cut off: against the cut normal itself."""
    drawn = corrupt(FLAT + np.uint8(128), "gaussian_noise", severity, key="m")
    edges = (np.arange(1, 256) / 255 - 128 / 255) / scale
    chances = np.diff(np.concatenate([[0], stats.norm.cdf(edges), [1]]))
    expected = chances * drawn.size
    seen = np.bincount(drawn.reshape(-1), minlength=256)
    keep = expected > 5
    score = ((seen - expected)[keep] ** 2 / expected[keep]).sum()
    assert stats.chi2.sf(score, keep.sum() - 1) > DOUBT


@pytest.mark.parametrize(("severity", "amount"), list(enumerate((0.03, 0.06, 0.09, 0.17, 0.27), 1)))
def test_impulse_noise_is_half_salt_half_pepper(severity: int, amount: float) -> None:
    drawn = corrupt(FLAT + np.uint8(77), "impulse_noise", severity, key="s")
    salt, pepper = np.count_nonzero(drawn == 255), np.count_nonzero(drawn == 0)
    assert salt + pepper + np.count_nonzero(drawn == 77) == drawn.size
    assert stats.binomtest(salt + pepper, drawn.size, amount).pvalue > DOUBT
    assert stats.binomtest(salt, salt + pepper, 0.5).pvalue > DOUBT


def test_noise_does_not_repeat_across_pixels_and_channels() -> None:
    source = np.full((300, 300, 3), 128, np.uint8)
    for name in ("gaussian_noise", "shot_noise", "speckle_noise", "impulse_noise"):
        values = corrupt(source, name, 2, key="r").astype(np.float64)
        values -= values.mean()
        for shift in ((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1)):
            moved = np.roll(values, shift, axis=(0, 1, 2))
            correlation = np.mean(values * moved) / np.var(values)
            assert abs(correlation) * np.sqrt(values.size) < 4.5, (name, shift)


# ---------------------------------------------------------------- weather


def spectrum(veils: Floats) -> Floats:
    """Return each veil's power in rings of spatial frequency, doubling in radius."""
    centred = veils - veils.mean(axis=(1, 2), keepdims=True)
    power = np.abs(np.fft.fft2(centred)) ** 2
    rows, columns = (np.abs(np.fft.fftfreq(side)) * side for side in veils.shape[1:])
    ring = np.log2(np.maximum(np.hypot(rows[:, None], columns), 1)).astype(int)
    return np.stack([power[:, ring == r].mean(axis=1) for r in range(ring.max() + 1)], axis=1)


@pytest.mark.parametrize(
    ("variant", "side", "severity"),
    [("cifar-c", 32, 5), ("tiny-imagenet-c", 64, 1), ("imagenet-c", 224, 3), ("imagenet-c", 64, 5)],
)
def test_fog_has_the_legacy_spectrum_and_mean(variant: str, side: int, severity: int) -> None:
    source = np.full((side, side, 1), 128, np.uint8)
    count = 200
    ours, theirs = (
        many(source, "fog", severity, count, legacy=legacy, variant=variant)[..., 0] / 255
        for legacy in (False, True)
    )
    for statistic in (lambda v: v.mean((1, 2)), lambda v: v.std((1, 2)), lambda v: v[:, 0, 0]):
        assert stats.ks_2samp(statistic(ours), statistic(theirs)).pvalue > DOUBT
    rings = zip(spectrum(ours).T, spectrum(theirs).T, strict=True)
    for ring, (first, second) in enumerate(rings):
        assert stats.ks_2samp(first, second).pvalue > DOUBT, ring
        # And the mean power, by which a spectrum is usually judged.
        assert stats.ttest_ind(np.log(first), np.log(second)).pvalue > DOUBT, ring


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("variant", ["imagenet-c", "tiny-imagenet-c", "mnist-c"])
def test_snow_covers_as_much(variant: str, severity: int) -> None:
    source = np.zeros((64, 64, 1), np.uint8)
    ours, theirs = (
        many(source, "snow", severity, 150, legacy=legacy, variant=variant)
        for legacy in (False, True)
    )
    ground = int(min(ours.min(), theirs.min()))
    for depth in (4, 30, 90):
        covered = [(pictures > ground + depth).mean((1, 2, 3)) for pictures in (ours, theirs)]
        assert stats.ks_2samp(*covered).pvalue > DOUBT, depth


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("variant", ["imagenet-c", "tiny-imagenet-c"])
def test_spatter_covers_as_much(variant: str, severity: int) -> None:
    source = np.full((64, 64, 3), 128, np.uint8)
    ours, theirs = (
        many(source, "spatter", severity, 150, legacy=legacy, variant=variant)
        for legacy in (False, True)
    )
    covered = [(pictures != 128).any(axis=3).mean((1, 2)) for pictures in (ours, theirs)]
    assert stats.ks_2samp(*covered).pvalue > DOUBT
    changed = [pictures.mean((1, 2, 3)) for pictures in (ours, theirs)]
    assert stats.ks_2samp(*changed).pvalue > DOUBT


@pytest.fixture(scope="module")
def plain_frost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs that tell which they are, by red, and which place, by green and blue."""
    folder = tmp_path_factory.mktemp("plain")
    rows, columns = np.indices((120, 100))
    for number in range(1, 7):
        pixels = np.stack([0 * rows + 40 * number, 2 * rows, 2 * columns], -1).astype(np.uint8)
        end = "png" if number < 4 else "jpg"
        # What is called .jpg may be a PNG: it is read by its content.
        Image.fromarray(pixels).save(folder / f"frost{number}.{end}", "PNG")
    return folder


@pytest.mark.parametrize("legacy", [False, True])
def test_frost_draws_five_photographs_and_all_places_evenly(
    plain_frost: Path, legacy: bool
) -> None:
    source = np.zeros((30, 20, 3), np.uint8)
    drawn = many(source, "frost", 5, 3000, legacy=legacy, textures=plain_frost)
    # Ice counts three quarters, cut to a whole level.
    number, top, left = np.ceil(drawn[:, 0, 0] / 0.75 / [40, 2, 2] - 0.01).astype(int).T
    counts = np.bincount(number, minlength=7)
    assert counts[0] == counts[6] == 0, "the sixth is never drawn"
    assert stats.chisquare(counts[1:6]).pvalue > DOUBT
    for place, choices in ((top, 120 - 30), (left, 100 - 20)):
        assert place.min() == 0
        assert place.max() == choices - 1
        assert stats.chisquare(np.bincount(place, minlength=choices)).pvalue > DOUBT
    assert abs(stats.pearsonr(number, top).statistic) * np.sqrt(len(drawn)) < 4.5
    assert abs(stats.pearsonr(top, left).statistic) * np.sqrt(len(drawn)) < 4.5


# ---------------------------------------------------------------- where pixels come from


def displaced(pictures: Picture, clean: Picture, margin: int) -> npt.NDArray[np.int64]:
    """Return by how many columns and rows each inner pixel's content was moved, times four."""
    moved = pictures[..., :2].astype(np.int64) - clean[..., :2]
    return moved[:, margin:-margin, margin:-margin]


@pytest.mark.parametrize(("variant", "severity"), [("cifar-c", 1), ("cifar-c", 4)])
def test_glass_moves_pixels_as_far(variant: str, severity: int) -> None:
    """With next to no smoothing, a ramp shows where each pixel was copied from."""
    source = ramp(44, 44)
    ours, theirs = (
        displaced(
            many(source, "glass_blur", severity, 60, legacy=legacy, variant=variant), source, 8
        )
        for legacy in (False, True)
    )
    # One outcome for each pair of columns and rows: pixels are copied from before and above.
    pairs = [np.round(moves / 4).astype(int).reshape(-1, 2) @ [100, 1] for moves in (ours, theirs)]
    outcomes = np.unique(np.concatenate(pairs))
    assert len(outcomes) >= 4
    counts = np.array([[np.count_nonzero(pair == way) for way in outcomes] for pair in pairs])
    common = counts.sum(axis=0) > 50
    assert counts[:, common].sum() > 0.999 * counts.sum()
    # Neighbours are copied from one another, so that draws are not quite independent: the score
    # is held to twice what it would be on average.
    score = stats.chi2_contingency(counts[:, common])
    assert score.statistic < 2 * score.dof + 20, score
    assert np.mean(ours) < 0


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("variant", ["imagenet-c", "cifar-c"])
def test_elastic_transform_moves_pixels_as_far(variant: str, severity: int) -> None:
    source = ramp(48, 48)
    ours, theirs = (
        displaced(
            many(source, "elastic_transform", severity, 200, legacy=legacy, variant=variant),
            source,
            12,
        ).astype(np.float64)
        for legacy in (False, True)
    )
    for axis in (0, 1):
        first, second = ours[..., axis], theirs[..., axis]
        for statistic in (
            lambda v: v.mean((1, 2)),  # the shift
            lambda v: v.std((1, 2)),  # the shear and the waves
            lambda v: np.abs(np.diff(v, axis=1)).mean((1, 2)),  # their roughness
            lambda v: v[:, 5, 5],
        ):
            assert stats.ks_2samp(statistic(first), statistic(second)).pvalue > DOUBT
