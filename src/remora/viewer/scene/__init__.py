"""The 3D scene: shapes, surfaces, overlays."""
