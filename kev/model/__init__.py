"""The decision model: one state and any number of typed questions in, a distribution over each question's options out.

Nothing is generated. A transformers decoder reads the state and the questions once; the hidden state at a question's
closing "decide" token is compared with the hidden state at the closing token of each of its options.

What others call:

    kev.model.context        Context: how long a record may be; ContextOverflow, a ValueError
    kev.model.encoding       Encoder: a state and questions as token ids; Encoding (no torch)
    kev.model.batch          Batch and collate: several encodings as tensors, packed or as rows
    kev.model.decision_model DecisionModel: forward(batch) -> Scores; score(encodings) for reads
    kev.model.head           Scores: logits of all questions of a batch, padded to the widest; log_probabilities()
    kev.model.loading        load_checkpoint(run), new_model(base, settings): a DecisionModel, offline
    kev.model.saving         save_checkpoint(directory, model), or contents_of(model) now and write_checkpoint later
    kev.model.warm_start     warm_start(model, run): take over the weights of a checkpoint of the same seven settings
    kev.model.tiny_base      make_tiny_base(directory): a small random base, saved like a snapshot from the Hub

    model = load_checkpoint("runs/study/trial/checkpoint")           # or new_model(base, Settings(lora=16))
    encoding = model.encoder.encode_record(record)                   # raises ContextOverflow
    logits = model.score([encoding])                                 # [[tensor of K logits, ...one a question], ...]
    scores = model(model.collate([encoding]))                        # with gradients, in training mode: raw logits
    save_checkpoint(directory, model)

Importing this package loads nothing; torch comes with batch, decision_model and what builds on them.
"""
