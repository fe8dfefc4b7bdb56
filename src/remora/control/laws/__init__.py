"""Control laws as components: rates, torques, base and end-effector, impedance, wheels."""
