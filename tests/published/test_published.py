from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from shiftbed import published
from shiftbed.errors import InputError

CORRUPTIONS = tuple(published.alexnet_errors())
PAPERS = Path(__file__).resolve().parents[3] / "shared" / "papers"


def test_every_described_file_exists_and_every_file_is_described() -> None:
    data = Path(published.__file__).parent / "data"
    assert {p.stem for p in (data / "tables").iterdir()} == set(published.tables())
    assert {p.stem for p in (data / "classes").iterdir()} == set(published.class_lists())


@pytest.mark.parametrize("name", published.tables())
def test_tables_are_whole(name: str) -> None:
    table = published.table(name)
    assert table.rows
    assert all(tuple(row) == table.columns for row in table.rows)
    keys = [(row[table.columns[0]], row[table.columns[1]]) for row in table.rows]
    assert len(set(keys)) == len(keys)
    assert ", " in table.source
    json.dumps(table.rows)
    if table.unit == "percent":
        numbers = [v for row in table.rows for v in row.values() if isinstance(v, float)]
        limit = 600 if "relative_mce" in table.columns or "mce" in table.columns else 100
        assert all(0 <= number <= limit for number in numbers)


def test_alexnet_errors_round_to_the_printed_ones() -> None:
    table = published.table("imagenet-c-alexnet")
    for error, printed in zip(table.numbers("error"), table.numbers("printed_error"), strict=True):
        assert abs(error - printed) <= 0.05 + 1e-9
    assert set(CORRUPTIONS) < set(published.alexnet_errors(extra=True))
    assert set(CORRUPTIONS) <= set(published.table("imagenet-c-table-1").columns)


def test_the_gap_column_is_the_difference_of_the_others() -> None:
    for name in ("many-faces-table-1", "many-faces-table-7"):
        for row in published.table(name).rows:
            gap = float(str(row["imagenet_r_error"])) - float(str(row["imagenet_200_error"]))
            assert gap == pytest.approx(row["gap"], abs=1e-6), row


def test_tables_that_print_the_same_figures_agree() -> None:
    small, large = (published.table(f"many-faces-table-{n}") for n in (1, 7))
    for row in small.rows:
        assert large.row(str(row["model"])) == row
    first = published.table("imagenet-c-table-1").row("ResNet-50")
    eighth = published.table("many-faces-table-8").row("ResNet-50")
    assert all(first[c] == eighth[c] for c in ("clean_error", "mce", *CORRUPTIONS))
    conv1 = published.table("mnist-c-figure-3").numbers("Conv1")
    assert published.table("mnist-c-figure-4").numbers("clean")[:-1] == conv1
    for row in published.table("many-faces-table-5").rows[:-1]:
        # Table 5 prints the error that Table 8 divides by AlexNet's.
        other = published.table("many-faces-table-8").row(str(row["model"]))
        for blur in ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"):
            error = float(str(other[blur])) * published.alexnet_errors()[blur]
            assert error == pytest.approx(row[blur], abs=1.0), (row["model"], blur)


def test_the_last_row_of_table_5_prints_ces_beside_the_mean_of_errors() -> None:
    row = published.table("many-faces-table-5").row("ResNet-152")
    ces = published.table("many-faces-table-8").row("ResNet-152")
    blurs = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
    assert all(row[blur] == ces[blur] for blur in blurs)
    errors = [float(str(ces[blur])) * published.alexnet_errors()[blur] for blur in blurs]
    assert sum(errors) / 4 == pytest.approx(row["blur_mean"], abs=0.5)


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("imagenet-a", 200),
        ("imagenet-o", 200),
        ("imagenet-r", 200),
        ("imagenet-22k-superclasses", 25),
        ("icons-50", 50),
    ],
)
def test_class_lists_have_their_classes_once(name: str, n: int) -> None:
    ids = published.class_list(name)
    assert len(set(ids)) == len(ids) == n
    if name != "icons-50":
        assert all(re.fullmatch(r"n\d{8}", i) for i in ids)
    if name.startswith("imagenet-") and n == 200:
        assert all(a < b for a, b in pairwise(ids))


