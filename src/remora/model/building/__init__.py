"""The builder: validation, tree order, merging of fixed bodies."""
