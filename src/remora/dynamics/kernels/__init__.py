"""Where robots and code generation meet: `rm.compile`."""
