"""Few labelled items and shaky annotators: what other tasks teach about a new one; needs torch.

source ─Tasks─▶ episodes ─train─▶ embedding ─Adapter.adapt─▶ a classifier of the new task
"""
