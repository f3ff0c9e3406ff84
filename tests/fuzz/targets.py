"""What is fuzzed: each target takes any bytes, and either takes them or refuses in a sentence.

A target raises nothing but AssertionError, when a promise is broken; whatever else comes out of
it is a finding, too. `fuzz.py` runs them by the million, `test_fuzz.py` a little in the suite.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from PIL import Image

import shiftbed as sb
from shiftbed.corruptions import VARIANTS, corruptions
from shiftbed.data import (
    ArraySet,
    UnreadablePicture,
    labelled_files,
    match_classes,
    read_card,
    read_class_map,
    write_card,
)
from shiftbed.data.arrays import plain_array, read_idx, read_npz
from shiftbed.data.download import unpack
from shiftbed.data.pictures import read_picture
from shiftbed.data.shards import read_shards
from shiftbed.data.tars import TarFiles
from shiftbed.errors import InputError
from shiftbed.models import expand
from shiftbed.models.keys import read_classes
from shiftbed.models.loading import _parsed
from shiftbed.models.options import read_options
from shiftbed.models.tags import read_tags
from shiftbed.results import Manifest, Results, import_results, verify
from shiftbed.results.imported import read_imported
from shiftbed.settings import list_settings, resolve
from shiftbed.studies.hypotheses import declaration

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """Something that reads what others wrote."""

    name: str
    #: Takes the bytes and a scratch folder that is the working directory.
    check: Callable[[bytes, Path], None]
    #: Whole and sound examples, from which mutations start.
    seeds: Callable[[], list[bytes]]
    #: What such files are made of.
    words: tuple[str, ...] = ()
    #: The share of all cases; the slow ones get fewer.
    weight: float = 1.0

    def __call__(self, content: bytes, folder: Path) -> None:
        _given[0] = len(content)
        self.check(content, folder)


#: How many bytes the case has: what a refusal quotes may be long itself.
_given = [0]
TARGETS: dict[str, Target] = {}


def target(
    name: str, words: str = "", weight: float = 1.0, seeds: Iterable[str | bytes] = ()
) -> Callable[[Callable[[bytes, Path], None]], Callable[[bytes, Path], None]]:
    """Add a target; its seeds are given, or made by the function ``NAME_seeds``."""

    def add(check: Callable[[bytes, Path], None]) -> Callable[[bytes, Path], None]:
        fixed = [seed.encode() if isinstance(seed, str) else seed for seed in seeds]
        make = globals().get(f"_{name.replace('-', '_')}_seeds")
        TARGETS[name] = Target(name, check, make or (lambda: fixed), tuple(words.split()), weight)
        return check

    return add


def _refused(run: Callable[[], Any], also: tuple[type[Exception], ...] = ()) -> Any:
    """Return what a function returns, or None if it refused in a sentence or two."""
    try:
        return run()
    except (InputError, *also) as refusal:
        return _said(str(refusal))


def _said(sentence: str) -> None:
    assert sentence.strip(), "a refusal without a word"
    assert len(sentence) < 2_000 + 8 * _given[0], f"a refusal of {len(sentence)} characters"


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


# Names


@cache
def _photos() -> ArraySet:
    return ArraySet("photos", np.zeros((2, 32, 32, 3), np.uint8), [0, 1], ["cat", "dog"])


@target(
    "settings",
    "photos mnist-test + { } , .. * [ clean fog .3 pgd l2 linf extra imagenet-c mnist-c "
    "gaussian_noise 9999 / ?",
    seeds=[
        "photos+{clean,fog.{1..3}}",
        "+blur*.3",
        "imagenet-c",
        "+pgd.linf.2",
        "photos+[a-f]*.{5..1}",
        "+{clean,*,extra}",
    ],
)
def _settings(content: bytes, folder: Path) -> None:
    pattern = os.fsdecode(content.replace(b"\0", b""))
    if pattern.startswith(("/", "~")) or "../" in pattern:  # the files of this machine
        return
    names = _refused(lambda: list_settings(pattern))
    assert names is None or all(isinstance(name, str) for name in names)
    if "cifar" in pattern or "fashion" in pattern or "icons" in pattern or "set" in pattern:
        return  # would fetch
    found = _refused(lambda: resolve(pattern, _photos()))
    for setting in (found or [])[:3]:
        if setting.images is not _photos():  # a folder, whose name is not its path
            continue
        [again] = resolve(setting.name, _photos())
        assert (again.name, again.shift) == (setting.name, setting.shift)


@target(
    "model-spec",
    "timm: torchvision: onnx: torch: python: package: hf: , = size= mean= std= crop= "
    "resize= interpolation= channels= @ * x / e9",
    seeds=[
        "timm:resnet50.a1_in1k,size=288,name=larger",
        "onnx:net.onnx,mean=0.5/0.5/0.5,std=0.5,crop=0.9",
        "torch:net.pt,arch=timm:resnet18,outputs=10",
        "onnx:n*.onnx,size=224x192,interpolation=bicubic",
        "@list.txt",
    ],
)
def _model_spec(content: bytes, folder: Path) -> None:
    spec = os.fsdecode(content.replace(b"\0", b""))
    (folder / "list.txt").write_bytes(content)
    if "/" not in spec and ("timm:" not in spec and "torchvision:" not in spec):
        for one in _refused(lambda: expand(spec)) or []:
            assert expand(one) == [one] or any(char in one for char in "*?[@")
    parsed = _refused(lambda: _parsed(spec))
    if parsed is not None:
        options = _refused(lambda: read_options(parsed[2]))
        if options is not None:
            from shiftbed.models import Geometry

            str(options.geometry(Geometry((224, 224), (256, 256))))
            str(options.geometry(Geometry()))


# Text files


_MAPS = ["class,output\ncat,0\ncat,2\ndog,1\n", '{"cat": [0, 2], "dog": "tabby"}']


@target("class-map", "cat dog output class 0 n01440764 [ {", seeds=_MAPS)
def _class_map(content: bytes, folder: Path) -> None:
    for suffix in ("csv", "json"):
        path = _file(folder, f"map.{suffix}", content)
        given = _refused(lambda path=path: read_class_map(path))
        if given is not None:
            for keys in (None, ["tabby", "n01440764", "wolf"]):
                space = _refused(
                    lambda given=given, keys=keys: match_classes(
                        ["cat", "dog"], keys, 3, class_map=given
                    )
                )
                assert space is None or space.scores(np.zeros((2, 3))).shape == (2, 2)


@target(
    "classes-and-tags",
    "name category parents ; n01440764 *",
    seeds=["name,category,parents\nmine,robust,a;b\n", "cat\ndog\n", '{"mine*": {"a": [1]}}'],
)
def _classes(content: bytes, folder: Path) -> None:
    text = _file(folder, "classes.txt", content)
    _refused(lambda: read_classes(str(text)))
    for suffix in ("csv", "json"):
        path = _file(folder, f"tags.{suffix}", content)
        assert isinstance(_refused(lambda path=path: read_tags(path)), dict | None)


@target(
    "label-table",
    'picture label labels frame_set offset ; a.jpg " -1',
    seeds=[
        "picture,label\na.jpg,cat\nb.jpg,dog\n",
        "picture,labels\na.jpg,cat; dog\nb.jpg,\n",
        "picture,label,frame_set,offset\na.jpg,cat,s,0\nb.jpg,cat,s,-3\n",
    ],
)
def _label_table(content: bytes, folder: Path) -> None:
    for suffix in ("csv", "tsv"):
        path = _file(folder, f"table.{suffix}", content)
        images = _refused(lambda path=path: labelled_files(path))
        if images is not None:
            assert len(images.ids) == len(set(images.ids)) == len(images)
            if images.labels is not None:
                assert images.labels.max() < len(images.classes)


def _label_parquet_seeds() -> list[bytes]:
    tables: list[dict[str, Any]] = [
        {"picture": ["a.jpg", "b.jpg"], "label": ["cat", "dog"]},
        {"picture": ["a.jpg", "b.jpg"], "labels": [["cat", "dog"], []]},
        {"picture": ["a.jpg"], "label": ["x"], "frame_set": ["s"], "offset": [0]},
    ]
    return [_parquet(pa.table(columns)) for columns in tables]


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


@target("label-parquet", "PAR1 picture label", weight=0.3)
def _label_parquet(content: bytes, folder: Path) -> None:
    path = _file(folder, "table.parquet", content)
    images = _refused(lambda: labelled_files(path))
    assert images is None or len(images.ids) == len(set(images.ids))


@target(
    "set-toml",
    'name score members classes clean usual notes [ ] = " true border orient like combine '
    "max imagenet-a 1979-05-27 ''' nan",
    seeds=[
        'name = "birds"\nscore = "aupr"\nusual = "photos"\nborder = 2\n',
        'classes = ["owl", "hen"]\nclean = "a"\norient = true\n[members]\nowl = ["n0", 3]\nhen=1\n',
        '[notes]\nwhen = 1979-05-27T07:32:00Z\nx = {a = [1, 2.5, {b = "c"}]}\n',
        'combine = "mean"\nclasses = "imagenet-a"\n',
    ],
)
def _set_toml(content: bytes, folder: Path) -> None:
    path = _file(folder, "set.toml", content)
    told = _refused(lambda: read_card(path))
    if told is None or told.notes:  # notes may be of types that are not written
        return
    written = write_card(folder, told)
    assert read_card(written) == told


@target(
    "config-toml",
    "model data suite setting output seed limit keep workers size batch-size strict dry- "
    "run json = [ ] { true 1e9 config",
    seeds=[
        'model = ["timm:resnet18.a1_in1k"]\nsuite = "imagenet-c"\nseed = 1\n',
        'data = ["photos"]\nlimit = 100\nkeep = ["logits"]\nstrict = true\nsize = "224x192"\n',
    ],
)
def _config_toml(content: bytes, folder: Path) -> None:
    path = _file(folder, "run.toml", content)
    given = ["--config", str(path), "-m", "python:a:b"]
    evaluate = _command("eval")

    def parsed() -> dict[str, Any]:
        with evaluate.make_context("shiftbed eval", list(given)) as context:
            return dict(context.params)

    found = _refused(parsed, (_USAGE,))
    assert found is None or found["model"] == ["python:a:b"]


#: A wrong option. Typer brings its own Click, or takes the one that is there.
_USAGE: Any = typer.BadParameter.__base__


@cache
def _command(name: str) -> Any:
    from typer.main import get_command

    from shiftbed.cli import app

    group: Any = get_command(app)
    return group.commands[name]


def _hypotheses_seeds() -> list[bytes]:
    from importlib import resources

    whole = (resources.files("shiftbed.studies") / "many-faces.toml").read_bytes()
    small = b"""
