"""URDF files, and xacro templates of them."""
