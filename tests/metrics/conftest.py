from __future__ import annotations

from hypothesis import settings

# A shared machine pauses; how long one example took says nothing.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
