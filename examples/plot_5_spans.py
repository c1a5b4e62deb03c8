"""
Spans of several annotators
===========================

Five people mark places in sentences. Some miss marks, some mark too much. The consensus says which
spans are there, and how well everybody finds them.
"""

import matplotlib.pyplot as plt
import numpy as np

import dissensus as ds

rng = np.random.default_rng(5)
people = ("Ann", "Bob", "Cy", "Dee", "Eve")
rows, true = [], {}
for item in range(80):
    start = int(rng.integers(0, 6))
    true[f"s{item}"] = (start, start + 2)
    for j, name in enumerate(people):
        given = []
        if rng.random() < 0.97 - 0.12 * j:  # Eve finds about half of them
            shift = int(rng.random() < 0.1)
            given.append((start + shift, start + 2, "LOC"))
        if rng.random() < 0.05 + 0.04 * j:  # and invents some
            other = int(rng.integers(9, 14))
            given.append((other, other + 1, "LOC"))
        rows += [(f"s{item}", name, *mark) for mark in given or [(None, None, None)]]
spans = ds.Spans.from_columns(*map(list, zip(*rows, strict=True)))
print(spans)

# %%
# One call infers the spans. A row without marks is an answer too: somebody looked and found
# nothing.

result = ds.aggregate(spans)
found = set(zip(result.items["item"], result.items["start"], result.items["end"], strict=True))
right = sum((item, *span) in found for item, span in true.items())
print(f"{right} of {len(true)} true spans found, {len(found) - right} others")

# %%
# What is learned about the annotators: the share of spans that each finds, and spurious ones per
# text.

table = result.annotators
figure, axes = plt.subplots(figsize=(5, 3.4))
axes.scatter(table["spurious"], table["found"], s=60)
for name, x, y in zip(table["annotator"], table["spurious"], table["found"], strict=True):
    axes.annotate(name, (x, y), xytext=(6, 4), textcoords="offset points")
axes.set(xlabel="spurious marks per text", ylabel="share of spans found", ylim=(0, 1.05))
plt.show()
