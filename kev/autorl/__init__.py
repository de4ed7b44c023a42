"""The bench in which an agent post-trains a model: a fixed time, a base model, a grader that it cannot reach.

workspace    the directory that a run happens in, and the paths in it
run_clock    one monotonic clock for a run, and its notices
run_log      the life cycle of a run, a line each
scores       scores.json, whoever wrote it: which entries count, and which is best
results      results.csv, a row for each run, read by its header

`kev.records.autorl` has the shapes of the files.
"""
