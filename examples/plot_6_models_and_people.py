"""
May a model replace annotators?
===============================

Three people and two models label the same texts. Is a model as close to people as people are to
each other?
"""

import matplotlib.pyplot as plt
import numpy as np

import dissensus as ds

rng = np.random.default_rng(2)
n = 300
truth = rng.random(n) < 0.3
skill = {"ann": 0.85, "bob": 0.82, "cem": 0.86, "model:large": 0.9, "model:small": 0.55}
rows = []
for name, p in skill.items():
    right = rng.random(n) < p
    labels = np.where(right, truth, ~truth)
    rows += [(f"t{i}", name, "yes" if labels[i] else "no") for i in range(n)]
item, annotator, label = zip(*rows, strict=True)
annotations = ds.Annotations.from_columns(item, annotator, label)

# %%
# Models are recognised by the prefix. The alternative annotator test compares each of them with
# people.

judging = ds.judge(annotations)
for one in judging.replacement.models:
    print(
        f"{one.judge}: wins against {one.winning_rate:.0%} of the people; may replace one: "
        f"{one.passes}"
    )

# %%
# The same data as a picture: how often everybody agrees with each of the people.

people = ["ann", "bob", "cem"]
given = {name: np.array([text for _, who, text in rows if who == name]) for name in skill}
agreement = [[np.mean(given[a] == given[b]) if a != b else np.nan for b in people] for a in skill]
figure, axes = plt.subplots(figsize=(4.6, 3.8))
image = axes.imshow(agreement, cmap="Blues", vmin=0.5, vmax=1)
axes.set_xticks(range(3), people)
axes.set_yticks(range(5), list(skill))
for y, row in enumerate(agreement):
    for x, value in enumerate(row):
        if not np.isnan(value):
            axes.text(x, y, f"{value:.2f}", ha="center", va="center")
figure.colorbar(image, label="share of equal labels")
plt.tight_layout()
plt.show()
