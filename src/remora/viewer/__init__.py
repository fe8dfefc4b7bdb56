"""Looking at robots and runs: a page in the browser, and files that play by themselves."""
