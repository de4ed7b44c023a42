"""What answers requests: a checkpoint on this machine, or an endpoint somewhere else.

prediction     requests, answers, refusals, and what a predictor is
distribution   whether returned numbers are a distribution at all
local          a predictor around a scorer on this machine
checkpoint     the scorer that is a checkpoint of the decision model; torch is loaded here only
vllm           the same checkpoint with vLLM for its backbone; imported where it is asked for only
remote         a System One endpoint over HTTP
retries        which answers of an endpoint are worth another try, and when
pace           how many calls may be under way at once, for endpoints that take one at a time
purse          what calls cost, and the cap that none of them passes
rotations      the same questions with their options in other orders, averaged
date_facts     an optional note in the state: how far apart its dates are
"""
