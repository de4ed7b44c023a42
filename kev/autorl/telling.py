"""What an agent is told: `instructions.md`, beside the task's own description."""


def instructions(timeout_s: float, submissions: int) -> str:
    """The rules of a run, for whoever works in its workspace. They are those of docs/autorl.md, and no others."""
    return f"""# Instructions

Post-train the base model on the task in `description.md`. You have {timeout_s:,.0f} seconds from the moment that you
were started; at the end of them every process that you started is ended, and what was submitted before is graded.

- `$MODEL_PATH` is the base model and `$DATA_PATH` the training data; leave both as they are.
- Programs go to `code/`, models to `output/`, each in a directory of its own: whole weights as safetensors, with
  `config.json` and the tokenizer. An adapter has to be merged first.
- Submit with `python -m kev.autorl submit output/v1`, or `POST $GRADING_SERVER_URL/submit` with
  `{{"model_path": "output/v1"}}`. The answer has the score on the validation items.
- At most {submissions} different models are graded. The final is graded on hidden items, for the submission that
  `POST $GRADING_SERVER_URL/choose` names, else for your best.
- `GET $GRADING_SERVER_URL/time` has what is left; `$NOTICES` gets a line at 50, 10 and 2 % of it.
- Keep a journal: after each round, `python -m kev.autorl journal append --submission N --what "..." --why "..."`, where
  why rests on what the round before showed. Figures, settings and code are put in for you; `journal check` says what in
  the journal is not so.
- Scores, clock and baseline are the grader's: `scores.json`, `run_meta.json` and `final.json` are copies, and editing
  them is noted. A copy of the base is no change, and a model that was not made from the base is not graded.
"""
