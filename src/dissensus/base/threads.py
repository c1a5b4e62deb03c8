"""Threads of linear algebra: one, where matrices are small."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy and SciPy multiply matrices on one thread.

    Threads of BLAS spin while they wait: fits of small matrices take up to thirty times the CPU
    time with two threads on a busy machine. Without threadpoolctl nothing changes.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(1, "blas")
