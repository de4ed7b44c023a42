"""One pydantic module per kind of file in runs/, experiments/ and evals/."""
