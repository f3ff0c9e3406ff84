from __future__ import annotations

import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from shiftbed.augment import AugmentedDataset, augmentation
from shiftbed.augment.deep import adain, network
from shiftbed.augment.deep.network import CLEAN, Tap
from shiftbed.augment.deep.signals import SIGNAL_DISTORTIONS, Distorted
from shiftbed.augment.deep.training import save, train_autoencoder
from shiftbed.augment.deep.weights import WEIGHT_DISTORTIONS, distorted_weights
from shiftbed.augment.deepaugment import refreshed_at
from shiftbed.augment.style import _style
from shiftbed.data import ArraySet
from shiftbed.errors import InputError

NETWORKS = sorted(network.networks())


def untrained(name: str) -> network.ImageToImage:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return network.find(name)().eval().requires_grad_(False)


def pixels(height: int, width: int, seed: int = 0) -> torch.Tensor:
    drawn = np.random.default_rng(seed).random((1, 3, height, width), np.float32)
    return torch.from_numpy(drawn)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, photos: np.ndarray) -> Path:
    """A file with an autoencoder that was trained for a moment on real photographs."""
    path = tmp_path_factory.mktemp("autoencoder") / "ae.safetensors"
    save(train_autoencoder(ArraySet("photos", photos), steps=60).network, path)
    return path


# ---------------------------------------------------------------- weights


def filters(seed: int, outputs: int = 8, inputs: int = 6, side: int = 3):
    rng = np.random.default_rng(seed)
    weight = torch.from_numpy(rng.normal(size=(outputs, inputs, side, side)).astype(np.float32))
    return weight, torch.from_numpy(rng.normal(size=outputs).astype(np.float32))


@pytest.mark.parametrize("name", WEIGHT_DISTORTIONS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), square=st.booleans(), side=st.sampled_from([3, 5]))
def test_distorted_weights_are_others_of_the_same_shape(name, seed, square, side) -> None:
    weight, bias = filters(seed, inputs=8 if square else 6, side=side)
    before = weight.clone(), bias.clone()
    new = WEIGHT_DISTORTIONS[name](weight, bias, np.random.default_rng(seed))
    again = WEIGHT_DISTORTIONS[name](weight, bias, np.random.default_rng(seed))
    assert torch.equal(weight, before[0])
    assert torch.equal(bias, before[1])
    assert new[0].shape == weight.shape
    assert new[1].shape == bias.shape
    assert new[0].isfinite().all()
    assert not torch.equal(new[0], weight)
    assert torch.equal(new[0], again[0])


def test_what_the_distortions_of_weights_do() -> None:
    weight, bias = filters(1, inputs=8)
    rng = np.random.default_rng(0)

    def done(name: str) -> torch.Tensor:
        return WEIGHT_DISTORTIONS[name](weight, bias, rng)[0]

    assert torch.equal(done("negate"), -weight)
    assert not done("zero").any()
    assert torch.equal(done("flip")[0], weight[-1])
    assert done("rotate").flatten().sort().values.equal(weight.flatten().sort().values)
    assert (done("negate_some").abs() == weight.abs()).all()
    assert 0.3 < float((done("negate_some") == weight).float().mean()) < 0.7
    assert 0.3 < float((done("zero_some") == 0).float().mean()) < 0.7
    turned = (done("negate_filters") == -weight).flatten(1)
    assert (turned.all(1) | ~turned.any(1)).all()
    kept = done("keep_largest")
    assert ((kept != 0).flatten(2).sum(2) == 1).all()
    assert torch.equal(kept.flatten(2).sum(2), weight.flatten(2).max(2).values)
    assert torch.equal(done("activate"), -torch.nn.functional.gelu(weight))
    # A step in a direction: as large as before but for what leaves at the rim.
    assert 0.3 < float(done("shift").abs().sum() / weight.abs().sum()) <= 1.0001
    for name in ("outline", "convolve", "average"):
        assert float(done(name).norm()) == pytest.approx(float(weight.norm()), rel=1e-4)
    assert (done("multiply_noise").abs() >= weight.abs()).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.1, 0.25, 1.0]))
def test_only_a_share_of_the_filters_is_distorted(seed: int, share: float) -> None:
    weight, bias = filters(2, outputs=40)
    clean = {"a.weight": weight, "a.bias": bias, "b.weight": weight, "b.bias": bias}
    changed = distorted_weights(clean, {"a": share}, 1, np.random.default_rng(seed))
    touched = (changed["a.weight"] != weight).flatten(1).any(1)
    assert int(touched.sum()) <= 40 * share
    assert changed["b.weight"] is weight


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("name", SIGNAL_DISTORTIONS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), channels=st.integers(1, 24))
def test_distorted_signals_are_others_of_the_same_shape(name, seed, channels) -> None:
    rng = np.random.default_rng(seed)
    signal = torch.from_numpy(rng.normal(size=(1, channels, 9, 7)).astype(np.float32))
    before = signal.clone()
    new = SIGNAL_DISTORTIONS[name](signal, np.random.default_rng(seed))
    assert torch.equal(signal, before)
    assert new.shape == signal.shape
    assert new.isfinite().all()
    assert torch.equal(new, SIGNAL_DISTORTIONS[name](signal, np.random.default_rng(seed)))


