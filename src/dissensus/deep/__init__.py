"""Learning from inputs, with torch: networks, and what is learned from labels that disagree.

`nn` has inputs, encoders, the training loop and the base of estimators; on it stand `learning`
(one truth), `tendency` (what each annotator would say), `recovery` (how people would have split)
and `meta` (fifty items and five annotators). Nothing below imports it, so the core works without
torch. A method is a class in the file of its family and a line in the registry.
"""
