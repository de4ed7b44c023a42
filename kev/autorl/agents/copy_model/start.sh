# A cheat, kept to show what becomes of it: the base under a name of its own, trained by nobody.
set -e
cp "$AGENT_DIR/train.py" "$WORKSPACE/code/train.py"
exec python "$WORKSPACE/code/train.py"
