"""Programs that bring credentials, as a test writes them: shell scripts that report each run to the test, since they can write nowhere."""

import json
import socket
import threading
import time


def at(seconds):
    """A time of RFC 3339, so many seconds from now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class Bringer:
    """A script in the gateway's folder. `answer` may be changed while the gateway runs: it stands in a file beside the script.

    - more: lines of the shell that run before the answer is written. Descriptor 3 is the test's: what is written there stands in `heard`."""

    def __init__(self, gateway, answer="", more="", name="bring"):
        self.path, self.told = (gateway.folder / f"{name}{end}" for end in ("", ".json"))
        self.runs, self.heard = 0, b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.answers(answer)
        # Nothing goes on before the run is counted, and nothing is answered before all was heard.
        self.path.write_text(f"""#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/{self.socket.getsockname()[1]}
read -u 3 line || exit 9
{more}
printf '\\0' >&3
read -u 3 line || exit 9
cat {self.told}
""")
        self.path.chmod(0o700)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            run, _ = self.socket.accept()
            threading.Thread(target=self.hear, args=(run,), daemon=True).start()

    def hear(self, run):
        with run:
            self.runs += 1
            run.sendall(b"counted\n")
            heard = b""
            while not heard.endswith(b"\0"):
                piece = run.recv(65536)
                if not piece:
                    return
                heard += piece
            self.heard += heard[:-1]
            run.sendall(b"heard\n")

    def answers(self, answer):
        if isinstance(answer, dict):
            answer = json.dumps(answer)
        # Renamed, so that no run reads half of it.
        beside = self.told.with_suffix(".new")
        beside.write_bytes(answer if isinstance(answer, bytes) else answer.encode())
        beside.rename(self.told)

    def block(self, **changes):
        return {"program": {"command": [str(self.path)], **changes}}
