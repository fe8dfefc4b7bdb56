"""Time stepping inside machine code: a state carried through many steps."""
