"""Where a training runs: device, precision, and the other processes, through lightning-fabric.

Several processes are started by `torchrun`; without it there is one. A worker whose launcher was
killed ends at its next step, so that it does not write into the folder of the next run.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import OptionError, install_command

if TYPE_CHECKING:
    from .batches import Batch
    from .settings import Training

_PRECISION: dict[str, Any] = {"32": "32-true", "bf16": "bf16-mixed"}


class Devices:
    """One of `ranks` processes, and its communication with the others."""

    def __init__(self, fabric: Any) -> None:
        self._fabric = fabric
        self._launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self.rank: int = fabric.global_rank
        self.ranks: int = fabric.world_size
        self.device: torch.device = fabric.device

    def setup(self, network: nn.Module) -> Any:
        """Return a network that adds up gradients over processes, in the chosen precision."""
        with quiet("lightning_fabric"):
            return self._fabric.setup_module(network)

    def move(self, batch: Batch) -> Batch:
        """Return a batch on this device."""
        if self.device.type == "cpu":
            return batch
        return type(batch)(*(part.to(self.device, non_blocking=True) for part in batch))

    def backward(self, loss: Tensor) -> None:
        """Compute gradients."""
        self._fabric.backward(loss)

    def add_up(self, value: float) -> float:
        """Return the sum of a number over all processes."""
        if self.ranks == 1:
            return value
        return float(self._all(torch.tensor(value, dtype=torch.float64)).sum())

    def gather(self, value: Tensor) -> Tensor:
        """Return a tensor of every process: (process, …)."""
        return value.cpu()[None] if self.ranks == 1 else self._all(value).cpu()

    def share_statistics(self, network: nn.Module) -> None:
        """Average the running statistics of batch normalisation over processes."""
        if self.ranks == 1:
            return
        for module in network.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                for value in (module.running_mean, module.running_var):
                    if value is not None:
                        value.copy_(self._all(value).mean(dim=0))

    def barrier(self) -> None:
        """Wait for the other processes."""
        if self.ranks > 1:
            self._fabric.barrier()

    def check_launcher(self) -> None:
        """Fail if the launcher of this worker has ended."""
        if self._launcher is not None and os.getppid() != self._launcher:
            raise OptionError("the launcher of this worker has ended, and so does the worker")

    def random_states(self) -> Tensor:
        """Return the random states of all processes: (process, byte)."""
        states = [torch.get_rng_state()]
        if self.device.type == "cuda":
            states.append(torch.cuda.get_rng_state(self.device))
        return self.gather(torch.cat(states))

    def restore_random(self, states: Tensor, *position: int) -> None:
        """Restore the random states of a checkpoint; with another number of processes, reseed."""
        if len(states) != self.ranks:
            torch.manual_seed(mixed(*position, self.rank))
            return
        size = len(torch.get_rng_state())
        state = states[self.rank].to(torch.uint8)
        torch.set_rng_state(state[:size].clone())
        if self.device.type == "cuda" and len(state) > size:
            torch.cuda.set_rng_state(state[size:].clone(), self.device)

    def _all(self, value: Tensor) -> Tensor:
        value = value.to(self.device).contiguous()
        values = [torch.empty_like(value) for _ in range(self.ranks)]
        torch.distributed.all_gather(values, value)
        return torch.stack(values)


def devices_for(settings: Training) -> Devices:
    """Return the device of this process, connected to the other processes."""
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.strategies.ddp import DDPStrategy
    except ImportError as problem:
        raise OptionError(
            f"training needs lightning-fabric: {install_command('deep')} ({problem})"
        ) from None
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if settings.devices not in (1, ranks):
        raise OptionError(
            f"{settings.devices} devices, but {ranks} processes; start it with "
            f"torchrun --nproc-per-node {settings.devices}"
        )
    if settings.precision == "bf16" and not torch.cuda.is_available():
        _check_bf16()
    strategy: Any = "auto"
    if ranks > 1:
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        # Parameters may be unused in a warm-up; every process has its own buffers.
        strategy = DDPStrategy(
            process_group_backend=backend, find_unused_parameters=True, broadcast_buffers=False
        )
    with quiet("lightning_fabric"):
        fabric = Fabric(
            accelerator="cuda" if torch.cuda.is_available() else "cpu",
            devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
            num_nodes=ranks // int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
            strategy=strategy,
            precision=_PRECISION[settings.precision],
        )
        fabric.launch()
    return Devices(fabric)


@lru_cache
def _check_bf16() -> None:
    """Fail where bf16 crashes, as on virtual machines with Intel's AMX flag but without AMX.

    It is tried in a process of its own.
    """
    if not torch.cpu._is_amx_tile_supported() or "ONEDNN_MAX_CPU_ISA" in os.environ:
        return
    trial = (
        "import torch; from torch.nn.functional import linear\n"
        "with torch.autocast('cpu', dtype=torch.bfloat16):"
        " linear(torch.ones(64, 8), torch.ones(16, 8))"
    )
    if subprocess.run([sys.executable, "-c", trial], capture_output=True, check=False).returncode:
        raise OptionError(
            "this machine cannot compute in bf16; take precision 32, or set "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment"
        )


@contextmanager
def seeded(device: torch.device, *parts: int) -> Iterator[None]:
    """Seed random numbers by several numbers, and restore the caller's state afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(mixed(*parts))
        settings = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        try:
            yield
        finally:
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = settings


@contextmanager
def torch_seed(seed: int) -> Iterator[None]:
    """Seed torch on the CPU, and restore the caller's random state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def mixed(*parts: int) -> int:
    """Return one seed for several numbers."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """Silence warnings, and the messages of these loggers."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
