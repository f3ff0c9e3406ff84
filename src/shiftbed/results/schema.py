"""The tables that results are made of: their columns, and nothing else.

Imports pyarrow, so the rest of the room reaches it from inside functions.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["CELLS", "PACKED", "PREDICTIONS", "STORED"]

#: One row per cell: a model on a setting, measured here or imported from elsewhere.
CELLS = pa.schema(
    [
        pa.field("model", pa.string(), nullable=False),
        pa.field("setting", pa.string(), nullable=False),
        #: Pictures scored. Skipped pictures are not among them. Imported cells may not say.
        pa.field("n", pa.int64()),
        #: Null for pictures without labels, and where an import does not say.
        pa.field("correct", pa.int64()),
        #: Between 0 and 1. Null for pictures without labels.
        pa.field("accuracy", pa.float64()),
        pa.field("top5", pa.float64()),
        #: What ``accuracy`` counts: ``top1``, or another name of the setting's own.
        pa.field("metric", pa.string(), nullable=False),
        pa.field("class_space", pa.string()),
        #: ``measured`` or ``imported``.
        pa.field("origin", pa.string(), nullable=False),
        #: The cell's key when measured; the name of the import otherwise.
        pa.field("source", pa.string(), nullable=False),
        pa.field("category", pa.string()),
        #: False while pictures of the cell are still to be done.
        pa.field("complete", pa.bool_(), nullable=False),
        #: The setting that this one is compared with: the same pictures unshifted, or a
        #: natural shift's counterpart. Null where nobody said.
        pa.field("clean", pa.string()),
    ]
)

#: One picture's answer. ``index`` is the picture's place in its image set, whose ids are kept
#: once per set, not once per cell. Settings scored by mAP keep two columns more: ``scores`` and
#: ``truth``, a list over the classes each.
STORED = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),
        pa.field("label", pa.int32()),
        #: The five classes with the highest scores, best first; null where there are fewer.
        *[pa.field(f"class{rank}", pa.int32()) for rank in range(1, 6)],
        #: Probability of ``class1``.
        pa.field("confidence", pa.float64(), nullable=False),
        #: 1 when the label comes first. With several true labels: the best one's.
        pa.field("rank_true", pa.int32()),
    ]
)

#: The same in few bytes (:mod:`shiftbed.results.packing`): what a complete cell keeps. Without
#: ``label`` where the pictures' own labels say it, and without ``others`` where there is one class.
PACKED = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),
        pa.field("label", pa.int32()),
        pa.field("rank_true", pa.int32()),
        #: Of ``class1``, dithered, in tenths above -9.
        pa.field("odds", pa.uint8(), nullable=False),
        #: Null where it is the label.
        pa.field("class1", pa.int32()),
        #: The classes after the first, of all pictures, in the first row.
        pa.field("others", pa.binary()),
    ]
)

#: The same as it is read: the cell and the picture by their names.
PREDICTIONS = pa.schema(
    [
        pa.field("model", pa.string(), nullable=False),
        pa.field("setting", pa.string(), nullable=False),
        pa.field("picture", pa.string(), nullable=False),
        *[field for field in STORED if field.name != "index"],
    ]
)
