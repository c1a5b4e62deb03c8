"""
Whom to trust
=============

Annotators are judged by how far their answers follow the items, compared with the answers of the
others, and not by how often they agree with the majority.
"""

import matplotlib.pyplot as plt
import numpy as np

import dissensus as ds

annotations, _ = ds.demo()
found = ds.identify(annotations)
table = found.table()
print(found.verdict_counts)

# %%
# Every annotator with a 95 % interval. At zero, answers do not depend on the photo. Two
# annotators always
# give the same answer, so nothing can be correlated with it; they have no point.

order = np.argsort(np.nan_to_num(table["correlation"], nan=-1))
random = table["verdict"] == "random"
figure, axes = plt.subplots(figsize=(6, 7.5))
for y, at in enumerate(order):
    colour = "tab:red" if random[at] else "tab:blue"
    axes.plot([table["correlation_low"][at], table["correlation_high"][at]], [y, y], color=colour)
    axes.plot(table["correlation"][at], y, "o", color=colour)
axes.axvline(0, color="0.6", linewidth=1)
axes.set_yticks(range(len(order)), table["annotator"][order], fontsize=7)
axes.set(xlabel="how far answers follow the items")
plt.tight_layout()
plt.show()

# %%
# The evidence in words:

for name, verdict, evidence in zip(table["annotator"], found.verdict, found.evidence, strict=True):
    if verdict != "attentive":
        print(f"{name}: {evidence}")
