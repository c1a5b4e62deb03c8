"""Names on a terminal: control characters are shown and not obeyed."""

from __future__ import annotations

_UNPRINTABLE = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"]
_UNPRINTABLE += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]  # they reorder what is shown
_VISIBLE = {code: f"\\u{code:04x}" for code in _UNPRINTABLE}


def printable(text: str) -> str:
    r"""Return a text with control characters made visible: they could rule a terminal.

    >>> printable("ann\x1b[31m")
    'ann\\u001b[31m'
    """
    return text.translate(_VISIBLE)
