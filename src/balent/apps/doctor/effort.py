"""Time and memory of one pass over the pool: measured on the points that are looked at, and extrapolated.

An estimate: reading is slower from a cold disk, and other programs take their share of the machine.
"""

import sys
import time
from collections.abc import Iterator
from resource import RUSAGE_SELF, getrusage

from balent import adapt
from balent.apps.doctor.finding import NOTE, Figure, Finding
from balent.apps.doctor.patient import Patient

FLOAT = 4  # bytes
MILLION = 1_000_000
LONG = 3600  # seconds
ENGINE = "to share it out over CPUs and machines: balent acquire --engine ray"


def effort(patient: Patient) -> Iterator[Finding]:
    """How long does one pass take?"""
    m, traits = patient.moments, adapt.traits(patient.sampled)  # has planned the model, or fitted its draws
    points = sum(len(positions) for _, positions in patient.answered)
    began = time.perf_counter()
    for batch, positions in patient.answered:
        patient.sampled.moments(batch, positions)
    each = (time.perf_counter() - began) / points + patient.sample.seconds / len(patient.sample)
    size = patient.evidence.size
    total = each * (MILLION if size is None else size)
    block = traits.block * (patient.sample.bytes + m.n * m.mean.shape[1] * FLOAT)
    whole = "each million points of the stream" if size is None else f"all {size:,} {patient.evidence.points}"
    says = (
        f"one pass over {whole}: about {duration(total)} (estimated from {points:,}); a block of points: "
        f"{memory(block)}, this process so far: {memory(peak())}"
    )
    yield Finding(NOTE, says, ENGINE if total > LONG else "", Figure(total))


def duration(seconds: float) -> str:
    """In words, to one or two digits.

    >>> [duration(s) for s in (0.2, 59.0, 90.0, 5400.0, 200000.0)]
    ['1 s', '59 s', '2 min', '2 h', '2 days']
    """
    for unit, length in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 60 * length and (unit != "h" or seconds < 48 * length):
            return f"{max(1, round(seconds / length + 1e-9))} {unit}"
    return f"{round(seconds / 86400)} days"


def memory(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{max(1, round(number / 1e6))} MB"


def peak() -> int:
    """Bytes that this process has held at most. Linux counts in kilobytes, macOS in bytes."""
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
