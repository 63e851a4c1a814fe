"""scipy's own tests of `quadratic_assignment` hold with only the import changed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

IMPORT = "from scipy.optimize import quadratic_assignment, OptimizeWarning"
OURS = "from scipy.optimize import OptimizeWarning\nfrom quadmatch import quadratic_assignment"


def test_scipys_own_tests_pass(tmp_path: Path):
    folder = Path(find_spec("scipy.optimize").origin).parent
    file = folder / "tests" / "test_quadratic_assignment.py"
    if not file.exists():
        pytest.skip(f"this scipy comes without its tests: {file} is missing")
    text = file.read_text()
    if IMPORT not in text:
        pytest.skip(f"{file} imports quadratic_assignment in another way than the one that is replaced here")
    (tmp_path / "test_theirs.py").write_text(text.replace(IMPORT, OURS))
    # Which random numbers scipy will stop taking in its next versions is its own affair.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not deprecation"]
    done = subprocess.run([*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
