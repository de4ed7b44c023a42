"""The operating procedure, where code can hold it: each module refuses one thing that a session may not do.

    unchanged      frozen suites and evaluator files are as they were when a round was registered
    reading_tests  a test partition is read at a registered stage, or by its owner's word
    corpora        nothing is trained on what a closed model wrote
    training       one training process on a machine
    snapshots      a registered full-weight trial keeps snapshots, unless its owner says otherwise

docs/session.md is the procedure as a whole.
"""
