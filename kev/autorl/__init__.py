"""The bench in which an agent post-trains a model: a fixed time, a base model, a grader that it cannot reach.

workspace    the directory that a run happens in, and the paths in it
run_clock    one monotonic clock for a run, and its notices
run_log      the life cycle of a run, a line each
scores       scores.json, whoever wrote it: which entries count, and which is best
results      results.csv, a row for each run, read by its header
metrics, trajectory
             what the submissions of a run add up to, and their curve
journal/     `python -m kev.autorl journal`: the record of an agent's rounds, held against the machine's

runner       `python -m kev.autorl run`: an agent's run, from workspace to row of results
agent_folder, agents/, telling, client, submit
             what an agent is, those that come along, what it is told, how it submits
agent_process, keeper, process_tree
             an agent at work, and its end with everything that it started
outcome      the row and the summary of a run

serve, grading_settings
             `python -m kev.autorl serve`, and what can be said of how a run is graded
tasks        what an agent is asked to do
grading_process, evaluators/, engines/
             gradings in processes of their own; what they grade; what generates text
server       the routes that an agent reaches
grader       takes submissions, grades them one at a time, gives the verdict; run says what is graded
judging      what a sealed submission is worth
rejection    what is said to an agent whose request is not taken
opening, sealing, weights, tensors, model_files
             from a path that an agent names to a sealed copy of whole weights
lineage      whether a model was made from the base
store, submissions, views
             the chain of events, what it adds up to, and the copies of that in the workspace
measuring, noise, evaluation
             scores of models and of the base, and the seam to whatever grades

`kev.records.autorl` has the shapes of the files.
"""
