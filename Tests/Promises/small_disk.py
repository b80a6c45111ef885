"""A small disk that can be full."""

import ctypes
import os

from harness import Missing

LIBC = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2


class SmallDisk:
    def __init__(self, folder, size="2m"):
        if os.geteuid() != 0:
            raise Missing("mounting a small disk needs root")
        self.folder = folder
        folder.mkdir()
        if LIBC.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={size}".encode()):
            raise Missing(f"a small disk cannot be mounted: {os.strerror(ctypes.get_errno())}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        LIBC.umount2(bytes(self.folder), MNT_DETACH)

    def fill(self):
        """Leaves no free block."""
        ballast = os.open(self.folder / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while os.write(ballast, bytes(4096)):
                pass
        except OSError:
            assert not os.statvfs(self.folder).f_bavail
        finally:
            os.close(ballast)

    def free(self):
        (self.folder / "ballast").unlink()
