"""The 3D scene: shapes of the robot, triangulated surfaces, materials, overlays."""
