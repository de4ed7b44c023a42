# The programs go into the workspace first: what was run stays beside what came of it.
set -e
export OMP_NUM_THREADS=1
cp "$AGENT_DIR"/*.py "$WORKSPACE/code/"
python "$WORKSPACE/code/warm_up.py"
exec python "$WORKSPACE/code/grpo.py"
