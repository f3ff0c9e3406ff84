"""Time imagecorruptions by itself, in whatever environment it runs; print JSON.

For the original imagecorruptions 1.1.2, which needs an older Python and older libraries than
shiftbed; see docs/performance.md. Run by ``corruptions.py --original PYTHON``.
"""

import json
import statistics
import sys
import time
import warnings

warnings.simplefilter("ignore")

import cv2  # noqa: E402
import imagecorruptions  # noqa: E402
import numpy as np  # noqa: E402

cv2.setNumThreads(1)
picture = np.load(sys.argv[1])
milliseconds = {}
for name in sys.argv[2:]:
    severities = []
    for severity in range(1, 6):
        samples = []
        for _ in range(4):
            start = time.process_time()
            imagecorruptions.corrupt(picture, corruption_name=name, severity=severity)
            samples.append((time.process_time() - start) * 1e3)
        severities.append(statistics.median(samples[1:]))
    milliseconds[name] = statistics.mean(severities)
print(json.dumps(milliseconds))
