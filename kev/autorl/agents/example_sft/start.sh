# The program goes into the workspace first: what was run stays beside what came of it.
set -e
export OMP_NUM_THREADS=1
cp "$AGENT_DIR/train.py" "$WORKSPACE/code/train.py"
exec python "$WORKSPACE/code/train.py"
