"""`import quadmatch` costs little more than torch, and brings no library that only some users need."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys, time
import torch
start = time.process_time()
import jaxtyping, numpy, safetensors.torch
libraries = time.process_time() - start
before = set(sys.modules)
start = time.process_time()
import quadmatch
own = time.process_time() - start
print(json.dumps({"own": own, "new": sorted({name.partition(".")[0] for name in set(sys.modules) - before})}))
"""
HEAVY = {
    "PIL", "fastapi", "matplotlib", "networkx", "numba", "pydantic", "rich", "scipy", "skimage", "tensorboard", "typer"
}  # fmt: skip


def _import() -> dict:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_import_is_light() -> None:
    found = _import()
    assert not HEAVY & set(found["new"])


def test_import_costs_a_small_part_of_torch() -> None:
    torch = "import time; s = time.process_time(); import torch; print(time.process_time() - s)"
    shares = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", torch], check=True, capture_output=True, text=True)
        shares.append(_import()["own"] / float(done.stdout))
    # 0.3 s beside the two seconds or so that torch takes; the best of three, as other programs may run.
    assert min(shares) < 0.2
