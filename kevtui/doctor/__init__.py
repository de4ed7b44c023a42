"""`kevtui doctor`: what of this machine, its terminal and its files stands in the way of a night, and what to do."""
