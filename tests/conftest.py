"""Property tests run on shared, noisy machines and over all methods: no deadlines, few examples."""

from hypothesis import settings

settings.register_profile("dissensus", deadline=None, max_examples=25)
settings.load_profile("dissensus")
