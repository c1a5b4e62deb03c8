"""Few-shot learning from noisy annotators: meta-learning on source tasks; needs torch.

source ─Tasks─▶ episodes ─train─▶ embedding ─Adapter.adapt─▶ classifier of a new task
"""
