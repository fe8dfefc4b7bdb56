"""Block diagrams of systems: contents of the blocks, layout, wires, SVG and figures."""
