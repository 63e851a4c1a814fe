"""Forms of convolutions are compared on the same network, and peers compute what it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from quadmatch.bench import convolutions, pages
from quadmatch.bench.peer_runtimes import run_onnx, run_openvino
from quadmatch.features.int8 import can_multiply_bytes
from quadmatch.features.vgg import VGG16


def test_every_form_is_measured_in_one_run(monkeypatch, capsys) -> None:
    def fail(network: VGG16, image: torch.Tensor) -> object:
        raise RuntimeError("no compiler\nhere")

    monkeypatch.setattr(convolutions, "PEERS", {"broken": fail})
    rows = convolutions.run(size=16, rounds=1, product=64)
    assert "broken: left out, RuntimeError: no compiler\n" in capsys.readouterr().out
    assert [one.split(", ")[1] for one in (row["name"] for row in rows)][:4] == list(convolutions.OURS[:4])
    for row in rows:
        assert row["ratio"] == row["peer"] / row["ours"]
        assert row["pictures_a_second"] == 1 / row["ours"]
        assert row["share_of_float32_product"] > 0
        number = next((one for one in ("bfloat16", "int8") if f" {one}," in row["name"]), "float32")
        rates = row["float32_product_GFLOP_a_second"], row[f"{number}_product_GFLOP_a_second"]
        assert row["share_of_own_product"] == pytest.approx(row["share_of_float32_product"] * rates[0] / rates[1])
    assert rows[1]["ratio"] == 1


@pytest.mark.skipif(not can_multiply_bytes(), reason="needs a processor that multiplies bytes")
def test_bytes_are_multiplied_as_whole_numbers_are(monkeypatch) -> None:
    given: list[torch.Tensor] = []
    draw = torch.randint
    monkeypatch.setattr(torch, "randint", lambda *sizes, **kind: given.append(draw(*sizes, **kind)) or given[-1])
    made = convolutions._multiply_bytes(32)()
    assert made.tolist() == (given[0].long() @ given[1].long().T).tolist()


def test_operations_are_those_of_the_convolutions() -> None:
    network = VGG16("relu3_3")
    done: list[int] = []
    for one in network.features:
        if isinstance(one, nn.Conv2d):
            one.register_forward_hook(lambda layer, _, made: done.append(2 * layer.weight[0].numel() * made.numel()))
    network(torch.rand(1, 3, 16, 16), ["relu3_3"])
    assert convolutions.count_operations(network, 16) == sum(done)


@pytest.mark.parametrize(("make", "needed"), [(run_onnx, "onnxruntime"), (run_openvino, "openvino")])
def test_peers_compute_the_same(make, needed: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip(needed)
    network, image = convolutions.make_network(), torch.rand(1, 3, 16, 16)
    with torch.inference_mode():
        expected = network(image, ["relu5_1"])["relu5_1"]
        found = make(network, image)()
    assert np.allclose(next(iter(found.values())) if hasattr(found, "values") else found[0], expected, atol=1e-4)


def test_memory_is_kept_in_one_process_and_given_back_in_the_other(monkeypatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(pages, "ask", lambda *words: asked.append(words) or {"keep": 1.0, "give": 1.5}[words[0]])
    row = pages.compare(pages.FORMS[0], 1, 2, 16)
    assert (row["ours"], row["peer"], row["ratio"]) == (1.0, 1.5, 1.5)
    assert [words[0] for words in asked] == ["keep", "give"] * 2
    monkeypatch.undo()
    assert pages.ask("keep", pages.FORMS[0], "1", "16") > 0
