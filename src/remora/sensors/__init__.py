"""Sensors and monitors: components that measure the robot or watch signals."""
