"""The p-values of alibi-detect's RegressorUncertaintyDrift for windows from files; run where alibi-detect is installed.

python benchmarks/watching/alibi.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from alibi_detect.cd import RegressorUncertaintyDrift


def main() -> None:
    """For each `asked-*.npz` an `answered-*.npz`: the means of all members go in, p-values by window come out."""
    for path in sorted(Path(sys.argv[1]).glob("asked-*.npz")):
        target = path.with_name(path.name.replace("asked", "answered"))
        if target.exists():
            continue
        given = np.load(path)
        # The inputs are the predictions of the ensemble already, so the model passes them on.
        detector = RegressorUncertaintyDrift(
            given["reference"].astype(np.float32), torch.nn.Identity(), backend="pytorch", uncertainty_type="ensemble"
        )
        rows, found = given["rows"], np.empty(given["windows"].shape[:2])
        for stream, windows in enumerate(given["windows"]):
            for window, chosen in enumerate(windows):
                answer = detector.predict(rows[chosen].astype(np.float32))
                found[stream, window] = float(np.ravel(answer["data"]["p_val"])[0])
        np.savez(target, p_values=found)
        print(target.name, flush=True)


if __name__ == "__main__":
    main()
