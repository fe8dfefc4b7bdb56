"""The end of a session says how many tests were skipped for each reason."""

from collections import Counter


def _reason(report):
    """Return the reason of a skipped test without the words that pytest puts before it."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter):
    """Say what was skipped and why, most tests first."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped: {count:,} {reason}")
