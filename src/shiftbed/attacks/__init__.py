"""Shifts that need the model too: the worst that a small change can do to a picture."""

from __future__ import annotations

from shiftbed.attacks.attack import Attack, attack_kinds, attacks_named, is_attack, published
from shiftbed.attacks.attacked import attacked, attacked_logits, check_attackable

__all__ = [
    "Attack",
    "attack_kinds",
    "attacked",
    "attacked_logits",
    "attacks_named",
    "check_attackable",
    "is_attack",
    "published",
]
