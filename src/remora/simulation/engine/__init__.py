"""Run loop of a single simulation: arguments, model, phases, steps, events, progress."""
