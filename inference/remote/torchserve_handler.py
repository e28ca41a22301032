"""The handler inside a .mar: TorchServe's worker loads one model with this package's own code and answers with it.

`dynahit model archive` puts this file into the archive as handler.py, beside the code and the weights it needs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MODEL_FILE = "dynahit-model.json"


class Handler:
    """One model. TorchServe calls ``initialize`` once per worker and ``handle`` once per batch."""

    def initialize(self, context: Any) -> None:
        """Load the model that the archive names; a raised error keeps the worker from being called ready."""
        from inference.remote.archived import load_archived
        from inference.remote.service import ModelService

        model, texts = load_archived(Path(context.system_properties["model_dir"]))
        self.service = ModelService(model, texts)

    def handle(self, data: list[dict[str, Any]], _context: Any) -> list[dict[str, Any]]:
        """Answer every request of the batch; what a request asks stands in its body."""
        return self.service.answer([_body(row) for row in data])


def _body(row: dict[str, Any]) -> object:
    body = row.get("body", row.get("data"))
    if isinstance(body, bytes | bytearray | str):
        try:
            return json.loads(body)
        except ValueError:
            return None
    return body
