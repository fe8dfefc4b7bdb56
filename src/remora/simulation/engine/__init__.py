"""The run loop: arguments, model, phases, steps, events, progress."""
