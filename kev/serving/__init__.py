"""Answering requests over HTTP, as `POST /v1/systemone` does.

schema    a request's JSON as a Request, or what is wrong with it
answers   distributions as the API's answers
engine    one thread that scores what is waiting, as one batch
app       the routes, the token and the limits
"""
