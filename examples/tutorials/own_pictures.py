# %% [markdown]
# # How does my classifier fail on my own pictures?
#
# You have a classifier in production, its previous version, and a folder of labelled pictures of
# the kind it meets there. Before shipping you want to know what breaks it, by how much, and how
# sure you can be of that. Here twenty ImageNet photographs play your pictures, EfficientNet-Lite0
# your new model and SqueezeNet its predecessor: real ones, which `shiftbed fetch` brings. With
# your own, write `"photos/val"` for the set and `"onnx:mine.onnx"` for a model.

# %%
import shiftbed as sb

run = sb.evaluate(
    {"new": "package:efficientnet_lite0", "last": "package:squeezenet1_1_keras"},
    ["+{clean,gaussian_noise.*,defocus_blur.*,fog.*,jpeg_compression.*}"],
    "imagenet-photos",
    baseline="last",
    results="results",
    quiet=True,
)
print(run)

# %% [markdown]
# Every number has its interval, and with twenty pictures the intervals are wide: that is the first
# finding. One picture is five points. For a difference of two points, bring a thousand.
#
# The summary line divides errors under corruption by the predecessor's: below 100% means fewer
# errors than `last`. It is a mean over four corruptions here; over all fifteen (`"imagenet-c"`
# in place of the pattern) it is called mCE.
#
# ## Where is it worst?

# %%
rows = [row for row in run.table().to_pylist() if row["model"] == "new"]
for row in sorted(rows, key=lambda row: row["accuracy"])[:4]:
    print(f"{row['setting']:40} {row['accuracy']:.2f} [{row['low']:.2f}, {row['high']:.2f}]")

# %% [markdown]
# ## Does it know that it fails?
#
# A model that is wrong and unsure can ask for help; one that is wrong and sure cannot be caught.
# Every prediction is kept, so the question is one query.

# %%
query = """
    select setting, count(*) as wrong, round(avg(confidence), 2) as confidence
    from predictions
    where model = 'new' and rank_true > 1
    group by setting order by wrong desc, setting limit 5
"""
for row in run.sql(query).to_pylist():
    print(row)

# %% [markdown]
# ## Which pictures break it?

# %%
query = """
    select picture, count(*) as failures from predictions
    where model = 'new' and rank_true > 1 and setting like '%+%'
    group by picture order by failures desc, picture limit 5
"""
for row in run.sql(query).to_pylist():
    print(row)

# %% [markdown]
# A picture that fails everywhere, clean included, may be labelled wrong: look at it.
#
# ## Is the new version better than the last?
#
# Two accuracies whose intervals overlap can still differ clearly, since both models saw the same
# pictures. The paired comparison uses that. It is also what `shiftbed compare new last` prints.

# %%
from shiftbed.studies import compare_corruptions

[row] = compare_corruptions(run.results, "new", "last").to_pylist()
change = f"[{row['low']:.2f}, {row['high']:.2f}]"
print(f"{row['mce']:.2f} of the errors, change {change}, p {row['p']:.1e}")

# %% [markdown]
# That is decided even with twenty pictures, because the difference is large. To have it checked in
# every pull request, see [Guard a model in CI](ci.md).
