"""What comes back from a guest is counted right, also if the guest did not come to its end."""

import io
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import guest  # noqa: E402
import machine  # noqa: E402

REPORT = b'<testsuites><testsuite><testcase classname="a" name="good"/><testcase classname="a" name="bad"><failure/></testcase></testsuite></testsuites>'


def archive(file, reports, keep):
    """As a guest sends it; of the last report only a part when it was cut off."""
    data = io.BytesIO()
    for number, report in enumerate(reports):
        guest.write(data, f"{number}.xml", report)
    file.write_bytes(data.getvalue()[:keep])


def counted(received, directory):
    machine.merge(received, [["one.py::good", "one.py::bad"], ["two.py"]], directory / "report.xml")
    return machine.count(xml.parse(directory / "report.xml").getroot())


def test_a_whole_archive(tmp_path):
    archive(tmp_path / "results.tar", [REPORT, REPORT], None)
    received = machine.unpack(tmp_path)
    assert received == {0: REPORT, 1: REPORT}
    assert counted(received, tmp_path) == (2, ["a.bad", "a.bad"], 0)


def test_an_archive_that_was_cut_off(tmp_path):
    archive(tmp_path / "results.tar", [REPORT, REPORT], 1024 + 512 + 40)
    received = machine.unpack(tmp_path)
    assert received == {0: REPORT}
    assert counted(received, tmp_path) == (1, ["a.bad", "two.py.whole"], 0)


def test_nothing_came(tmp_path):
    assert machine.unpack(tmp_path) == {}
    (tmp_path / "results.tar").write_bytes(b"")
    assert machine.unpack(tmp_path) == {}
    assert counted({}, tmp_path) == (0, ["one.py.whole", "two.py.whole"], 0)


def test_a_file_of_which_nothing_ran(tmp_path):
    """As pytest reports it when it is asked for a test that is not there."""
    empty = b'<testsuites><testsuite name="pytest" tests="0"/></testsuites>'
    assert counted({0: REPORT, 1: empty}, tmp_path) == (1, ["a.bad", "two.py.whole"], 0)


def test_two_runs_in_one_tree(tmp_path):
    """The second waits until the first has read its results, and finds none of them."""
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import machine; from pathlib import Path\n"
            "with machine.own(Path(sys.argv[2])) as it: print(sorted(it.iterdir()))")
    with machine.own(tmp_path / "guest") as first:
        (first / "report.xml").touch()
        second = subprocess.Popen([sys.executable, "-c", code, str(Path(machine.__file__).parent), str(first)], stdout=subprocess.PIPE, text=True)
        assert "waits" in second.stdout.readline()
        assert (first / "report.xml").exists()
    assert second.communicate()[0] == "[]\n" and second.returncode == 0
