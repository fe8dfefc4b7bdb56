"""Pages in the browser: server, run page, robot page, plots."""
