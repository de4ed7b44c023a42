"""The policy as it was: what the divergence is measured from."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Reference:
    """Copies of trained parameters, put in place of them for a pass. Of an adapter it holds the adapter alone."""

    copies: tuple[tuple[nn.Parameter, Tensor], ...]

    @classmethod
    def of(cls, parameters: Iterable[nn.Parameter]) -> "Reference":
        """The parameters as they are now."""
        return cls(tuple((parameter, parameter.detach().clone()) for parameter in parameters))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it the model computes with the copies; no gradient may be taken there."""
        present = [parameter.data for parameter, _ in self.copies]
        try:
            for parameter, copy in self.copies:
                parameter.data = copy
            yield
        finally:
            for (parameter, _), tensor in zip(self.copies, present, strict=True):
                parameter.data = tensor
