"""
Compare methods without knowing the truth
=========================================

Labels are hidden, and every method has to predict them. That needs no truth; where the truth is
known, as here, both can be seen.
"""

import matplotlib.pyplot as plt

import dissensus as ds

annotations, truth = ds.demo()
methods = ["majority", "wawa", "one-coin", "glad", "mace", "dawid-skene", "hierarchical"]
comparison = ds.compare(annotations, methods, truth=truth)
print(comparison.to_pandas().iloc[:, [0, 1, 2, 8]].to_string(index=False))

# %%
# Held-out likelihood (no truth needed) beside accuracy (truth needed).

table = comparison.to_pandas()
figure, axes = plt.subplots(figsize=(5.5, 4))
axes.scatter(table["held_out"], table["accuracy"], s=50)
for _, row in table.iterrows():
    axes.annotate(row["method"], (row["held_out"], row["accuracy"]), fontsize=8)
axes.set(xlabel="log-likelihood of held-out labels", ylabel="accuracy")
plt.show()
