"""Zero-shot classification against transformers' own CLIP, on a tiny one made here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shiftbed import InputError, models
from shiftbed.models._torchvision import import_torchvision

import_torchvision()
import torch  # noqa: E402

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf") / "tiny-clip"
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz."
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{c}</w>" for c in letters)]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    text = {"vocab_size": len(words), "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 1}
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config={**text, **sizes, "num_attention_heads": 2, "max_position_embeddings": 40},
        vision_config={**sizes, "num_attention_heads": 2, "image_size": 32, "patch_size": 8},
        projection_dim=12,
    )
    transformers.CLIPModel(config).eval().save_pretrained(folder)
    transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)
    return folder


def test_zero_shot_logits_equal_transformers_own(tiny_clip: Path, pictures: list) -> None:
    classes = ("cat", "dog", "traffic_light")
    model = models.load(f"hf:{tiny_clip}", classes=classes)
    assert model.class_keys == classes
    assert model.differentiable
    clip = transformers.CLIPModel.from_pretrained(tiny_clip).eval()
    tokenizer = transformers.CLIPTokenizer.from_pretrained(tiny_clip)
    processor = transformers.CLIPImageProcessorPil.from_pretrained(tiny_clip)
    prompts = ["a photo of a cat.", "a photo of a dog.", "a photo of a traffic light."]
    tokens = tokenizer(prompts, padding=True, return_tensors="pt")
    shown = [picture for picture in pictures if min(picture.shape[:2]) > 1]
    with torch.inference_mode():
        theirs = clip(**tokens, **processor(shown, return_tensors="pt")).logits_per_image.numpy()
    ours = model.logits(np.stack([model.geometry.apply(picture) for picture in shown]))
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


def test_prompts_are_averaged(tiny_clip: Path, tmp_path: Path) -> None:
    file = tmp_path / "prompts.txt"
    file.write_text("a photo of a {}.\na sketch of a {}.\n")
    grey = np.full((1, 32, 32, 3), 99, np.uint8)
    one, two = (
        models.load(f"hf:{tiny_clip}", classes=("cat", "dog"), prompts=prompts).logits(grey)
        for prompts in (None, str(file))
    )
    assert not np.allclose(one, two)


@pytest.mark.parametrize("text", ["", "a photo without a place\n"])
def test_prompts_need_a_place_for_the_class(tiny_clip: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "prompts.txt"
    file.write_text(text)
    with pytest.raises(InputError, match="prompts"):
        models.load(f"hf:{tiny_clip}", classes=("cat",), prompts=str(file))


def test_a_processor_that_is_not_understood_is_refused(tiny_clip: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "odd"
    shutil.copytree(tiny_clip, folder)
    config = json.loads((folder / "preprocessor_config.json").read_text())
    config["rescale_factor"] = 1 / 100
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="way that is not known"):
        models.load(f"hf:{folder}", classes=("cat",))


@pytest.mark.parametrize("kind", ["vit", "vit-fast", "convnext", "convnext-384", "clip-fast"])
def test_geometry_is_the_processors_own(kind: str, pictures: list) -> None:
    from shiftbed.models.sources.hf import geometry_of

    processor = {
        "vit": lambda: transformers.ViTImageProcessorPil(),
        "vit-fast": lambda: transformers.ViTImageProcessor(),
        "convnext": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 224}),
        "convnext-384": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 384}),
        "clip-fast": lambda: transformers.CLIPImageProcessor(),
    }[kind]()
    geometry = geometry_of(processor)
    for picture in pictures:
        if min(picture.shape[:2]) < 20:
            continue
        theirs = processor(picture, return_tensors="np", do_normalize=False)["pixel_values"][0]
        theirs = np.rint(theirs.transpose(1, 2, 0) * 255)
        # Tensors are resized in fixed point by torch, which may round the other way.
        tolerance = 1 if kind.endswith("fast") else 0
        assert np.abs(geometry.apply(picture) - theirs).max() <= tolerance, picture.shape
