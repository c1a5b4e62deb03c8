"""A data set's own script, run as peerannot runs it, only for `install --trust-code`."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import chdir
from pathlib import Path

from ..errors import DataError

_NAME = "dataset"  # the name under which scripts are imported


def set_folders(script: Path, folder: Path) -> None:
    """Call `setfolders()` of the first class that has it, in the folder."""
    spec = importlib.util.spec_from_file_location(_NAME, script)
    if spec is None or spec.loader is None:
        raise DataError(f"{script}: cannot be run as Python")
    module = importlib.util.module_from_spec(spec)
    with chdir(folder):
        sys.modules[_NAME] = module
        try:
            spec.loader.exec_module(module)
            makers = [
                one
                for one in vars(module).values()
                if isinstance(one, type) and one.__module__ == _NAME and hasattr(one, "setfolders")
            ]
            if not makers:
                raise DataError(f"{script}: no class with setfolders() in it")
            makers[0]().setfolders()
        except DataError:
            raise
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise DataError(f"{script}: its code failed ({reason})") from problem
        finally:
            sys.modules.pop(_NAME, None)