def test_what_the_distortions_of_signals_do() -> None:
    signal = pixels(20, 30)[:, [0, 1, 2] * 8] - 0.5
    rng = np.random.default_rng(0)

    def done(name: str) -> torch.Tensor:
        return SIGNAL_DISTORTIONS[name](signal, rng)

    assert 0.03 < float((done("dropout") == 0).float().mean()) < 0.22
    lost = (done("drop_pixels") == 0).all(1)
    assert 0.1 < float(lost.float().mean()) < 0.3
    assert torch.equal(done("negate"), -signal)
    assert 0.01 < float((done("negate_some") != signal).float().mean()) < 0.15
    flipped = done("flip")
    assert not torch.equal(flipped, signal)
    for name in ("swap_channels", "shuffle_channels"):
        sums = done(name).sum((0, 2, 3)).sort().values
        assert sums == pytest.approx(signal.sum((0, 2, 3)).sort().values, abs=1e-3)
    moved = done("shift_channels")
    inner = moved[0, 0, 5:10, 5:10]
    candidates = [
        signal[0, 0, 5 + y : 10 + y, 5 + x : 10 + x] for y in (-1, 0, 1) for x in (-1, 0, 1)
    ]
    assert any(torch.equal(inner, one) for one in candidates)


# ---------------------------------------------------------------- networks


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_pictures_of_the_same_size(name: str) -> None:
    net = untrained(name)
    for height, width in ((16, 24), (32, 20)):
        assert net(pixels(height, width)).shape == (1, 3, height, width)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_layers_and_places_that_it_names(name: str) -> None:
    net = untrained(name)
    state = net.state_dict()
    assert all(f"{layer}.{kind}" in state for layer in net.layers for kind in ("weight", "bias"))
    seen: list[int] = []

    class Watching(Tap):
        def after(self, place: int, signal: torch.Tensor) -> torch.Tensor:
            seen.append(place)
            return signal

    clean = net(pixels(16, 16), CLEAN, draw=half)
    assert torch.equal(clean, net(pixels(16, 16), Watching(), draw=half))
    assert set(net.places) <= set(seen)
    assert set(net.skippable) <= set(seen)

    class Skipping(Tap):
        def skips(self, place: int) -> bool:
            return place in net.skippable

    if net.skippable:
        assert not torch.equal(clean, net(pixels(16, 16), Skipping(), draw=half))


