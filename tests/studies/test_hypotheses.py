"""Hypotheses: the rule for a sign, the paper's seven, and declarations of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbed import published
from shiftbed.errors import InputError
from shiftbed.studies import Finding, Grid, declaration, judge, many_faces_grid
from shiftbed.studies.hypotheses import Expectation, sign

OWN = """
[[dataset]]
name = "fog"
clean = "photos"
shifted = ["photos+fog.*"]

[[hypothesis]]
name = "augmentation"
expect = "better"
compare = [{ with = "augmented", without = "plain" }]
"""


def declared(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "own.toml"
    path.write_text(text)
    return declaration(path)


def photos(plain: float, augmented: float, n: int = 2000) -> Grid:
    settings = ["photos", "photos+fog.1", "photos+fog.2"]
    rows = [[0.9, plain, plain], [0.9, augmented, augmented]]
    return Grid.of(["plain", "augmented"], settings, rows, n=n)


ends = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(lambda pair: tuple(sorted(pair)))


@given(st.floats(0, 0.1), ends, st.lists(ends, max_size=4))
def test_worse_is_betters_mirror_image(margin: float, mean: Any, each: Any) -> None:
    flipped = [(-high, -low) for low, high in each]
    assert sign("worse", margin, mean, each) == sign(
        "better", margin, (-mean[1], -mean[0]), flipped
    )


@pytest.mark.parametrize(
    ("expect", "mean", "each", "expected"),
    [
        ("better", (0.02, 0.05), [(0.02, 0.05)], "+"),
        ("better", (-0.05, -0.02), [(-0.05, -0.02)], "-"),
        ("better", (-0.01, 0.05), [(-0.01, 0.05)], "not established"),
        ("better", (0.02, 0.05), [(0.06, 0.09), (-0.04, -0.01)], "not established"),
        ("better", (0.002, 0.005), [(0.002, 0.005)], "-"),  # established, but below the margin
        ("worse", (-0.05, -0.02), [(-0.05, -0.02)], "+"),
        ("same", (0.0, 0.0), [(-0.005, 0.005)], "+"),
        ("same", (0.0, 0.0), [(-0.005, 0.005), (0.02, 0.03)], "-"),
        ("same", (0.0, 0.0), [(-0.005, 0.005), (-0.02, 0.02)], "not established"),
        ("better", (np.nan, np.nan), [(np.nan, np.nan)], "not established"),
        ("same", (np.nan, np.nan), [(np.nan, np.nan)], "not established"),
    ],
)
def test_signs(expect: Expectation, mean: Any, each: Any, expected: str) -> None:
    assert sign(expect, 0.01, mean, each) == expected


def signs(findings: tuple[Finding, ...]) -> dict[tuple[str, str], str]:
    return {(finding.hypothesis, finding.dataset): finding.sign for finding in findings}


def test_the_papers_table_of_signs_from_its_own_tables() -> None:
    """Where we have a sign it is the paper's, but for what its own numbers do not establish."""
    ours = signs(judge(many_faces_grid()))
    names = {
        "imagenet_c": "ImageNet-C",
        "real_blurry_images": "Real Blurry Images",
        "imagenet_r": "ImageNet-R",
        "dfr": "DeepFashion Remixed",
        "svsf": "StreetView StoreFronts",
    }
    open_here = set()
    for row in published.table("many-faces-table-4").rows:
        for column, dataset in names.items():
            if row[column] is None:
                continue
            found = ours[str(row["hypothesis"]), dataset]
            if found in "+-":
                assert found == row[column], (row["hypothesis"], dataset)
            else:
                assert found == "not established"
                open_here.add(dataset)
    # A thousand pictures, mean average precision without n, differences within the error.
    assert open_here == {"Real Blurry Images", "DeepFashion Remixed", "ImageNet-R"}
    assert ours["Synthetic does not imply Natural", "ImageNet-R"] == "-"
    assert ours["Only IID Accuracy Matters", "ImageNet-R"] == "-"


def test_the_seven_on_the_testbed(testbed: Grid) -> None:
    found = signs(judge(testbed))
    assert len({hypothesis for hypothesis, _ in found}) == 7
    for hypothesis in ("Larger Models", "Self-Attention", "Pretraining", "Texture Bias"):
        assert found[hypothesis, "ImageNet-C"] == "+"
    for dataset in ("ImageNet-C", "ImageNet-R", "ImageNet-A"):
        assert found["Diverse Data Augmentation", dataset] == "+"
        assert found["Only IID Accuracy Matters", dataset] == "-"
    assert found["Self-Attention", "ImageNet-R"] == "not established"
    assert found["Larger Models", "DeepFashion Remixed"] == "not measured"


