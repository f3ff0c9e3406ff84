from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shiftbed.errors import InputError
from shiftbed.models import import_torchvision, load
from shiftbed.models.architectures import FAMILIES, build

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", [told.example for told in FAMILIES.values()] + ["resnet8-4s2"])
def test_it_takes_pictures_and_gives_logits(name: str) -> None:
    for channels, side in ((1, 28), (3, 32)):
        network = build(name, 7, channels).eval()
        assert network(torch.zeros(2, channels, side, side)).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "millions"),
    # As their papers print them; DenseNet's without bottlenecks.
    [("resnet20", 0.27), ("resnet56", 0.85), ("densenet40-12", 1.04), ("mnist-conv2", 3.27)],
)
def test_it_is_as_large_as_its_paper_says(name: str, millions: float) -> None:
    channels = 1 if name.startswith("mnist") else 3
    parameters = sum(one.numel() for one in build(name, 10, channels).parameters())
    assert parameters / 1e6 == pytest.approx(millions, rel=0.03)


def test_shake_shake_mixes_at_random_in_training_alone() -> None:
    torch.manual_seed(0)
    network = build("shakeshake11-2x4", 5)
    pixels = torch.rand(1, 3, 16, 16).repeat(4, 1, 1, 1)
    network.train()
    one, other = network(pixels), network(pixels)
    assert not torch.allclose(one[0], one[1])  # a draw for each picture
    assert not torch.allclose(one, other)  # and for each time
    network.eval()
    assert torch.equal(network(pixels), network(pixels))


def test_shake_shake_passes_the_gradient_by_another_draw() -> None:
    torch.manual_seed(0)
    block = next(part for part in build("shakeshake11-2x4", 5) if hasattr(part, "branches"))
    block.train()
    left = torch.ones(4, 1, 1, 1, requires_grad=True)
    right = torch.zeros(4, 1, 1, 1, requires_grad=True)
    mixed = block._mixed(left, right)
    mixed.sum().backward()
    assert left.grad is not None
    assert right.grad is not None
    assert torch.allclose(left.grad + right.grad, torch.ones(4, 1, 1, 1))
    assert ((mixed > 0) & (mixed < 1)).all()
    assert not torch.allclose(left.grad, mixed, atol=1e-3)


def test_weights_of_ones_own_fill_it(tmp_path: Path) -> None:
    network = build("resnet8-4", 6, 1).eval()
    torch.save(network.state_dict(), tmp_path / "mine.pt")
    model = load(f"torch:{tmp_path / 'mine.pt'},arch=shiftbed:resnet8-4,channels=1,size=20")
    picture = np.random.default_rng(0).integers(0, 256, (2, 20, 20, 1), np.uint8)
    with torch.no_grad():
        expected = network(torch.from_numpy(picture).permute(0, 3, 1, 2) / 255)
    assert model.logits(picture) == pytest.approx(expected.numpy(), abs=1e-5)


def test_timms_networks_take_its_attention_layers() -> None:
    import_torchvision()
    pytest.importorskip("timm")
    from shiftbed.models.sources.torch import architecture

    network = architecture("timm:resnet18+cbam", 5, 1).network
    assert any(type(part).__name__ == "CbamModule" for part in network.modules())
    assert network.eval()(torch.zeros(1, 1, 32, 32)).shape == (1, 5)
    for name in ("timm:resnet18+nothing", "timm:vit_tiny_patch16_224+cbam"):
        with pytest.raises(InputError, match="cannot be built with the attention"):
            architecture(name, 5)


@pytest.mark.parametrize("name", ["resnet21", "resnext29", "shakeshake29-0x4", "dense", "resnet"])
def test_a_name_that_cannot_be_built(name: str) -> None:
    with pytest.raises(InputError) as problem:
        build(name, 10)
    assert name in str(problem.value)
