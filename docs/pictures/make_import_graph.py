"""The import graph of Remora: which package imports which, drawn; cycles and hubs, printed.

    python docs/pictures/make_import_graph.py                      # draws import_graph.png
    python docs/pictures/make_import_graph.py SRC OUT.png          # of another source folder

Imports inside functions count, too.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def module_files(source: Path) -> dict[str, Path]:
    """Return every module below a source folder by its dotted name."""
    files = sorted(source.rglob("*.py"))
    names = [".".join(f.relative_to(source).with_suffix("").parts) for f in files]
    return {n.removesuffix(".__init__"): f for n, f in zip(names, files, strict=True)}


def imports(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Return what each module imports of the others."""
    edges: dict[str, set[str]] = {name: set() for name in modules}
    for name, file in modules.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    target = full if full in modules else node.module
                    if target in modules and target != name:
                        edges[name].add(target)
            elif isinstance(node, ast.Import):
                edges[name] |= {a.name for a in node.names if a.name in modules} - {name}
    return edges


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(stack[at:])
            del stack[at:]

    for node in edges:
        if node not in index:
            visit(node)
    return found


def package(name: str, modules: dict[str, Path]) -> str:
    """Return the package of a module without the leading `remora.`: `dynamics.recursive`."""
    parts = name.split(".")[1:] if modules[name].name == "__init__.py" else name.split(".")[1:-1]
    return ".".join(parts) or "remora"


def levels(edges: dict[str, set[str]]) -> dict[str, int]:
    """Return how far each package stands above those that import nothing."""
    height = dict.fromkeys(edges, 0)
    for _ in edges:
        for name, targets in edges.items():
            below = [height[t] + 1 for t in targets if t != name and name not in edges[t]]
            height[name] = min(max([height[name], *below]), len(edges))
    return height


def draw(edges: dict[str, set[str]], file: Path) -> None:
    """Draw packages in rows, importers above what they import."""
    import matplotlib.pyplot as plt

    rows: dict[int, list[str]] = defaultdict(list)
    for name, level in levels(edges).items():
        rows[level].append(name)
    place: dict[str, tuple[float, float]] = {}
    for y, level in enumerate(sorted(rows)):
        names = sorted(rows[level])
        for k, name in enumerate(names):
            place[name] = ((k - 0.5 * (len(names) - 1)) * 2.6 + 0.5 * (y % 2), float(y))
    figure, axes = plt.subplots(figsize=(14, 0.62 * len(rows) + 1))
    colors = dict(
        zip(sorted({n.split(".")[0] for n in edges}), plt.cm.tab10.colors * 2, strict=False)
    )
    for name, targets in edges.items():
        for target in targets:
            (x0, y0), (x1, y1) = place[name], place[target]
            style = "-" if y1 < y0 else "--"
            axes.plot(
                [x0, x1], [y0, y1], style, color=colors[name.split(".")[0]], lw=0.7, alpha=0.45
            )
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": colors[name.split(".")[0]]}
        axes.text(x, y, name, ha="center", va="center", fontsize=7.5, bbox=box)
    axes.set_axis_off()
    axes.margins(0.08)
    figure.subplots_adjust(0, 0, 1, 1)
    figure.savefig(file, dpi=110)


def main() -> None:
    """Print the hubs and the cycles, and draw."""
    arguments = sys.argv[1:]
    source = Path(arguments[0]) if arguments else ROOT / "src"
    modules = module_files(source)
    edges = imports(modules)
    between: dict[str, set[str]] = defaultdict(set)
    for name, targets in edges.items():
        between[package(name, modules)] |= {package(t, modules) for t in targets}
    between = {k: v - {k, "remora"} for k, v in between.items() if k != "remora"}
    for targets in list(between.values()):
        for target in targets:
            between.setdefault(target, set())
    fan_in = {n: sum(n in targets for targets in edges.values()) for n in edges}
    print(f"{len(modules)} files, {sum(map(len, edges.values()))} imports")
    print("cycles between files:", cycles(edges) or "none")
    print("hubs: file, imported by, imports")
    for name in sorted(fan_in, key=lambda n: -fan_in[n])[:12]:
        print(f"| `{name.removeprefix('remora.')}` | {fan_in[name]} | {len(edges[name])} |")
    out = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).with_name("import_graph.png")
    draw(between, out)


if __name__ == "__main__":
    main()
