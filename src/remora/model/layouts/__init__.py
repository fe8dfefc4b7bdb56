"""Conversion of states to and from the layouts of Pinocchio, MuJoCo and SPART."""
