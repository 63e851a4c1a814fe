import copy
import gc
import pickle

import pytest
import torch
from random_pairs import random_pair
from torch import nn

from quadmatch.layers import linear as module
from quadmatch.layers.linear import CAN_LAY_OUT, WORTHWHILE, Linear
from quadmatch.layers.spline_conv import SplineConv

needed = pytest.mark.skipif(not CAN_LAY_OUT, reason="this torch has no function for it")


def make(inputs: int = 80, outputs: int = 96) -> tuple[Linear, nn.Linear]:
    torch.manual_seed(0)
    own = Linear(inputs, outputs)
    plain = nn.Linear(inputs, outputs)
    plain.load_state_dict(own.state_dict())
    return own, plain


@pytest.mark.parametrize("shape", [(80,), (1, 80), (7, 80), (3, 5, 80), (0, 80), (2, 0, 80)])
def test_it_is_the_usual_map(shape) -> None:
    own, plain = make()
    inputs = torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(own(inputs), plain(inputs), rtol=1e-5, atol=1e-5)
    assert own(inputs).shape == (*shape[:-1], 96)


@needed
def test_weights_are_laid_out_once(monkeypatch) -> None:
    own, _ = make()
    laid: list[nn.Linear] = []
    known = module.lay_out
    monkeypatch.setattr(module, "lay_out", lambda one: laid.append(one) or known(one))
    with torch.inference_mode():
        own(torch.randn(3, 80))
        kept = module._KEPT[own][1]
        own(torch.randn(90, 80))
    assert laid == [own, own]
    assert module._KEPT[own][1] is kept


@needed
@pytest.mark.parametrize("change", ["step", "load", "swap", "assign"])
def test_changed_weights_are_laid_out_anew(change) -> None:
    own, plain = make()
    inputs = torch.randn(4, 80)
    with torch.inference_mode():
        before = own(inputs)
    if change == "step":
        optimiser = torch.optim.AdamW(own.parameters(), lr=0.1)
        own(inputs).square().sum().backward()
        optimiser.step()
    elif change == "load":
        own.load_state_dict({name: value + 1 for name, value in own.state_dict().items()})
    elif change == "swap":
        own.weight.data = own.weight.data * 2
    else:
        own.weight = nn.Parameter(torch.randn(96, 80))
    plain.load_state_dict(own.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(own(inputs), plain(inputs), rtol=1e-5, atol=1e-5)
        assert not torch.allclose(own(inputs), before, atol=1e-3)


def test_gradients_and_other_formats_go_the_usual_way(monkeypatch) -> None:
    own, plain = make()
    monkeypatch.setattr(module, "lay_out", lambda _: pytest.fail("was laid out"))
    inputs = torch.randn(4, 80)
    own(inputs).sum().backward()
    assert own.weight.grad is not None
    with torch.no_grad():
        assert torch.equal(own(inputs), plain(inputs))
    with torch.inference_mode():
        narrow = Linear(WORTHWHILE - 1, 96)
        assert narrow(torch.randn(2, WORTHWHILE - 1)).shape == (2, 96)
        with torch.autocast("cpu", torch.bfloat16):
            assert own(inputs).dtype == torch.bfloat16
        assert own.double()(inputs.double()).dtype == torch.float64


def test_copies_and_what_is_let_go() -> None:
    own, plain = make()
    inputs = torch.randn(4, 80)
    with torch.inference_mode():
        own(inputs)
    others = copy.deepcopy(own), pickle.loads(pickle.dumps(own))
    with torch.inference_mode():
        for other in (*others, copy.deepcopy(own)):  # Copied in inference mode, its weights have no version.
            torch.testing.assert_close(other(inputs), plain(inputs), rtol=1e-5, atol=1e-5)
    assert own.state_dict().keys() == plain.state_dict().keys()
    before = len(module._KEPT)
    del own, other, others
    gc.collect()
    assert len(module._KEPT) <= before - (3 if CAN_LAY_OUT else 0)


def test_products_written_in_place_are_those_that_are_learned_from() -> None:
    pair, _, _ = random_pair(9, 7, dtype=torch.float32)
    convolution, features = SplineConv(16, 8, extent=64.0), torch.randn(1, 9, 16)
    learned = convolution(features, pair.source)
    with torch.inference_mode():
        torch.testing.assert_close(convolution(features, pair.source), learned)
    learned.sum().backward()
    assert convolution.weight.grad is not None
