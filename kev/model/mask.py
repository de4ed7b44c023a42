"""Who may look at whom in packed sequences."""

import torch
from torch import Tensor

PADDING_SEGMENT = -1


def visible_keys(seg: Tensor, opt: Tensor | None = None) -> Tensor:
    """Whether token i may attend to token j: a boolean tensor [B, L, L] from segments [B, L].

    A token sees what lies before it in the state and in its own segment. With `opt`, the option indices of isolated
    options, a token of an option sees no other option of its question; the decide token sees them all.
    Nothing sees padding, but every token sees itself, so that no row is empty.
    """
    length = seg.shape[1]
    query, key = seg[:, :, None], seg[:, None, :]
    index = torch.arange(length, device=seg.device)
    allowed = (index[None, :] <= index[:, None]) & ((key == 0) | (key == query)) & (key != PADDING_SEGMENT)
    if opt is not None:
        query_option, key_option = opt[:, :, None], opt[:, None, :]
        allowed &= (key == 0) | (query_option < 0) | (key_option < 0) | (query_option == key_option)
    return allowed | torch.eye(length, dtype=torch.bool, device=seg.device)


def additive_mask(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, L, L] booleans as [B, 1, L, L]: 0 where allowed, the dtype's least finite number elsewhere."""
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min).unsqueeze(1)
