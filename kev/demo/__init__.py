"""A real round on this machine from nothing: an emulator, a session, two or three arms of a tiny model, a read-out.

Nothing of it is made up but the money, which is simulated and called so. `python -m kev.demo DIR` plays it without a
screen; `kevtui demo` shows it.
"""