def half(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.full(tuple(shape), 0.5)


#: As their authors publish them.
PUBLISHED = {
    "edsr": [
        *("sub_mean", "add_mean", "head.0", "body.16", "tail.0.0", "tail.0.2", "tail.1"),
        *(f"body.{block}.body.{conv}" for block in range(16) for conv in (0, 2)),
    ],
    "cae": [
        *("e_conv_1.1", "e_conv_2.1", "e_conv_3.0"),
        *(
            f"{half}_block_{number}.{conv}"
            for half in "ed"
            for number in (1, 2, 3)
            for conv in (1, 4)
        ),
        *(f"d_up_conv_{number}.{conv}" for number in (1, 2, 3) for conv in (0, 3)),
    ],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_fits(name: str, tmp_path: Path) -> None:
    net = untrained(name)
    expected = {f"{layer}.{kind}" for layer in PUBLISHED[name] for kind in ("weight", "bias")}
    assert set(net.state_dict()) == expected
    torch.save(net.state_dict(), tmp_path / "published.pt")
    loaded = network.load(name, str(tmp_path / "published.pt"))
    assert torch.equal(loaded(pixels(16, 16), draw=half), net(pixels(16, 16), draw=half))


def test_edsr_without_its_residues_enlarges_the_shrunk_picture() -> None:
    """By hand: the mean goes out and in again, and pixel shuffling puts 16 values side by side."""
    net = untrained("edsr")
    shown = pixels(8, 12)
    for block in net.body:
        for tensor in block.parameters():
            tensor.zero_()
    small = torch.nn.functional.avg_pool2d(shown, 4) * 255
    mean = 255 * torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1)
    expected = net.tail(net.head(small - mean)) + mean
    assert torch.allclose(net(shown), expected / 255, atol=1e-5)


def test_what_does_not_fit_is_told_in_a_sentence(tmp_path: Path) -> None:
    torch.save({"conv.weight": torch.zeros(1)}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="missing"):
        network.load("edsr", str(tmp_path / "other.pt"))
    grey = dict(untrained("autoencoder").state_dict())
    grey["shrinking.0.weight"] = grey["shrinking.0.weight"][:, :1].clone()
    save_file(grey, tmp_path / "grey.safetensors")
    with pytest.raises(InputError, match="of another shape"):
        network.load("autoencoder", str(tmp_path / "grey.safetensors"))
    with pytest.raises(InputError, match="shiftbed train autoencoder"):
        augmentation("deepaugment", network="autoencoder")
    with pytest.raises(InputError, match="did you mean edsr"):
        augmentation("deepaugment", network="esdr")
    with pytest.raises(InputError, match="no checkpoint"):
        augmentation("deepaugment", network="cae", weights=str(tmp_path / "nothing.pt"))
    (tmp_path / "bad.pt").write_bytes(pickle.dumps(print))
    with pytest.raises(InputError, match="not a checkpoint of plain tensors"):
        network.load("cae", str(tmp_path / "bad.pt"))


def test_the_fetched_network_gives_real_photographs_back(photos: np.ndarray) -> None:
    try:
        net = network.load("vgg7")
    except InputError as problem:
        pytest.skip(f"cannot be fetched here: {problem}")
    shown = torch.from_numpy(photos).permute(0, 3, 1, 2).float().div(255)
    error = (net(shown) - shown).square().mean()
    assert -10 * float(error.log10()) > 28


# ---------------------------------------------------------------- DeepAugment


def test_refreshing_is_as_rare_as_asked_and_needs_no_order() -> None:
    keys = [refreshed_at(f"1:{place}", 0.05, seed=3) for place in range(4000)]
    assert 140 <= len(set(keys)) <= 260
    runs = [int(key.partition(":")[2]) for key in keys]
    assert all(run <= place for place, run in enumerate(runs))
    assert runs == sorted(runs)
    assert refreshed_at("1:3999", 0.05, seed=3) == keys[-1]
    assert {refreshed_at(f"1:{place}", 0) for place in range(50)} == {"1:0"}
    assert refreshed_at("1:7", 1.0) == "1:7"


def test_a_loader_gives_the_same_whatever_its_workers(trained: Path, photos: np.ndarray) -> None:
    clean = [torch.from_numpy(photos[i % 4].transpose(2, 0, 1).copy()) for i in range(8)]
    for name in ("deepaugment", "noise2net"):
        options = {"network": "autoencoder", "weights": trained} if name == "deepaugment" else {}
        dataset = AugmentedDataset(clean, augmentation(name, seed=2, **options))

        def epoch(workers: int, size: int, dataset: AugmentedDataset = dataset) -> torch.Tensor:
            loader = torch.utils.data.DataLoader(dataset, batch_size=size, num_workers=workers)
            return torch.cat(list(loader))

        first = epoch(0, 4)
        assert torch.equal(first, epoch(1, 3))
        assert torch.equal(first, epoch(2, 1))
        assert not torch.equal(first[0], first[4])
        pickled = pickle.loads(pickle.dumps(dataset.augmentation))
        assert torch.equal(first[6], pickled(clean[6], key="0:6"))


def edges(picture: np.ndarray) -> np.ndarray:
    """Return where a picture has edges, coarsely."""
    grey = cv2.GaussianBlur(picture.astype(np.float32).mean(2), None, 1.5)
    size = np.hypot(np.gradient(grey, axis=0), np.gradient(grey, axis=1))
    return size / (size.mean() + 1e-9)


def test_results_are_diverse_and_the_object_is_still_there(trained, photos) -> None:
    for augment, least in (
        (augmentation("deepaugment", network="autoencoder", weights=trained), 0.35),
        (augmentation("noise2net"), 0.25),
    ):
        kept, changes = [], []
        for photo in photos:
            made = np.stack([augment(photo, key=f"version {number}") for number in range(12)])
            kept += [np.corrcoef(edges(photo).ravel(), edges(one).ravel())[0, 1] for one in made]
            changes.append(made.astype(float).std(0).mean())
        # Edges where there were edges; and grey levels all over the place.
        assert np.median(kept) > least
        assert np.mean(changes) > 8


@pytest.mark.parametrize("name", NETWORKS)
def test_any_size_of_picture_goes_through(name: str, tmp_path: Path) -> None:
    save_file(untrained(name).state_dict(), tmp_path / "weights.safetensors")
    augment = augmentation("deepaugment", network=name, weights=tmp_path / "weights.safetensors")
    for height, width in ((17, 23), (8, 41)):
        picture = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
        assert augment(picture, key="0:5").shape == picture.shape
    with pytest.raises(InputError, match="3 channels, RGB, but one of 1 was given"):
        augment(np.zeros((16, 16), np.uint8))


def test_a_taps_distortions_are_drawn_anew_for_each_picture() -> None:
    net = untrained("autoencoder")
    shown = pixels(16, 16)
    clean = net(shown)
    results = [net(shown, Distorted(net, np.random.default_rng(seed))) for seed in range(30)]
    assert sum(torch.equal(one, clean) for one in results) <= 6
    assert len({float(one.sum()) for one in results}) >= 22


def test_noise2net_takes_grey_pictures_and_refuses_no_strength(photos: np.ndarray) -> None:
    grey = photos[0, :, :, 0]
    assert augmentation("noise2net")(grey, key="a").shape == grey.shape
    weak = augmentation("noise2net", epsilon=0.01)(photos[0], key="a").astype(int) - photos[0]
    assert np.abs(weak).mean() < 3
    with pytest.raises(InputError, match="expected above 0"):
        augmentation("noise2net", epsilon=0)


# ---------------------------------------------------------------- training


def test_training_lowers_the_error_and_is_the_same_every_time(photos: np.ndarray) -> None:
    pictures = ArraySet("photos", photos)
    short = [train_autoencoder(pictures, steps=2, seed=1) for _ in range(2)]
    for one, other in zip(*(run.network.parameters() for run in short), strict=True):
        assert torch.equal(one, other)
    assert train_autoencoder(pictures, steps=20, seed=1).psnr > short[0].psnr + 1
    with pytest.raises(InputError, match="at least 2"):
        train_autoencoder(ArraySet("one", photos[:1]))
    with pytest.raises(InputError, match="0 steps"):
        train_autoencoder(pictures, steps=0)


# ---------------------------------------------------------------- style


@pytest.fixture(scope="session")
def style_weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Random weights in the form of the published files, the encoder's with deeper layers."""
    folder = tmp_path_factory.mktemp("style")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder, decoder = adain._encoder(), adain._decoder()
        deeper = {"33.weight": torch.zeros(1), "33.bias": torch.zeros(1)}
    torch.save({**encoder.state_dict(), **deeper}, folder / "vgg_normalised.pth")
    torch.save(decoder.state_dict(), folder / "decoder.pth")
    return {"encoder": folder / "vgg_normalised.pth", "decoder": folder / "decoder.pth"}


def test_the_content_takes_the_styles_statistics(style_weights, photos) -> None:
    encoder, decoder = adain.load(*map(str, style_weights.values()))
    assert [layer.out_channels for layer in encoder if hasattr(layer, "out_channels")] == [
        *(3, 64, 64, 128, 128, 256, 256, 256, 256, 512)
    ]
    content, style = (adain.as_pixels(photos[i]) for i in (0, 1))
    seen: list[torch.Tensor] = []

    def watching(features: torch.Tensor) -> torch.Tensor:
        seen.append(features)
        return decoder(features)

    made = adain.stylized(encoder, watching, content, style, 1.0)
    assert made.shape == content.shape
    for ours, theirs in zip(
        adain._statistics(seen[0]), adain._statistics(encoder(style)), strict=True
    ):
        assert torch.allclose(ours, theirs, atol=1e-2)
    plain = adain.stylized(encoder, decoder, content, style, 0.0)
    assert torch.allclose(plain, decoder(encoder(content)), atol=1e-5)


def test_a_loader_gives_the_same_styles_whatever_its_workers(
    style_weights, newcomer: Path, photos
) -> None:
    clean = [np.ascontiguousarray(photos[i % 4][:24, :24]) for i in range(4)]
    dataset = AugmentedDataset(clean, augmentation("stylized", styles="photos", **style_weights))
    first, *others = (
        torch.cat(list(torch.utils.data.DataLoader(dataset, batch_size=3, num_workers=workers)))
        for workers in (0, 1, 2)
    )
    assert all(torch.equal(first, one) for one in others)


def test_styles_are_drawn_from_a_folder(style_weights, newcomer: Path, photos) -> None:
    augment = augmentation("stylized", styles="photos", **style_weights)
    made = augment(photos[0][:37, :51], key="a")
    assert made.shape == (37, 51, 3)
    assert np.array_equal(made, augment(photos[0][:37, :51], key="a"))
    assert len({_style("photos", luck).tobytes() for luck in (0.1, 0.4, 0.6, 0.9)}) == 4
    with pytest.raises(InputError, match="needs the option encoder"):
        augmentation("stylized", styles="photos")
    with pytest.raises(InputError, match="nowhere"):
        augmentation("stylized", styles="nowhere", **style_weights)
    swapped = {"encoder": style_weights["decoder"], "decoder": style_weights["encoder"]}
    with pytest.raises(InputError, match="AdaIN's encoder"):
        augmentation("stylized", styles="photos", **swapped)
    with pytest.raises(InputError, match="RGB"):
        augment(photos[0][..., 0])
