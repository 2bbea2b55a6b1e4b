"""What comes back from a guest is counted right, also if the guest did not come to its end."""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import guest  # noqa: E402
import machine  # noqa: E402
import run  # noqa: E402

REPORT = b'<testsuites><testsuite><testcase classname="a" name="good"/><testcase classname="a" name="bad"><failure/></testcase></testsuite></testsuites>'


def archive(file, reports, keep):
    """As a guest sends it; of the last report only a part when it was cut off."""
    data = io.BytesIO()
    for number, report in enumerate(reports):
        guest.write(data, f"{number}.xml", report)
    file.write_bytes(data.getvalue()[:keep])


def test_a_whole_archive(tmp_path):
    archive(tmp_path / "results.tar", [REPORT, REPORT], None)
    received = machine.unpack(tmp_path)
    assert received == {0: REPORT, 1: REPORT}
    machine.merge(received, ["one.py", "two.py"], tmp_path / "report.xml")
    assert run.count(tmp_path / "report.xml") == (2, ["a.bad", "a.bad"], 0)


def test_an_archive_that_was_cut_off(tmp_path):
    archive(tmp_path / "results.tar", [REPORT, REPORT], 1024 + 512 + 40)
    received = machine.unpack(tmp_path)
    assert received == {0: REPORT}
    machine.merge(received, ["one.py", "two.py"], tmp_path / "report.xml")
    assert run.count(tmp_path / "report.xml") == (1, ["a.bad", "two.py.whole"], 0)


def test_nothing_came(tmp_path):
    assert machine.unpack(tmp_path) == {}
    (tmp_path / "results.tar").write_bytes(b"")
    assert machine.unpack(tmp_path) == {}
