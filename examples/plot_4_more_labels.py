"""
What one more label is worth
============================

The same budget, spent evenly or where it is expected to help most. Labels are simulated, so every
answer that a plan asks for is known.
"""

import matplotlib.pyplot as plt
import numpy as np

import dissensus as ds

drawn = ds.simulate("hammer-spammer[ratio=0.4]", n_items=200, n_annotators=20, n_classes=4, seed=5)
everything, truth = drawn.annotations, np.asarray(drawn.truth)
matrix = np.full((everything.n_items, everything.n_annotators), -1)
matrix[everything.item, everything.annotator] = everything.label

# %%
# Begin with two labels for each item, then ask for forty more at a time.


def accuracy(pairs):
    item, annotator = np.array(sorted(pairs)).T
    seen = ds.Annotations.from_codes(
        item,
        annotator,
        matrix[item, annotator],
        items=everything.items,
        annotators=everything.annotators,
        classes=everything.classes,
    )
    return seen, float((ds.aggregate(seen, "hierarchical").label == truth).mean())


def spend(policy, steps=8, batch=40):
    rng = np.random.default_rng(0)
    pairs = {(i, int(a)) for i in range(200) for a in rng.choice(20, 2, replace=False)}
    curve = []
    for _ in range(steps):
        seen, right = accuracy(pairs)
        curve.append((len(pairs) / 200, right))
        plan = ds.plan(seen, policy=policy, budget=batch)
        pairs |= set(zip(plan.item.tolist(), plan.annotator.tolist(), strict=True))
    return np.array(curve)


figure, axes = plt.subplots(figsize=(5.5, 3.8))
for policy in ("joint", "uncertainty", "random"):
    labels, right = spend(policy).T
    axes.plot(labels, 100 * right, "o-", label=policy)
axes.set(xlabel="labels per item", ylabel="right labels in percent")
axes.legend()
plt.show()