@pytest.mark.parametrize("letter", ["a", "r"])
def test_class_lists_agree_with_timm(letter: str) -> None:
    timm_data = importlib.util.find_spec("timm")
    if timm_data is None or timm_data.origin is None:
        pytest.skip("timm, whose list this compares with, is not installed")
    info = Path(timm_data.origin).parent / "data" / "_info"
    theirs = (info / f"imagenet_{letter}_synsets.txt").read_text().split()
    assert list(published.class_list(f"imagenet-{letter}")) == theirs


def test_usual_classes_of_imagenet_o_are_imagenet_classes() -> None:
    spec = importlib.util.find_spec("timm")
    if spec is None or spec.origin is None:
        pytest.skip("timm, whose list this compares with, is not installed")
    synsets = Path(spec.origin).parent / "data" / "_info" / "imagenet_synsets.txt"
    assert set(published.class_list("imagenet-o")) <= set(synsets.read_text().split())


@pytest.mark.skipif(not PAPERS.exists(), reason="the papers' text is not at hand")
@pytest.mark.parametrize("name", ["a", "o", "r"])
def test_class_lists_are_those_printed(name: str) -> None:
    file, start, end = {
        "a": ("imagenet-a_imagenet-o.txt", "A. IMAGENET-A Classes", "B. IMAGENET-O Classes"),
        "o": ("imagenet-a_imagenet-o.txt", "B. IMAGENET-O Classes", "C. Color Counterfactuals"),
        "r": ("many-faces_imagenet-r_deepaugment.txt", "ImageNet-R Classes", "SVSF. The classes"),
    }[name]
    text = (PAPERS / file).read_text(encoding="utf-8")
    printed = re.findall(r"n\d{8}", text[text.index(start) : text.index(end)])
    assert list(published.class_list(f"imagenet-{name}")) == printed


@pytest.mark.skipif(not PAPERS.exists(), reason="the papers' text is not at hand")
@pytest.mark.parametrize(
    ("table", "file"),
    [
        ("many-faces-table-2", "many-faces_imagenet-r_deepaugment.txt"),
        ("many-faces-table-3", "many-faces_imagenet-r_deepaugment.txt"),
        ("many-faces-table-5", "many-faces_imagenet-r_deepaugment.txt"),
        ("many-faces-table-7", "many-faces_imagenet-r_deepaugment.txt"),
        ("many-faces-table-8", "many-faces_imagenet-r_deepaugment.txt"),
        ("many-faces-table-9", "many-faces_imagenet-r_deepaugment.txt"),
        ("imagenet-c-table-2", "imagenet-c_icons-50.txt"),
        ("mnist-c-figure-2", "mnist-c.txt"),
        ("mnist-c-figure-3", "mnist-c.txt"),
        ("mnist-c-figure-4", "mnist-c.txt"),
    ],
)
def test_the_numbers_of_every_row_are_printed_together(table: str, file: str) -> None:
    """The text of Table 1 of ImageNet-C lost digits, so it is checked by arithmetic instead."""
    text = (PAPERS / file).read_text(encoding="utf-8").replace("1179", "117.9")
    for damaged, whole in {"31.01 1233": "31.0 123.3", "1229": "122.9", "1039": "103.9"}.items():
        text = text.replace(damaged, whole)
    lines = [[float(x) for x in re.findall(r"\d+\.\d+|\d+", line)] for line in text.splitlines()]
    data = published.table(table)
    if table == "mnist-c-figure-2":
        wanted = [list(data.numbers(c)) for c in data.columns[1:]]
    else:
        wanted = [[v for v in row.values() if isinstance(v, float)] for row in data.rows]
    for numbers in wanted:
        assert any(line[-len(numbers) :] == numbers for line in lines), numbers


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: published.table("imagenet-c-table1"), "did you mean imagenet-c-table-1"),
        (lambda: published.class_list("imagenet-q"), "there is no class list 'imagenet-q'"),
        (
            lambda: published.table("mnist-c-figure-2").column("mce"),
            "there is no column 'mce'; choose one of",
        ),
        (lambda: published.table("mnist-c-figure-2").row("Conv"), "did you mean Conv1"),
        (lambda: published.table("icons-50-text").numbers("subtype_accuracy"), "without a number"),
    ],
)
def test_mistakes_are_told_in_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        call()
