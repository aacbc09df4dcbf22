"""What a user installs holds everything that the package needs at run time."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_carries_every_file_of_the_package(tmp_path: Path) -> None:
    sources = (ROOT / "src").rglob("*")
    expected = {
        str(path.relative_to(ROOT / "src"))
        for path in sources
        if path.suffix in {".py", ".sql", ".typed"} and path.is_file()
    }

    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    assert "telecine/py.typed" in expected
    assert expected - packed == set()
