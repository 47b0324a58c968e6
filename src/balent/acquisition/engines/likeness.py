"""What the last bits of a score depend on besides model and data: it must be the same wherever a pool is scored."""

from dataclasses import asdict, dataclass

import torch

from balent import kernels


@dataclass(frozen=True)
class Likeness:
    """The versions and settings of a process."""

    kernel: str  # instructions of the compiled kernel; "torch" without it
    torch: str
    instructions: str  # those of torch's own kernels
    threads: int

    @classmethod
    def here(cls) -> "Likeness":
        """Of this process."""
        return cls(
            kernels.active(), torch.__version__, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()
        )

    def difference(self, other: "Likeness") -> str:
        """In which point the other process differs, in words; "" if it does not."""
        mine, theirs = asdict(self), asdict(other)
        return ", ".join(
            f"{NAMES[name]} {theirs[name]} instead of {mine[name]}" for name in mine if mine[name] != theirs[name]
        )


NAMES = {"kernel": "the kernel", "torch": "torch", "instructions": "torch's instructions", "threads": "threads"}


class Refused(RuntimeError):
    """A worker whose scores would differ in the last bits."""

    def __init__(self, host: str, difference: str) -> None:
        self.host, self.difference = host, difference
        super().__init__(
            f"the worker on {host} is not used, since its scores could differ in the last bits: it has {difference}; "
            "install the same versions there, or hold all machines to one level with BALENT_KERNEL and "
            "ATEN_CPU_CAPABILITY"
        )

    def __reduce__(self) -> "tuple[type[Refused], tuple[str, str]]":
        return Refused, (self.host, self.difference)