[[dataset]]
name = "R"
clean = "imagenet-val"
shifted = ["imagenet-r"]
[[hypothesis]]
name = "Larger"
expect = "better"
measure = ["accuracy", "gap"]
margin = 0.01
datasets = ["R"]
compare = [{with = "a", without = ["b"]}, {each = "c*", without = "d"}]
"""
    return [small, whole[: whole.rindex(b"[[hypothesis]]")]]


@target("hypotheses", "[[dataset]] expect same effective compare with margin")
def _hypotheses(content: bytes, folder: Path) -> None:
    path = _file(folder, "claims.toml", content)
    found = _refused(lambda: declaration(path))
    if found is not None:
        assert found.datasets
        assert all(0 <= one.margin < 1 and one.compare for one in found.hypotheses)


_IMPORTS = [
    "model,setting,accuracy,n\nnet,photos,81.5,200\nnet,photos+fog.3,40,200\n",
    "model,img_size,top1,top5\nnet,224,81.5,95\n",
    "file_name,predicted_class,predicted_probability\nn01440764/a.JPEG,0,0.5\n",
    "model,val,imagenet-a,imagenet-c.fog.3_on-disk\nnet,76.13,0.5,30\n",
]


@target(
    "published-csv",
    "model setting accuracy n top1 img_size val 81.5 1e400 nan % predicted_class "
    'file_name n01440764 -0 1_000 " category',
    seeds=_IMPORTS,
)
def _published_csv(content: bytes, folder: Path) -> None:
    path = _file(folder, "results-imagenet.csv", content)
    found = _refused(lambda: import_results(path, folder / "results"))
    if found is not None:
        rows = read_imported(folder / "results").to_pylist()
        assert len(rows) == found.cells > 0
        for row in rows:
            assert 0 <= row["accuracy"] <= 1
            assert row["correct"] is None or 0 <= row["correct"] <= row["n"]
        found.path.unlink()


# Results


@cache
def _cell() -> dict[str, bytes]:
    """The files of results with a whole cell, one that was stopped, and an import."""
    folder = Path("whole")
    pictures = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), np.uint8)
    photos = ArraySet("photos", pictures, np.arange(20) % 3, ["a", "b", "c"])

    def net(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1)[:, :3].astype(np.float32)

    how: dict[str, Any] = {"outputs": 3, "channels": 3, "quiet": True, "keep": ["logits"]}
    sb.evaluate({"net": net}, ["+{clean,contrast.1}"], photos, results=folder, **how)
    (folder / "theirs.csv").write_text(_IMPORTS[0])
    import_results(folder / "theirs.csv", folder)
    (folder / "theirs.csv").unlink()
    stopped = sorted((folder / "cells").iterdir())[0]
    for kind, name in (("predictions", "part"), ("logits", "logits")):
        (stopped / f"{kind}.parquet").rename(stopped / f"{name}-00000.parquet")
    record = json.loads((stopped / "manifest.json").read_text())
    record |= {"counts": None, "files": {}}
    (stopped / "manifest.json").write_text(json.dumps(record, indent=1, sort_keys=True))
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    shutil.rmtree(folder)
    return found


def _manifest_seeds() -> list[bytes]:
    return [content for name, content in _cell().items() if name.endswith("manifest.json")]


@target("manifest", "identity files counts null { [ ../ skipped format")
def _manifest(content: bytes, folder: Path) -> None:
    text = content.decode("utf-8", "replace")
    found = _refused(lambda: Manifest.from_json(text))
    if found is not None:
        assert Manifest.from_json(found.to_json()) == found
        assert len(found.key) == 20


def _results_seeds() -> list[bytes]:
    # The first byte says which file the others are put in the place of.
    return [bytes([number]) + content for number, content in enumerate(_cell().values())]


@target("results", "PAR1 index rank_true schema", weight=0.12)
def _results(content: bytes, folder: Path) -> None:
    if not content:
        return
    whole = _cell()
    name = list(whole)[content[0] % len(whole)]
    path = folder / "results"
    if not path.exists():
        for other, good in whole.items():
            (path / other).parent.mkdir(parents=True, exist_ok=True)
            (path / other).write_bytes(good)
    (path / name).write_bytes(content[1:])
    try:
        results = Results(path)
        _refused(results.cells)
        for setting in ("photos", "photos+contrast.1"):
            _refused(lambda setting=setting: results.predictions("net", setting))
            _refused(lambda setting=setting: results.logits("net", setting))
        _refused(lambda: results.sql("select setting, avg(p_true) from predictions group by all"))
        assert content[1:] == whole[name] or isinstance(verify(path), list)
    finally:
        (path / name).write_bytes(whole[name])


# Files of pictures, arrays and archives


def _picture_seeds() -> list[bytes]:
    rough = np.random.default_rng(0).integers(0, 256, (9, 11, 3), np.uint8)
    seeds = []
    for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM"):
        for image in (Image.fromarray(rough), Image.fromarray(rough).convert("L").quantize(8)):
            sink = io.BytesIO()
            try:
                image.save(sink, kind)
            except (OSError, ValueError):  # no palettes in this kind
                continue
            seeds.append(sink.getvalue())
    return seeds


@target("picture", "IHDR IDAT tRNS acTL Exif JFIF VP8L", weight=0.8)
def _picture(content: bytes, folder: Path) -> None:
    try:
        picture = read_picture(io.BytesIO(content), orient=content[-1:] > b"\x7f")
    except UnreadablePicture as problem:
        _said(problem.reason)
    else:
        assert (picture.dtype, picture.ndim, picture.shape[2]) == (np.uint8, 3, 3)


def _arrays_seeds() -> list[bytes]:
    sink = io.BytesIO()
    np.savez(sink, images=np.zeros((2, 3, 3), np.uint8), labels=[0, 1], classes=["a", "b"])
    idx = b"\0\0\x08\3" + b"".join(n.to_bytes(4, "big") for n in (2, 3, 3)) + bytes(18)
    import gzip

    plain = io.BytesIO()
    np.save(plain, np.zeros((2, 3, 3), np.uint8))
    return [sink.getvalue(), idx, gzip.compress(idx), plain.getvalue()]


@target("arrays", "images.npy labels.npy", weight=0.5)
def _arrays(content: bytes, folder: Path) -> None:
    path = _file(folder, "set.npz", content)
    images = _refused(lambda: read_npz(path))
    assert images is None or images.load(0).dtype == np.uint8
    array = _refused(lambda: read_idx(path))
    assert array is None or array.dtype == np.uint8
    plain = _refused(lambda: plain_array(_file(folder, "set.npy", content)))
    assert plain is None or plain.dtype != object


def _archive_seeds() -> list[bytes]:
    tarred, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w") as tar, zipfile.ZipFile(zipped, "w") as archive:
        for name, text in {"a/b.jpg": "hello", "a/b.cls": "7", "c.json": '{"label": 1}'}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
            archive.writestr(name, text, zipfile.ZIP_DEFLATED)
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "../../outside"
        tar.addfile(link)
    without = tarred.getvalue()[:3072] + bytes(1024)
    return [tarred.getvalue(), without, zipped.getvalue()]


@target("archive", "../ / ustar link a/b.txt", weight=0.4)
def _archive(content: bytes, folder: Path) -> None:
    path = _file(folder, "some.tar", content)
    into = folder / "in" / "to"
    into.mkdir(parents=True, exist_ok=True)
    try:
        _refused(lambda: unpack(path, into))
        assert [one.name for one in (folder / "in").iterdir()] == ["to"]
        assert not any(one.is_symlink() for one in into.rglob("*"))
    finally:
        shutil.rmtree(folder / "in")
    members = _refused(lambda: TarFiles([path]))
    for name in list(members or ())[:3]:
        members.read(name)
    images = _refused(lambda: read_shards([path]))
    assert images is None or len(images.ids) == len(set(images.ids))


# Corruptions


@cache
def _specs() -> list[Any]:
    return [spec for variant in VARIANTS for spec in corruptions(variant)]


@cache
def _frost() -> Path:
    folder = Path.cwd().parent / "frost"
    folder.mkdir(exist_ok=True)
    for number in range(1, 7):
        rng = np.random.default_rng(number)
        texture = rng.integers(0, 256, (60 + 30 * number, 200 - 20 * number, 3), np.uint8)
        end = "png" if number < 4 else "jpg"
        Image.fromarray(texture).save(folder / f"frost{number}.{end}")
    return folder


def _corruption_seeds() -> list[bytes]:
    return [bytes([number, 3]) + bytes(12) for number in range(len(_specs()))]


@target("corruption", weight=0.06)
def _corruption(content: bytes, folder: Path) -> None:
    """Any picture from 1 x 1 to 600 x 600: of 1 or 3 channels, as it is; of 4, refused."""
    drawn = np.random.default_rng(list(content))
    spec = _specs()[content[0] % len(_specs()) if content else 0]
    severity = (spec.severities or (None,))[int(drawn.integers(len(spec.severities or (None,))))]
    # As many small as large ones: from one pixel to 600 on a logarithmic scale.
    sides = np.exp(drawn.uniform(0, np.log(600.999), 2)).astype(int)
    shape = (*(int(side) for side in sides), *[(), (1,), (3,), (3,), (3,), (4,)][drawn.integers(6)])
    low, high = sorted(drawn.integers(0, 257, 2))
    picture = drawn.integers(low, max(high, low + 1), shape).clip(0, 255).astype(np.uint8)
    if drawn.random() < 0.3:  # flat, or in blocks
        picture = np.broadcast_to(picture[:1, :1], shape).copy()
    before = picture.copy()
    options = {
        "frost": {"textures": _frost()},
        "pessimal_noise": {"matrix": np.random.default_rng(7).normal(size=(196, 196))},
    }.get(spec.name, {})
    told = f"{spec.variant} {spec.name} {severity} of {shape}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = _refused(
            lambda: sb.corrupt(
                picture,
                spec.name,
                severity,
                variant=spec.variant,
                key=str(drawn.integers(99)),
                **options,
            )
        )
    if shape[2:] == (4,):
        assert out is None, told
        return
    assert out is not None, f"{told} was refused"
    assert (out.shape, out.dtype) == (picture.shape, np.uint8), told
    assert np.array_equal(picture, before), f"{told} changed its input"
    assert not np.shares_memory(out, picture), told
