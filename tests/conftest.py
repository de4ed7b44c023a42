"""What holds for every test: it starts from the signals of a terminal, however the whole run was started."""

import signal

# A run in the background of a script, or under nohup, ignores these, and so would every program that a test starts.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)
