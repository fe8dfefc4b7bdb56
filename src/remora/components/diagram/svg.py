"""A drawing as SVG: self-contained, and dark where the reader prefers dark pages."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from remora.components.diagram.shapes import (
    OUTLINES,
    STYLES,
    Diamond,
    Drawing,
    Rectangle,
    Shape,
    TextShape,
    Wire,
)

_FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


def svg(drawing: Drawing) -> str:
    """Return an SVG document."""
    light, dark = (_rules(k) for k in (0, 1))
    heads = "".join(
        f'<marker id="remora-{s}" viewBox="0 0 8 8" refX="7.2" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto" markerUnits="userSpaceOnUse">'
        f'<path d="M0,0.6L8,4L0,7.4z" class="f-{s}"/></marker>'
        for s in ("signal", "action", "state")
    )
    body = "\n".join(_drawn(shape) for shape in drawing.shapes)
    w, h = drawing.width, drawing.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="remora-diagram" width="{w:g}" '
        f'height="{h:g}" viewBox="0 0 {w:g} {h:g}" style="max-width:100%;height:auto" role="img" '
        f"aria-label={quoteattr(drawing.title)}>\n<title>{escape(drawing.title)}</title>\n"
        f"<style>.remora-diagram text{{font-family:{_FONT}}}{light}"
        f"@media (prefers-color-scheme: dark){{{dark}}}</style>\n<defs>{heads}</defs>\n"
        f"{body}\n</svg>\n"
    )


def _rules(k: int) -> str:
    """Return style rules of all colours, light (0) or dark (1)."""
    return "".join(
        f".remora-diagram .f-{name}{{fill:{colours[k]}}}"
        f".remora-diagram .s-{name}{{stroke:{colours[k]}}}"
        for name, colours in STYLES.items()
    )


def _drawn(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        outline = OUTLINES.get(shape.style)
        line = f' s-{outline}" stroke-width="1.2"' if outline else '"'
        return (
            f'<rect x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" '
            f'height="{shape.height:g}" rx="{shape.radius:g}" class="f-{shape.style}{line}/>'
        )
    if isinstance(shape, Wire):
        points = " ".join(f"{x:g},{y:g}" for x, y in shape.points)
        dash = ' stroke-dasharray="5 3"' if shape.style == "state" else ""
        head = f' marker-end="url(#remora-{shape.style})"' if shape.arrow else ""
        x, y = shape.points[0]
        dot = f'<circle cx="{x:g}" cy="{y:g}" r="3" class="f-{shape.style}"/>' if shape.dot else ""
        return (
            f'<polyline points="{points}" fill="none" stroke-width="1.5" stroke-linejoin="round" '
            f'class="s-{shape.style}"{dash}{head}/>{dot}'
        )
    if isinstance(shape, Diamond):
        x, y, s = shape.x, shape.y, shape.size
        corners = f"M{x:g},{y - s:g}l{s:g},{s:g}l-{s:g},{s:g}l-{s:g},-{s:g}z"
        return f'<path d="{corners}" class="f-{shape.style}"/>'
    return _text(shape)


def _text(shape: TextShape) -> str:
    weight = ' font-weight="600"' if shape.bold else ""
    return (
        f'<text x="{shape.x:g}" y="{shape.y:g}" dy="0.35em" font-size="{shape.size:g}" '
        f'text-anchor="{shape.anchor}" class="f-{shape.style}"{weight}>{escape(shape.text)}</text>'
    )