def test_every_sign_has_its_numbers(testbed: Grid) -> None:
    for finding in judge(testbed):
        if finding.sign == "not measured":
            assert not finding.comparisons
            continue
        for measure, (value, low, high) in finding.means.items():
            own = [one for one in finding.comparisons if one.measure == measure]
            assert value == pytest.approx(np.mean([one.difference for one in own]))
            assert low < value < high
            # Corrected for their number, single intervals are no narrower than the mean's.
            width = np.mean([one.high - one.low for one in own])
            assert width >= high - low - 1e-12


def test_printed_corruption_errors_become_the_accuracies_that_they_were(testbed: Grid) -> None:
    grid = many_faces_grid()
    mean = np.mean([grid.column(s) for s in grid.settings if s.startswith("imagenet-c.")], axis=0)
    ce = {row["model"]: row["mce"] for row in published.table("many-faces-table-8").rows}
    errors = published.alexnet_errors()
    for model in ("ResNet-50", "ResNet-50 + DeepAugment + AugMix"):
        # mCE weighs the corruptions by AlexNet's error, the mean accuracy does not.
        scale = np.mean([*errors.values()])
        assert 1 - mean[grid.row(model)] == pytest.approx(scale * ce[model] / 100, abs=0.01)


def test_a_declaration_of_ones_own(tmp_path: Path) -> None:
    own = declared(tmp_path, OWN)
    assert judge(photos(0.5, 0.6), own)[0].sign == "+"
    assert judge(photos(0.6, 0.5), own)[0].sign == "-"
    assert judge(photos(0.5, 0.51), own)[0].sign == "not established"
    # Five times the pictures decide what so few left open.
    assert judge(photos(0.5, 0.52, n=20_000), own)[0].sign == "+"
    missing = Grid.of(["plain"], ["photos", "photos+fog.1"], [[0.9, 0.5]], n=10)
    assert judge(missing, own)[0].sign == "not measured"


def test_groups_and_each(tmp_path: Path) -> None:
    grid = Grid.of(
        ["a1", "a2", "b1", "b2"],
        ["photos", "photos+fog.1"],
        [[0.9, 0.6], [0.9, 0.8], [0.9, 0.5], [0.9, 0.5]],
        n=5000,
    )
    means = OWN.replace('with = "augmented", without = "plain"', 'with = "a*", without = "b*"')
    [finding] = judge(grid, declared(tmp_path, means))
    assert finding.comparisons[0].with_ == ("a1", "a2")
    assert finding.means["accuracy"][0] == pytest.approx(0.2)
    each = means.replace('with = "a*"', 'each = ["a*"]')
    [finding] = judge(grid, declared(tmp_path, each))
    assert [one.with_ for one in finding.comparisons] == [("a1",), ("a2",)]
    assert [one.difference for one in finding.comparisons] == pytest.approx([0.1, 0.3])


BAD: dict[str, tuple[str, str]] = {
    "not TOML": ("[[dataset]", "is not TOML"),
    "nothing": ("", "declares no dataset; expected at least one table of that name"),
    "no hypothesis": (OWN.split("[[hyp")[0], "declares no hypothesis"),
    "unknown key": (OWN.replace("expect", "expects"), "no key 'expects'; did you mean expect?"),
    "unknown expectation": (OWN.replace('"better"', '"bettr"'), "did you mean better?"),
    "unknown measure": (OWN.replace("compare", 'measure = "gaps"\ncompare'), "did you mean gap?"),
    "no text": (OWN.replace('"photos"', "7"), "clean is 7; expected a text"),
    "no texts": (OWN.replace('["photos+fog.*"]', "[1]"), "expected a text or a list of texts"),
    "empty group": (OWN.replace('"augmented"', "[]"), "with is []; expected a text or a list"),
    "no sides": (OWN.replace('with = "augmented", ', ""), "a comparison names models with"),
    "both sides": (
        OWN.replace('with = "augmented"', 'with = "a", each = "b"'),
        "a comparison names models with something, either their mean",
    ),
    "nobody without": (
        OWN.replace(', without = "plain"', ""),
        "only effective robustness is measured against the baseline",
    ),
    "same without margin": (OWN.replace('"better"', '"same"'), "nothing is ever exactly the same"),
    "margin in percent": (OWN.replace("compare", "margin = 2\ncompare"), "expected a fraction"),
    "unknown dataset": (
        OWN.replace("compare", 'datasets = ["fogg"]\ncompare'),
        "there is no dataset 'fogg'; did you mean fog?",
    ),
}


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_declarations_get_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError) as told:
        declared(tmp_path, text)
    assert sentence in str(told.value)


def test_files_that_are_no_declarations(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent.toml \(No such file"):
        declaration(tmp_path / "absent.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * 2**21)
    with pytest.raises(InputError, match="too large for a declaration"):
        declaration(tmp_path / "large.toml")
