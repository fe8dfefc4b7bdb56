"""Interactive browser pages: server, run page, robot page, plots."""
