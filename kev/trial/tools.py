"""The real tools of a trial on this machine: kev.train, and checkpoints scored by torch."""

from pathlib import Path
from typing import Any

from kev.errors import UsageError
from kev.trial.job import Tools
from kev.trial.scoring import TrialScorer


def torch_tools(device: str | None = None, **settings: Any) -> Tools:
    """Tools that compute on `device`, or on the best there is; `settings` are further fields of `Tools`.

    Raises UsageError where torch is missing.
    """
    try:
        import torch
    except ImportError:
        raise UsageError("training needs torch: install the extra, `pip install 'kevtui[train]'`") from None
    from kev.predictors.checkpoint import CheckpointScorer
    from kev.train import run_training

    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")

    def open_scorer(checkpoint: Path) -> TrialScorer:
        scorer = CheckpointScorer(str(checkpoint), device=chosen, temperature=1.0)
        for remark in scorer.remarks:
            tools.say(f"!!! {remark}")
        return scorer

    tools = Tools(run_training, open_scorer, chosen, **settings)
    return tools
