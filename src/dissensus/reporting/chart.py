"""Small pictures without a library: SVG that any browser, editor or paper takes."""

from __future__ import annotations

from html import escape

from ..comparison import Comparison

__all__ = ["comparison_chart"]

_ROW, _LEFT, _WIDTH, _TOP = 24, 260, 420, 56
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.dim{fill:#777}"
    ".dot{fill:#1f6feb}.line{stroke:#1f6feb;stroke-width:2}.axis{stroke:#bbb}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.dim{fill:#999}svg{background:#111}}"
)


def comparison_chart(found: Comparison) -> str:
    """Return methods as dots with intervals: accuracy if known, else how far behind the best."""
    rows = []
    for one in found.methods:
        score = one.evaluation.scores["accuracy"] if one.evaluation else None
        if score is not None:
            rows.append((one.method, score.value, score.low, score.high))
        else:
            reach = 2 * one.error if one.error < float("inf") else 0.0
            rows.append((one.method, -one.behind, -one.behind - reach, -one.behind + reach))
    known = any(one.evaluation for one in found.methods)
    title = "Accuracy, with 95 % intervals" if known else "Log chance of left-out labels"
    under = (
        "share of items labelled right" if known else "difference to the best, ± 2 standard errors"
    )
    return _dots(title, under, rows)


def _dots(title: str, under: str, rows: list[tuple[str, float, float, float]]) -> str:
    low, high = min(row[2] for row in rows), max(row[3] for row in rows)
    margin = 0.05 * (high - low) or 0.05
    low, high = low - margin, high + margin
    height = _TOP + _ROW * len(rows) + 44
    width = _LEFT + _WIDTH + 40

    def x(value: float) -> float:
        return _LEFT + _WIDTH * (value - low) / (high - low)

    bottom = _TOP + _ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<text x="16" y="28" font-weight="600">{escape(title)}</text>',
        f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{bottom}" y2="{bottom}"/>',
    ]
    for step in range(5):
        value = low + (high - low) * step / 4
        at = f"{x(value):.1f}"
        parts.append(
            f'<line class="axis" x1="{at}" x2="{at}" y1="{_TOP - 8}" y2="{bottom}"/>'
            f'<text class="dim" x="{at}" y="{bottom + 16}" text-anchor="middle">{value:.3f}</text>'
        )
    for place, (name, value, least, most) in enumerate(rows):
        y = _TOP + _ROW * place + 8
        shown = name if len(name) <= 36 else f"{name[:35]}…"
        parts.append(
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(shown)}</text>'
            f'<line class="line" x1="{x(least):.1f}" x2="{x(most):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="dot" cx="{x(value):.1f}" cy="{y}" r="5">'
            f"<title>{escape(name)}: {value:.4f} ({least:.4f} to {most:.4f})</title></circle>"
        )
    parts.append(
        f'<text class="dim" x="{_LEFT + _WIDTH / 2}" y="{height - 8}" text-anchor="middle">'
        f"{escape(under)}</text></svg>"
    )
    return "\n".join(parts) + "\n"
