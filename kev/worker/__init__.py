"""What runs inside a container: trials, reads, locked reads and re-scores. `modal_app.py` binds it to functions.

container   what a container gives to its work: volumes, threads, sources, the id of its call
orders      what a launcher asks a container to do
trials      one trial from its lease to its result
models      training, scoring and reads of checkpoints: kev.trial and kev.reads do them
training    the seam to `synthetic`, methods of training that need no accelerator: for rehearsals
blends      checkpoints between two others
mirrors     copies of checkpoints in another place
reads       a benchmark job, and the one read of a locked test

Importing the package loads neither numpy nor modal, so that the threads of a container can be set first.
"""
