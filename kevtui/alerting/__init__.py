"""How an alert reaches somebody who is not looking: which ones are told, when, and by what."""
