"""The robot builder: validation, tree order, merging of fixed bodies, physical checks."""
