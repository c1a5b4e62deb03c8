"""
Five raters on a scale from 1 to 5
==================================

Some raters are harsh, some lenient, some careful. The order of the steps shows how far off a
rating is, and methods that know it need fewer ratings.
"""

import matplotlib.pyplot as plt
import numpy as np

import dissensus as ds

drawn = ds.simulate("ordinal", n_items=300, n_annotators=5, n_classes=5, seed=3)
ratings = drawn.annotations.with_scale("ordinal")
truth = np.asarray(drawn.truth)

# %%
# How five people use the scale: the mean of their ratings for each true step.

figure, axes = plt.subplots(figsize=(5, 4))
for k, name in enumerate(ratings.annotators.tolist()):
    own = ratings.annotator == k
    true, given = truth[ratings.item[own]], ratings.label[own]
    means = [given[true == step].mean() + 1 for step in range(5)]
    axes.plot(range(1, 6), means, "o-", label=f"rater {name}")
axes.plot([1, 5], [1, 5], color="0.6", linewidth=1)
axes.set(xlabel="true step", ylabel="mean rating")
axes.legend()
plt.show()

# %%
# How far the inferred step is from the true one, for a few methods.

methods = ["majority", "dawid-skene", "hierarchical", "ordinal-distance", "auto"]
away = [np.abs(ds.aggregate(ratings, one).label - truth).mean() for one in methods]
figure, axes = plt.subplots(figsize=(5, 2.6))
axes.barh(methods[::-1], away[::-1])
axes.set(xlabel="mean distance to the true step")
plt.tight_layout()
plt.show()
