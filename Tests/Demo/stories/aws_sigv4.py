"""A legacy job that speaks plain HTTP, a store that takes signed requests alone, Cardea between."""

import atexit
import hashlib
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import urllib.parse

from stage import ADMIN, CALLERS, GATEWAY, ROOT, Deviation, a_thousand_more, ask, at_once, conclude, curl, expect, page, send

TITLE = "a legacy job that speaks plain HTTP, a store of objects that asks for AWS signatures"
SECRETS = {}
LAB = []
REPORTS = "/archive/reports/"
TRY = f"{REPORTS}7"
SIZE = 100_000_000
CHUNK = 1 << 16
ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
OURS = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::archive*"}]}


def python():
    """The interpreter that has the tests' packages, made at the first run."""
    named = os.environ.get("CARDEA_PYTHON")
    if named:
        return named
    if not (ROOT / ".build/python/lock").exists():
        page.line("The tests' Python packages are installed into .build first, which takes a minute.")
    done = subprocess.run([ROOT / ".ci/setup", "python"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Deviation("the tests' Python packages, of which moto is one, are not there: see above")
    return done.stdout.strip()


class Store:
    """moto, which computes the signature of each request by botocore. Its users are made before it begins to check."""

    def __init__(self, folder):
        self.log = folder / "moto.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:{}".format(probe.getsockname()[1])
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [python(), "-m", "moto.server", "--port", self.address.rpartition(":")[2]],
                cwd=folder,
                env={**os.environ, "MOTO_ACCOUNT_ID": "123456789012", "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        atexit.register(self.end)
        self.wait()
        self.operator = None
        for user, policy in (("operator", ALL), ("svc-batch", OURS)):
            self.manage("CreateUser", UserName=user)
            self.manage("PutUserPolicy", UserName=user, PolicyName="may", PolicyDocument=json.dumps(policy))
        operator = self.new_key("operator")
        expect(ask(self.address, "/archive", "PUT")[0], 200, "the store's word on a bucket")
        expect(ask(self.address, f"{REPORTS}42", "PUT", report(42))[0], 200, "the store's word on an object")
        # The count of actions that need no signature: none from here on.
        expect(ask(self.address, "/moto-api/reset-auth", "POST", b"0")[0], 200, "moto's word on its checks")
        self.operator = operator

    def wait(self):
        began = time.monotonic()
        while True:
            try:
                socket.create_connection(self.address.split(":"), timeout=2).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() - began > 30:
                    raise Deviation(f"moto does not listen: {self.log.read_text()[-500:]}") from None
                time.sleep(0.05)

    def manage(self, action, key=None, **values):
        """A call to IAM, signed by curl; its answer's text."""
        asked = urllib.parse.urlencode({"Version": "2010-05-08", "Action": action, **values})
        # In a file of curl's that is its standard input, since everybody may read the words of a command.
        name, secret = key or self.operator or ("nobody", "nothing")
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--max-time", "30", "--noproxy", "*", "--config", "-", "--data", asked]
            + ["--aws-sigv4", "aws:amz:us-east-1:iam", f"http://{self.address}/"],
            input=f'user = "{name}:{secret}"',
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Deviation(f"curl ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def new_key(self, user="svc-batch"):
        made = self.manage("CreateAccessKey", UserName=user)
        found = [re.search(f"<{name}>([^<]+)<", made) for name in ("AccessKeyId", "SecretAccessKey")]
        if None in found:
            raise Deviation(f"no access key: {made}")
        return tuple(match[1] for match in found)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


STORES, KEYS = [], []


def put_in_place(folder, key):
    """Id and key change at one moment: behind a link that is renamed over the last one."""
    KEYS.append(key)
    place = folder / f"key-{len(KEYS)}"
    place.mkdir(mode=0o700)
    for name, value in zip(("access-key-id", "secret-access-key"), key):
        (place / name).touch(mode=0o600)
        (place / name).write_text(value)
    (folder / "next").symlink_to(place.name)
    os.replace(folder / "next", folder / "key")


def report(number):
    return json.dumps({"id": number, "report": f"the report of day {number}"}).encode()


def configuration(folder):
    store = Store(folder)
    STORES.append(store)
    put_in_place(folder, store.new_key())
    os.environ["CARDEA_DEMO_API"] = store.address
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    [store] = STORES
    straight_to_the_store(store)
    gateway.start()
    through_cardea()
    a_thousand_puts(gateway)
    a_thousand_more(lab, 4, REPORTS)
    page.step(5, f"{CALLERS} callers at once")
    conclude(lab, at_once(CALLERS, REPORTS), CALLERS)
    page.row(f"200 × {CALLERS}")
    a_large_object(gateway)
    another_key(store, gateway.folder)
    where_the_key_is_not(store, gateway)


def straight_to_the_store(store):
    page.step(1, "Straight to the store, as the legacy job would")
    status, _, _, _ = curl(f"http://{store.address}{REPORTS}42")
    expect(status, 403, "status without a signature")
    page.line(f"   {page.status(status)}")


def through_cardea():
    page.step(2, "The same request through Cardea, which signs it")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{REPORTS}42")
    expect((status, json.loads(body)["id"]), (200, 42), "status and report")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")


def a_thousand_puts(gateway):
    page.step(3, "A thousand reports are put, one after the other on one connection; each body is signed")
    connection = http.client.HTTPConnection(GATEWAY, timeout=30)
    times, spent = [], processor(gateway)
    for number in range(1000):
        began = time.perf_counter()
        expect(send(connection, f"{REPORTS}{number}", "PUT", report(number))[0], 200, "status of a put")
        times.append((time.perf_counter() - began) * 1000)
    connection.close()
    times.sort()
    spent = processor(gateway) - spent
    page.row("200 × 1000", "", f"p50 {times[499]:.2f} ms  p99 {times[989]:.2f} ms, of which Cardea computes {spent:.2f} ms")


def processor(gateway):
    """Seconds that the gateway has computed for: milliseconds a request, for a thousand of them."""
    words = pathlib.Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def a_large_object(gateway):
    page.step(6, "100 MB up and down")
    there, back = gateway.folder / "backup", gateway.folder / "restored"
    written = os.urandom(SIZE)
    there.write_bytes(written)
    place = f"http://{GATEWAY}/archive/backup"
    before = memory(gateway)
    status, _, _, up = curl("--upload-file", str(there), place)
    expect(status, 200, "status of the large put")
    more = memory(gateway) - before
    page.row(f"200 in {up:.0f} ms", "", f"the body was held until its hash was known: {more:.0f} MB more at most")
    status, _, _, down = curl("--output", str(back), place)
    expect(status, 200, "status of the large get")
    expect(digest(back.read_bytes().partition(b"\r\n\r\n")[2]), digest(written), "what came back")
    page.row(f"200 in {down:.0f} ms", "", "the same octets; an answer is passed on as it comes")
    with open(there, "ab") as file:
        file.write(bytes(10_000_000))
    status, _, body, _ = curl("--upload-file", str(there), place)
    expect((status, json.loads(body)["type"]), (413, "urn:cardea:problems/big-body"), "what is said of 110 MB")
    page.row("413 for 110 MB", "", "on_rejected.max_body is 100 MiB here; over https bodies may go unsigned, of any size")
    for path in (there, back):
        path.unlink()
    in_chunks(gateway, written)


def in_chunks(gateway, data):
    """As an SDK streams: each chunk has a signature, here of zeros."""
    parts = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] + [b""]
    lines = [b"%x;chunk-signature=%s\r\n" % (len(part), b"0" * 64) for part in parts]
    fields = {
        "Content-Length": str(sum(map(len, lines)) + len(data) + 2 * len(parts)),
        "Content-Encoding": "aws-chunked",
        "X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "X-Amz-Decoded-Content-Length": str(len(data)),
    }
    # Forgets the most that it has had so far.
    (pathlib.Path("/proc") / str(gateway.process.pid) / "clear_refs").write_text("5")
    before, began = memory(gateway), time.monotonic()
    connection = http.client.HTTPConnection(GATEWAY, timeout=60)
    connection.request("PUT", "/archive/streamed", (line + part + b"\r\n" for line, part in zip(lines, parts)), fields)
    expect(connection.getresponse().status, 200, "status of the put in chunks")
    connection.close()
    more, seconds = memory(gateway) - before, time.monotonic() - began
    expect(digest(ask(GATEWAY, "/archive/streamed")[1]), digest(data), "what the store made of the chunks")
    page.row(f"200 in {seconds * 1000:.0f} ms", "", f"in aws-chunked, signed anew chunk by chunk: {more:.0f} MB more at most")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def memory(gateway):
    """The most that the gateway has ever had, in MB."""
    told = pathlib.Path(f"/proc/{gateway.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", told)[1]) / 1000


def another_key(store, folder):
    page.step(7, "The access key is replaced and the old one revoked, while requests go on")
    statuses, ended = [], threading.Event()

    def work():
        while not ended.is_set():
            statuses.append(ask(GATEWAY, f"{REPORTS}{len(statuses) % 1000}")[0])

    job = threading.Thread(target=work, daemon=True)
    job.start()
    try:
        old, new = KEYS[-1], store.new_key()
        put_in_place(folder, new)
        seconds = until_used(store, new)
        store.manage("DeleteAccessKey", UserName="svc-batch", AccessKeyId=old[0])
        expect("InvalidClientTokenId" in store.manage("GetUser", old), True, "that the old key is unknown to the store")
        done = len(statuses)
        while len(statuses) < done + 100 and job.is_alive():
            time.sleep(0.01)
    finally:
        ended.set()
        job.join(30)
    # Id and key are read together: no request is signed with one of each.
    expect(set(statuses), {200}, "the statuses while the key changed")
    page.row(
        f"200 × {len(statuses)}", "", f"the new key was in use {seconds * 1000:.0f} ms later; then the old one was revoked"
    )


def until_used(store, key):
    """Operators find out in the same way: the store says when a key was used for the last time."""
    began = time.monotonic()
    while "<ServiceName>s3<" not in store.manage("GetAccessKeyLastUsed", AccessKeyId=key[0]):
        if time.monotonic() - began > 20:
            raise Deviation("the new key was not used within 20 s")
        time.sleep(0.02)
    return time.monotonic() - began


def where_the_key_is_not(store, gateway):
    page.step(8, "Where the keys are not")
    process = pathlib.Path("/proc") / str(gateway.process.pid)
    places = {
        "the gateway's log": gateway.log.read_bytes(),
        "the store's log": store.log.read_bytes(),
        "metrics and status": b"".join(ask(ADMIN, path)[1] for path in ("/metrics", "/status")),
        "the gateway's file": b"".join(path.read_bytes() for path in gateway.folder.glob("tokens.db*")),
        "its arguments and environment": (process / "cmdline").read_bytes() + (process / "environ").read_bytes(),
    }
    for place, data in places.items():
        expect([secret for _, secret in KEYS if secret.encode() in data], [], f"secrets in {place}")
        page.row(f"{len(data):>9} octets", place)
    expect(b"/reports/42" in places["the gateway's log"], True, "requests in the gateway's log")
    page.line("   The job has no key at all: its requests are those that are printed above.")
