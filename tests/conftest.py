"""Property tests run on shared, noisy machines: no deadlines."""

from hypothesis import settings

settings.register_profile("dissensus", deadline=None)
settings.load_profile("dissensus")
