# %% [markdown]
# # Is my method robust, or merely accurate?
#
# Better models are better everywhere: one with more clean accuracy nearly always has more accuracy
# under every natural shift too. A method makes a model *robust* only if it does better under a
# shift than models of the same clean accuracy. That excess is its effective robustness.
#
# ## From two accuracies
#
# You measured 76.3% on ImageNet's validation set and 64.1% on ImageNetV2, both with torchvision's
# crop. The package carries the fits through the ImageNet testbed's standard models, so two numbers
# and their n are enough:

# %%
from shiftbed.studies import placed

print(placed("imagenet-v2-matched-frequency", 76.3, 64.1, n=(50_000, 10_000)))

# %% [markdown]
# *Cannot tell* is an answer: the interval carries the error of both accuracies and of the fit. Now
# a model that was trained with AugMix and DeepAugment, on ImageNet-R, whose clean counterpart is
# ImageNet on the same 200 classes:

# %%
print(placed("imagenet-r", 92.3, 46.8, n=(10_000, 30_000)))

# %% [markdown]
# ## From results
#
# With your model's predictions at hand, evaluate on both sets (`shiftbed eval --setting
# imagenet-r --setting imagenet-val.imagenet-r-classes`), and ask the study. Here the accuracies
# come from a small table, as a colleague might send it; imported and measured cells can be mixed,
# and imported ones are marked.

# %%
from pathlib import Path

from shiftbed.results import Results, import_results

Path("ours.csv").write_text(
    """model,setting,accuracy,n
plain,imagenet-val.imagenet-r-classes,92.1,10000
plain,imagenet-r,36.4,30000
ours,imagenet-val.imagenet-r-classes,92.4,10000
ours,imagenet-r,40.3,30000
larger,imagenet-val.imagenet-r-classes,94.9,10000
larger,imagenet-r,43.7,30000
"""
)
import_results("ours.csv", "results")
results = Results("results")

# %%
from shiftbed.studies import Grid, baseline_for, effective_robustness_table

grid = Grid.from_cells(results.cells())
fit, published = baseline_for(grid, "imagenet-r")
for row in effective_robustness_table(grid, fit).to_pylist():
    interval = f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
    print(f"{row['model']:8} {100 * row['rho']:+.1f} {interval:14} {row['verdict']}")

# %% [markdown]
# `larger` is the more accurate one on ImageNet-R, and not the more robust one: models of its clean
# accuracy do about as well. `ours` gains less and means more.
#
# ## What could still fool you
#
# * **The wrong pair.** ImageNet-R has 200 classes. Against accuracy over all 1,000 every model
#   would look robust. The studies know each shift's counterpart and refuse another.
# * **One shift.** Gains on ImageNet-R seldom carry over to ImageNetV2 or ObjectNet. Report all of
#   those you measured.
# * **A synthetic one.** Lower mCE says nothing of natural shifts by itself:
#   `shiftbed study correlate` shows how little, over the testbed's models.
# * **Relative robustness.** A method applied to a model that it makes less accurate can raise ρ and
#   still lose accuracy under the shift: `--parent` shows the plain difference, τ, too.
