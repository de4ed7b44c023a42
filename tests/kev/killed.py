"""The end of a process or a container, as tests bring it about."""


class Killed(BaseException):
    """What a kill looks like from inside: nothing that handles failures may see it as one."""
