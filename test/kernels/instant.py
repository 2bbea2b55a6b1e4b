"""For pytest in a guest: shows a failure when it happens. A guest that is ended early has then said why."""


def pytest_runtest_logreport(report):
    if report.failed:
        print("\n" + report.longreprtext, flush=True)
