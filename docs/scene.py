"""Draw the little scene that the documentation's pictures are made from.

Balls on a tiled floor, traced by one ray per sample: a picture of our own, with the edges,
textures, colours and flat areas that corruptions show themselves on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]

#: Centre, radius, colour, how much it mirrors.
BALLS = [
    ((-0.95, 0.62, 3.6), 0.62, (0.86, 0.24, 0.18), 0.15),
    ((0.52, 0.95, 4.6), 0.95, (0.16, 0.42, 0.78), 0.30),
    ((0.30, 0.30, 2.55), 0.30, (0.95, 0.74, 0.16), 0.10),
    ((1.42, 0.36, 3.1), 0.36, (0.25, 0.62, 0.32), 0.12),
    ((-0.28, 0.18, 2.2), 0.18, (0.55, 0.30, 0.62), 0.10),
]
SUN = np.array([-0.55, 0.75, -0.4]) / np.linalg.norm([-0.55, 0.75, -0.4])


def normalised(vectors: Vectors) -> Vectors:
    """Return vectors of length one."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def nearest(origin: Vectors, towards: Vectors) -> tuple[Vectors, NDArray[np.int64]]:
    """Return how far each ray goes, and what it meets: a ball, the floor (-1), the sky (-2)."""
    distance = np.full(towards.shape[:-1], np.inf)
    what = np.full(towards.shape[:-1], -2)
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = -origin[..., 1] / towards[..., 1]
    hit = (floor > 1e-4) & np.isfinite(floor)
    distance[hit], what[hit] = floor[hit], -1
    for number, (centre, radius, _, _) in enumerate(BALLS):
        offset = origin - np.array(centre)
        along = (offset * towards).sum(-1)
        inside = along**2 - (offset**2).sum(-1) + radius**2
        reach = -along - np.sqrt(np.maximum(inside, 0))
        hit = (inside > 0) & (reach > 1e-4) & (reach < distance)
        distance[hit], what[hit] = reach[hit], number
    return distance, what


def shade(origin: Vectors, towards: Vectors, bounces: int) -> Vectors:
    """Return the colour that each ray sees, in 0..1."""
    distance, what = nearest(origin, towards)
    height = np.clip(towards[..., 1:2], 0, 1)
    colour = np.array([0.86, 0.91, 0.96]) * (1 - height) + np.array([0.30, 0.52, 0.84]) * height
    solid = what > -2
    point = origin + towards * np.where(solid, distance, 0)[..., None]
    normal = np.zeros_like(point)
    normal[what == -1] = (0, 1, 0)
    base = np.zeros_like(point)
    tile = (np.floor(point[..., 0] * 1.5) + np.floor(point[..., 2] * 1.5)) % 2
    base[...] = np.where(tile[..., None] == 0, [0.88, 0.84, 0.76], [0.34, 0.30, 0.30])
    mirror = np.full(what.shape, 0.06)
    for number, (centre, radius, paint, shine) in enumerate(BALLS):
        own = what == number
        normal[own] = (point[own] - np.array(centre)) / radius
        base[own], mirror[own] = paint, shine
    start = point + normal * 1e-3
    _, blocked = nearest(start, np.broadcast_to(SUN, point.shape))
    light = np.where(blocked == -2, np.maximum((normal * SUN).sum(-1), 0), 0)
    lit = base * (0.28 + 0.85 * light)[..., None]
    bounce = towards - 2 * (towards * normal).sum(-1, keepdims=True) * normal
    gloss = np.maximum((bounce * SUN).sum(-1), 0) ** 60 * (what >= 0) * (blocked == -2)
    if bounces:
        share = mirror[..., None]
        lit = lit * (1 - share) + shade(start, bounce, bounces - 1) * share
    haze = np.exp(-np.where(solid, distance, 0) / 22)[..., None]
    lit = (lit + gloss[..., None] * 0.7) * haze + np.array([0.86, 0.91, 0.96]) * (1 - haze)
    return np.where(solid[..., None], lit, colour)


def scene(side: int = 224, samples: int = 3) -> NDArray[np.uint8]:
    """Return the scene as an RGB picture.

    >>> scene(16, 1).shape
    (16, 16, 3)
    """
    steps = (np.arange(side * samples) + 0.5) / (side * samples) - 0.5
    x, y = np.meshgrid(steps, -steps)
    towards = normalised(np.stack([x * 1.05, y * 1.05 - 0.16, np.ones_like(x)], -1))
    origin = np.broadcast_to(np.array([0.0, 1.15, -0.6]), towards.shape)
    image = shade(origin, towards, 2).reshape(side, samples, side, samples, 3).mean((1, 3))
    return (np.clip(image * 0.78, 0, 1) * 255).round().astype(np.uint8)


def main() -> None:
    """Write the contact sheets that the README and the guide of augmentations show."""
    from shiftbed.augment import augmentation
    from shiftbed.augment import sheet as augmented
    from shiftbed.corruptions.sheet import contact_sheet

    folder = Path(__file__).with_name("images")
    folder.mkdir(exist_ok=True)
    sheet = contact_sheet(scene(), title="scene.png", key="scene.png", cell=112)
    sheet.save(folder / "sheet.jpg", quality=88, optimize=True)
    for name in ("augmix", "deepaugment", "noise2net"):
        chosen = augmentation(name, seed=1)
        sheet = augmented.contact_sheet([scene()] * 2, chosen, columns=7, cell=112)
        sheet.save(folder / f"{name}.jpg", quality=88, optimize=True)


if __name__ == "__main__":
    main()
