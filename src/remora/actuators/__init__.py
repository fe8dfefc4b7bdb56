"""Actuators: components that turn commands into forces and torques on the robot."""
