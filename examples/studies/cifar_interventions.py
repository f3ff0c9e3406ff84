"""Interventions on CIFAR-10 against corruptions, and on icons against an unseen style.

    python examples/studies/cifar_interventions.py --output study-cifar

A small ResNet is trained plain and with five interventions, once on CIFAR-10 and once on icons
without one vendor. The first are tested on CIFAR-10-C, made in memory from CIFAR-10's test set;
the second on the vendor's icons. The table of hypotheses is computed from the results.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _common import Report, accuracies, arguments, bars, console, some, trained

import shiftbed as sb
from shiftbed.augment import augmentation
from shiftbed.data import ImageSet, open_set
from shiftbed.models import Geometry
from shiftbed.published import table
from shiftbed.studies import Grid, declaration, judge

#: The recipes, and what the paper calls a ResNet-50 that was trained so.
RECIPES = {
    "plain": "ResNet-50",
    "speckle-noise": "ResNet-50 + Speckle Noise",
    "pgd": "ResNet-50 + l-inf Adversarial Training",
    "augmix": "ResNet-50 + AugMix",
    "deepaugment": "ResNet-50 + DeepAugment",
    "deepaugment-augmix": "ResNet-50 + DeepAugment + AugMix",
}
ARCHITECTURE = {"small": "resnet8-8s2", "usual": "resnet8-16s2", "full": "resnet20"}
#: Pictures and passes of CIFAR-10, of icons, pictures to test with, and PGD's steps.
SIZES = {
    "small": (200, 1, 200, 1, 50, 1),
    "usual": (10_000, 12, 3000, 12, 1000, 3),
    "full": (None, 100, None, 100, None, 10),
}
SETTINGS = {
    "small": "+{clean,gaussian_noise.3,fog.3,pixelate.3}",
    "usual": "cifar-c",
    "full": "cifar-c",
}
DECLARED = Path(__file__).with_name("interventions.toml")


def main(output: Path, cut: str) -> dict[str, bool]:
    photos, passes, icons, icon_passes, tested, steps = SIZES[cut]
    jobs = {
        "cifar10": (some(open_set("cifar10-train"), photos, "cifar10-to-learn"), passes),
        "icons": (
            some(open_set("icons-50-rebuilt.train-style-microsoft"), icons, "icons-to-learn"),
            icon_passes,
        ),
    }
    tests = {
        "cifar10": some(open_set("cifar10-test"), tested, "cifar10", always=True),
        "icons-version": some(
            open_set("icons-50-rebuilt.control"), tested, "icons-version", always=True
        ),
        "icons-style": some(
            open_set("icons-50-rebuilt.style-microsoft"), tested, "icons-style", always=True
        ),
    }
    results = output / "results"
    for name, (images, turns) in jobs.items():
        specs = {}
        for recipe in RECIPES:
            # DeepAugment's pictures are made once, as the paper made them, and stand beside the
            # others: there are twice as many, and half as many passes over them.
            made = recipe.startswith("deepaugment")
            specs[recipe] = trained(
                {"deepaugment": "plain", "deepaugment-augmix": "augmix"}.get(recipe, recipe),
                with_distorted(images, output / f"{name}-distorted.npz") if made else images,
                output / "models" / name / recipe,
                architecture=ARCHITECTURE[cut],
                size=32,
                epochs=max(1, turns // 2) if made else turns,
                batch=64,
                warmup=min(1, turns / 5),
                **({"steps": steps} if recipe == "pgd" else {}),
            )
        if name == "cifar10":
            run = sb.evaluate(specs, SETTINGS[cut], tests[name], results=results, baseline="plain")
            console.print(str(run), markup=False, highlight=False)
            on_photos = accuracies(run)
        else:
            pictures = {one: tests[one] for one in ("icons-version", "icons-style")}
            on_icons = accuracies(sb.evaluate(specs, None, pictures, results=results))
    return report(output, on_photos, on_icons, cut)


def with_distorted(images: ImageSet, file: Path) -> ImageSet:
    """Return the pictures and, beside them, what distorted networks make of them."""
    if not file.exists():
        console.print(f"DeepAugment on {len(images):,} pictures", highlight=False)
        distort = augmentation("deepaugment")
        small = Geometry((32, 32), (32, 32), channels=3)
        pixels = np.stack([small.apply(images.load(place)) for place in range(len(images))])
        made = np.stack([distort(one, key=f"0:{place}") for place, one in enumerate(pixels)])
        assert images.labels is not None
        labels = np.concatenate([images.labels, images.labels])
        part = file.with_suffix(".part.npz")
        np.savez(part, images=np.concatenate([pixels, made]), labels=labels, classes=images.classes)
        part.rename(file)
    return open_set(file, name=f"{images.name}-and-distorted")


def report(
    output: Path,
    on_photos: dict[tuple[str, str], float],
    on_icons: dict[tuple[str, str], float],
    cut: str,
) -> dict[str, bool]:
    photos, passes, icons, icon_passes, tested, steps = SIZES[cut]
    said = Report(output)
    said.say(
        f"Cut: {cut} ({ARCHITECTURE[cut]}; {passes} passes over {photos or 50_000:,} photographs "
        f"of CIFAR-10, {icon_passes} over {icons or 6579:,} icons; {steps} steps of PGD; tested on "
        f"{tested or 10_000:,} photographs, corrupted in memory). The paper's is a ResNet-50 on "
        "ImageNet-C and ImageNet-R."
    )
    corruption, rendition = table("many-faces-table-8"), table("many-faces-table-1")
    corrupted = {
        recipe: float(
            np.mean([v for (model, on), v in on_photos.items() if model == recipe and "+" in on])
        )
        for recipe in RECIPES
    }
    clean = {recipe: on_photos[recipe, "cifar10"] for recipe in RECIPES}
    styles = {recipe: on_icons[recipe, "icons-style"] for recipe in RECIPES}
    said.table(
        "Accuracy in percent, beside the paper's mCE on ImageNet-C and error on ImageNet-R",
        [
            *("recipe", "CIFAR-10", "CIFAR-10-C", "unseen version", "unseen style"),
            *("mCE, paper", "ImageNet-R error, paper"),
        ],
        [
            [
                recipe,
                clean[recipe],
                corrupted[recipe],
                on_icons[recipe, "icons-version"],
                styles[recipe],
                corruption.row(printed)["mce"],
                rendition.row(printed)["imagenet_r_error"],
            ]
            for recipe, printed in RECIPES.items()
        ],
    )
    grid = Grid.from_cells(sb.Results(output / "results").cells())
    findings = judge(grid, declaration(DECLARED))
    said.table(
        "Hypotheses, computed from these cells",
        ["hypothesis", "CIFAR-10-C", "icons, unseen style", "paper"],
        [
            [
                claim.name,
                *(
                    next(
                        (
                            one.sign
                            for one in findings
                            if (one.hypothesis, one.dataset) == (claim.name, dataset.name)
                        ),
                        "not asked",
                    )
                    for dataset in declaration(DECLARED).datasets
                ),
                PAPER_SAYS[claim.name],
            ]
            for claim in declaration(DECLARED).hypotheses
        ],
    )
    for one in findings:
        for measure, (value, low, high) in one.means.items():
            said.say(
                f"{one.hypothesis} on {one.dataset}: {measure} {100 * value:+.1f} "
                f"[{100 * low:+.1f}, {100 * high:+.1f}] points, {one.sign}."
            )
    held = {
        f"{recipe} {'raises' if better else 'lowers'} the accuracy on corruptions": (
            (corrupted[recipe] > corrupted["plain"]) == better
        )
        for recipe, better in {
            "speckle-noise": True,
            "augmix": True,
            "deepaugment": True,
            "deepaugment-augmix": True,
            "pgd": False,
        }.items()
    }
    held["DeepAugment with AugMix is the best on corruptions"] = (
        max(corrupted, key=corrupted.__getitem__) == "deepaugment-augmix"
    )
    held["DeepAugment with AugMix is the best on the unseen style"] = (
        max(styles, key=styles.__getitem__) == "deepaugment-augmix"
    )
    held["adversarial training is the worst on clean pictures"] = (
        min(clean, key=clean.__getitem__) == "pgd"
    )
    said.findings(held)
    bars(
        output / "figure.png",
        list(RECIPES),
        {
            "CIFAR-10": list(clean.values()),
            "CIFAR-10-C": list(corrupted.values()),
            "icons, unseen style": list(styles.values()),
        },
        "accuracy, %",
    )
    said.write("Interventions against corruptions and against a new style")
    return held


#: Its Table 4, in the order ImageNet-C, ImageNet-R; on noise and on adversaries, from Table 8
#: (mCE) and Table 1.
PAPER_SAYS = {
    "Diverse Data Augmentation": "ImageNet-C +, ImageNet-R +",
    "Noise": "mCE 76.7 to 68.3, ImageNet-R error 63.9 to 62.1",
    "Adversarial Training": "mCE 76.7 to 94.0, ImageNet-R error 63.9 to 68.6",
    "Synthetic does not imply Natural": "refuted by ImageNet-R",
}


if __name__ == "__main__":
    given = arguments(__doc__, "study-cifar")
    main(given.output, "small" if given.small else "full" if given.full else "usual")
