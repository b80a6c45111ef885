"""What the kernel says a process has used: no contender is asked about itself."""
import os
import pathlib


def family(pid):
    """A process and all its descendants."""
    found, open_ = [], [pid]
    while open_:
        one = open_.pop()
        found.append(one)
        for task in pathlib.Path(f"/proc/{one}/task").glob("*"):
            try:
                open_ += [int(child) for child in (task / "children").read_text().split()]
            except OSError:
                pass
    return found


def threads(pid):
    for one in family(pid):
        yield from pathlib.Path(f"/proc/{one}/task").glob("*")


def cpu_seconds(pid):
    """On a processor, user and kernel, of every thread; in nanoseconds at the source."""
    return sum(by_thread(pid).values())


def by_thread(pid):
    """Seconds on a processor, of each thread."""
    found = {}
    for task in threads(pid):
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            pass
    return found


def status(pid, key):
    """The sum of one line of /proc/PID/status over the family."""
    total = 0
    for one in family(pid):
        for line in pathlib.Path(f"/proc/{one}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                total += int(line.split()[1])
    return total


def anonymous_kb(pid):
    return status(pid, "RssAnon")


def resident_kb(pid):
    return status(pid, "VmRSS")


def wake_ups(pid):
    """How often any thread has gone to sleep so far."""
    total = 0
    for task in threads(pid):
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def busy_seconds(core):
    """What a processor has worked since boot, for whomever; in hundredths at the source."""
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"cpu{core} "):
            user, nice, system, _, _, interrupts, soft, stolen = map(int, line.split()[1:9])
            return (user + nice + system + interrupts + soft + stolen) / 100
    return 0.0


def stolen_seconds():
    """Of all processors since boot: time that other machines on the same host took."""
    return int(pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[8]) / 100


def machine():
    processor = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    kernel = pathlib.Path("/proc/sys/kernel/osrelease").read_text().strip()
    return {"processor": processor, "processors": os.cpu_count(), "kernel": kernel}
