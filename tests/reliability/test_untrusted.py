"""Files that others made run no code, read no other file and fill no memory."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shiftbed as sb
from shiftbed.data import ArraySet, found_path, open_set, read_class_map, read_text
from shiftbed.errors import InputError
from shiftbed.models import load
from shiftbed.results import Results, verify


class Trap:
    """What runs code when it is unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch '{self.sprung}'",)


@pytest.fixture
def sprung(tmp_path: Path) -> Path:
    return tmp_path / "sprung"


def torch_zip(pickled: bytes) -> bytes:
    """A checkpoint as torch.save writes it, with another pickle in it."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
    return sink.getvalue()


def test_the_trap_works(sprung: Path) -> None:
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists()


@pytest.mark.parametrize("wrap", [bytes, torch_zip], ids=["pickle", "torch's zip"])
@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a state dict"])
def test_checkpoints_run_no_code(tmp_path: Path, sprung: Path, wrap: Any, nested: bool) -> None:
    trap: Any = {"state_dict": {"weight": Trap(sprung)}} if nested else Trap(sprung)
    for suffix in ("pt", "pth", "ckpt", "bin", "safetensors"):
        path = tmp_path / f"mine.{suffix}"
        path.write_bytes(wrap(pickle.dumps(trap, protocol=2)))
        with pytest.raises(InputError):
            load(f"torch:{path},arch=torchvision:squeezenet1_1")
    assert not sprung.exists()


def test_no_other_source_unpickles(tmp_path: Path, sprung: Path) -> None:
    content = pickle.dumps(Trap(sprung), protocol=2)
    for name, spec in {
        "mine.skops": "sklearn:",
        "mine.pkl": "sklearn:",
        "mine.joblib": "sklearn:",
        "mine.onnx": "onnx:",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError):
            load(f"{spec}{tmp_path / name}")
    with zipfile.ZipFile(tmp_path / "zipped.skops", "w") as archive:
        archive.writestr("schema.json", json.dumps({"__class__": "system", "__module__": "os"}))
    with pytest.raises(InputError):
        load(f"sklearn:{tmp_path / 'zipped.skops'}")
    hub = tmp_path / "hub"
    hub.mkdir()
    config = {"model_type": "vit", "architectures": ["ViTForImageClassification"]}
    (hub / "config.json").write_text(json.dumps(config))
    (hub / "preprocessor_config.json").write_text('{"image_processor_type": "ViTImageProcessor"}')
    (hub / "pytorch_model.bin").write_bytes(torch_zip(content))
    with pytest.raises(InputError):
        load(f"hf:{hub}")
    assert not sprung.exists()


def test_a_hub_model_brings_no_code(tmp_path: Path, sprung: Path) -> None:
    hub = tmp_path / "hub"
    hub.mkdir()
    code = f"open({str(sprung)!r}, 'w')\nclass Config: pass\nclass Net: pass\n"
    (hub / "code.py").write_text(code)
    auto = {"AutoConfig": "code.Config", "AutoModelForImageClassification": "code.Net"}
    (hub / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": auto}))
    with pytest.raises(InputError):
        load(f"hf:{hub}")
    assert not sprung.exists()


def test_arrays_are_not_unpickled(tmp_path: Path, sprung: Path) -> None:
    trap = np.array([Trap(sprung)], dtype=object)
    np.savez(tmp_path / "set.npz", images=trap)
    np.save(tmp_path / "matrix.npy", trap)
    with pytest.raises(InputError):
        open_set(tmp_path / "set.npz")
    picture = np.zeros((8, 8), np.uint8)
    with pytest.raises(InputError):
        sb.corrupt(picture, "pessimal_noise", variant="mnist-c", matrix=tmp_path / "matrix.npy")
    assert not sprung.exists()


def test_onnx_takes_no_operators_of_its_own(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    pixels = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])
    answer = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])
    node = helper.make_node("Own", ["x"], ["y"], domain="somebody.elses")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("somebody.elses", 1)]
    graph = helper.make_graph([node], "g", [pixels], [answer])
    onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "own.onnx")
    with pytest.raises(InputError, match="cannot be run by ONNX Runtime"):
        load(f"onnx:{tmp_path / 'own.onnx'}")


def test_onnx_reads_no_weights_outside_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    (tmp_path / "secret").write_bytes(bytes(range(80)))
    (tmp_path / "net").mkdir()
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 5])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "../secret", "offset": "0", "length": "80"}.items():
        weight.external_data.add(key=key, value=value)
    pixels = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 2, 2])
    answer = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [pixels], [answer], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "net" / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError):
        load(f"onnx:{tmp_path / 'net' / 'net.onnx'}")
    (tmp_path / "secret").rename(tmp_path / "net" / "secret")
    weight.external_data[0].value = "secret"  # and beside it, it does
    graph = helper.make_graph(nodes, "g", [pixels], [answer], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "net" / "net.onnx").write_bytes(model.SerializeToString())
    assert load(f"onnx:{tmp_path / 'net' / 'net.onnx'}").outputs == 5


# Results of others


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs")
    pictures = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), np.uint8)
    photos = ArraySet("photos", pictures, np.arange(20) % 3, ["a", "b", "c"])

    def net(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1)[:, :3].astype(np.float32)

    sb.evaluate({"net": net}, ["+clean"], photos, results=path, quiet=True, outputs=3, channels=3)
    return path


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{outside}')",
        "from '{outside}'",
        "select * from read_text('{outside}')",
        "select * from read_blob('/etc/hostname')",
        "select * from glob('/etc/*')",
        "copy (select 1) to '{folder}/written.csv'",
        "attach '{folder}/written.db'",
        "export database '{folder}/written'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true; from '{outside}'",
        "reset allowed_paths",
    ],
)
def test_a_query_reaches_nothing_but_the_results(theirs: Path, tmp_path: Path, query: str) -> None:
    outside = tmp_path / "secret.csv"
    outside.write_text("password\nhunter2\n")
    results = Results(theirs)
    with pytest.raises(InputError, match="DuckDB cannot run"):
        results.sql(query.format(outside=outside, folder=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert results.sql("select count(*) n from predictions").to_pylist() == [{"n": 20}]


def altered(theirs: Path, path: Path, **changes: Any) -> Results:
    """A copy of results whose record says something else."""
    import shutil

    shutil.copytree(theirs, path)
    [record] = path.rglob("manifest.json")
    content = json.loads(record.read_text())
    content["identity"] |= {k: v for k, v in changes.items() if k in content["identity"]}
    content |= {k: v for k, v in changes.items() if k in content}
    record.write_text(json.dumps(content))
    return Results(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"pictures": "../../secret"},
        {"pictures": "/etc/secret"},
        {"pictures": "..\\secret"},
        {"pictures": ""},
        {"files": {"../../../secret": "00"}},
        {"files": {"/dev/zero": "00"}},
        {"files": {".": "00"}},
        {"model": ["net"]},
        {"model": None},
        {"setting": {"a": 1}},
        {"tags": []},
        {"spec": None},
        {"counts": {"pictures": "many", "scored": 3}},
        {"counts": {"pictures": 1, "scored": -3}},
    ],
)
def test_records_of_others_name_no_file_but_their_own(
    theirs: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    secret = pa.table({"picture": ["a secret"] * 20})
    pq.write_table(secret, tmp_path / "secret.parquet")
    results = altered(theirs, tmp_path / "results", **changes)
    for ask in (
        results.cells,
        lambda: results.predictions("net", "photos"),
        lambda: results.sql("from predictions"),
    ):
        with pytest.raises(InputError, match="damaged"):
            ask()
    assert len(verify(tmp_path / "results")) == 1


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000], ids=len)
def test_deep_and_long_records_are_one_sentence(theirs: Path, tmp_path: Path, text: str) -> None:
    results = altered(theirs, tmp_path / "results")
    [record] = results.path.rglob("manifest.json")
    record.write_text(text)
    with pytest.raises(InputError, match="damaged"):
        results.cells()


def test_damaged_tables_are_one_sentence(theirs: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(theirs.rglob("*.parquet"))):
        place = path.relative_to(theirs)
        for content in (b"", b"PAR1", path.read_bytes()[:-20], path.read_bytes()[:300]):
            results = altered(theirs, tmp_path / f"{number} {len(content)}")
            (results.path / place).write_bytes(content)
            with pytest.raises(InputError, match="damaged"):
                results.predictions("net", "photos")
            with pytest.raises(InputError, match=r"damaged|DuckDB cannot run"):
                results.sql("select * from predictions")
        results = altered(theirs, tmp_path / f"{number} other")
        pq.write_table(pa.table({"other": [1]}), results.path / place)
        with pytest.raises(InputError, match="damaged"):
            results.predictions("net", "photos")


# Size


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_texts_without_end_are_refused() -> None:
    with pytest.raises(InputError, match="more than 256 MiB"):
        read_text(Path("/dev/zero"))
    with pytest.raises(InputError, match="more than 256 MiB"):
        read_class_map("/dev/zero")
    assert found_path("/dev/zero") is not None
