"""Where models come from: one file per source, named as its prefix in specs."""
