"""
A label for every item, and how sure it is
==========================================

Forty people labelled 500 photos of camera traps. We infer the label of every photo, and check
whether the stated confidence is honest: the demo data come with the truth.
"""

import matplotlib.pyplot as plt
import numpy as np

import dissensus as ds

annotations, truth = ds.demo()
print(annotations)

# %%
# Without a method, several are fitted and averaged. `confidence` is calibrated; `posterior` is
# what a
# model claims by itself.

result = ds.aggregate(annotations)
model = ds.aggregate(annotations, "dawid-skene")
known = np.array([truth[item] for item in annotations.items.tolist()])
print(f"right: {np.mean(result.labels == known):.1%} of the labels")

# %%
# Labels are sorted by confidence and cut into five groups of a hundred. On the diagonal, a group
# is right
# as often as it claims to be. Dawid-Skene's own probabilities are far too sure.


def groups(confidence, right):
    order = np.argsort(confidence)
    parts = np.array_split(order, 5)
    return [confidence[p].mean() for p in parts], [right[p].mean() for p in parts]


figure, axes = plt.subplots(figsize=(5, 4.2))
axes.plot([0.3, 1], [0.3, 1], color="0.6", linewidth=1)
axes.plot(*groups(result.confidence, result.labels == known), "o-", label="auto, calibrated")
sure = model.posterior.max(axis=1)
axes.plot(*groups(sure, model.labels == known), "s-", label="Dawid-Skene as it is")
axes.set(xlabel="stated confidence", ylabel="share of right labels")
axes.legend()
plt.show()
