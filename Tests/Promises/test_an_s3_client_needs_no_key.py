"""Promise: a client of S3 that has no key, or a wrong one, uses a store that checks signatures, whatever its objects are called."""

import os
import random
import subprocess

import botocore.exceptions
import botocore.parsers
import pytest
from s3_store import REGION, Store, client

from harness import call, executable, sha256
from peers import Authority
from test_a_gigabyte_passes_in_constant_memory import forget, peak

DUMMY = ("AKIADUMMY", "dummy")
KEYS = [
    *("plain", "a b", " a ", "a+b", "a%b", "a%20b", "a%2Fb", "a\tb", "a~b-c_d.e", "a&b=c?d#e", "!$'()*,;:@", '"<>\\^`{|}[]'),
    *("ä/ö", "e\u0301", "日本/語.txt", "\U0001f600", "a//b", "/led", "trailed/", ".", "..", "./a", "a/./b", "a/../b", "a..b"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("moto")) as store:
        yield store


def before(gateway, store, route=None, **top):
    name, secret = store.key
    block = {"access_key_id": gateway.secret("key-id", name), "secret_access_key": gateway.secret("key", secret)}
    block |= {"service": "s3", "region": REGION}
    way = gateway.route("store", store.address) | {"paths": "raw", "on_rejected": {"max_body": "9MiB"}} | (route or {})
    # Bodies are held in their thread's share of memory: with more threads, parts that come at once might not fit into one of them.
    gateway.config = gateway.frame({"threads": 1, "identities": {"store": {"aws_sigv4": block}}, "routes": [way], **top})
    return gateway.start()


def listed(s3, bucket, **which):
    return {entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket, **which).get("Contents", [])}


@pytest.mark.parametrize("key", [None, DUMMY], ids=["unsigned", "wrong-key"])
def test_objects_of_every_name(gateway, store, key):
    before(gateway, store)
    s3, bucket = client("s3", gateway.listen, key), f"names-{'wrong' if key else 'none'}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    for number, name in enumerate(KEYS):
        s3.put_object(Bucket=bucket, Key=name, Body=f"body of {name}".encode(), Metadata={"number": f"{number}  of  all"})
    assert listed(s3, bucket) == set(KEYS)
    for number, name in enumerate(KEYS):
        got = s3.get_object(Bucket=bucket, Key=name)
        assert (got["Body"].read().decode(), got["Metadata"]["number"].split()[0]) == (f"body of {name}", str(number)), name
        assert name in listed(s3, bucket, Prefix=name), name
    # The same object straight from the store, without a signature and with one of another key.
    assert call(store.address, "GET", f"/{bucket}/plain").status == 403
    with pytest.raises(botocore.exceptions.ClientError, match="InvalidAccessKeyId"):
        client("s3", store.address, DUMMY).get_object(Bucket=bucket, Key="plain")
    for name in KEYS:
        s3.delete_object(Bucket=bucket, Key=name)
    assert listed(s3, bucket) == set()


def test_a_file_in_parts(gateway, store, tmp_path):
    before(gateway, store)
    s3, file = client("s3", gateway.listen), tmp_path / "large"
    file.write_bytes(bytes(range(256)) * 80_000)
    s3.create_bucket(Bucket="parts", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.upload_file(str(file), "parts", "large")
    assert s3.head_object(Bucket="parts", Key="large")["ETag"].endswith('-3"')
    s3.download_file("parts", "large", str(tmp_path / "back"))
    assert sha256((tmp_path / "back").read_bytes()) == sha256(file.read_bytes())


def secured(gateway, store, tmp_path, route=None, **top):
    """Before the store with TLS: settings for a client."""
    authority = Authority(tmp_path / "pki")
    certificate, private = authority.issue("server")
    tls = [{"certificate": str(certificate), "key": f"file:{private}"}]
    before(gateway, store, {"listen": "edge"} | (route or {}), listeners={"edge": {"address": gateway.listen, "tls": tls}}, **top)
    return {"scheme": "https", "verify": str(authority.file)}


@pytest.mark.parametrize("key", [None, DUMMY], ids=["unsigned", "wrong-key"])
def test_over_tls_checksums_stand_behind_bodies(gateway, store, tmp_path, key):
    secure = secured(gateway, store, tmp_path)
    s3, bucket = client("s3", gateway.listen, key, **secure), f"tls-{'wrong' if key else 'none'}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    for algorithm in ("CRC32", "SHA1", "SHA256"):
        s3.put_object(Bucket=bucket, Key=algorithm, Body=b"body", ChecksumAlgorithm=algorithm)
        assert s3.get_object(Bucket=bucket, Key=algorithm)["Body"].read() == b"body"
    plain = client("s3", gateway.listen, key, **secure, request_checksum_calculation="when_required")
    plain.put_object(Bucket=bucket, Key="a", Body=b"body")
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"body"


@pytest.mark.alone
def test_a_hundred_megabytes_over_tls_are_not_held(gateway, store, tmp_path):
    secure = secured(gateway, store, tmp_path)
    s3, file = client("s3", gateway.listen, DUMMY, **secure), tmp_path / "large"
    file.write_bytes(random.Random(1).randbytes(1 << 20) * 100)
    s3.create_bucket(Bucket="large", CreateBucketConfiguration={"LocationConstraint": REGION})
    forget(gateway)
    start = gateway.resident()
    s3.upload_file(str(file), "large", "in-parts")
    with file.open("rb") as body:
        s3.put_object(Bucket="large", Key="at-once", Body=body)
    for name in ("in-parts", "at-once"):
        s3.download_file("large", name, str(tmp_path / name))
        assert sha256((tmp_path / name).read_bytes()) == sha256(file.read_bytes())
    s3.close()
    print(f"peak of resident memory: {start >> 10} kB before, {peak(gateway) >> 10} kB at most")
    # Ten parts of 8 MiB come at once, and of each no more than 1 MiB is kept to be sent again, although all of them fit into `max_body`.
    assert peak(gateway) - start < 24 << 20


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_the_command_line_of_aws(gateway, store, tmp_path, secure):
    route = {"on_rejected": {"max_body": "9MiB"}}
    settings = secured(gateway, store, tmp_path, route) if secure else before(gateway, store) and {"scheme": "http", "verify": ""}
    file, bucket = tmp_path / "file", f"command-{settings['scheme']}"
    file.write_bytes(random.Random(2).randbytes(20_000_000))
    given = {"AWS_ACCESS_KEY_ID": DUMMY[0], "AWS_SECRET_ACCESS_KEY": DUMMY[1], "AWS_DEFAULT_REGION": REGION, "HOME": str(tmp_path)}

    def aws(*words):
        words = [executable("CARDEA_AWS", "aws", "apt-get install awscli"), "--endpoint-url", f"{settings['scheme']}://{gateway.listen}", *words]
        ours = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true", "AWS_CA_BUNDLE": settings["verify"]}
        done = subprocess.run(words, capture_output=True, text=True, env=given | {name: value for name, value in ours.items() if value})
        assert done.returncode == 0, done.stderr
        return done.stdout

    aws("s3", "mb", f"s3://{bucket}")
    aws("s3", "cp", str(file), f"s3://{bucket}/a folder/file")
    (tmp_path / "small").write_bytes(file.read_bytes()[:5_000_000])
    aws("s3api", "put-object", "--bucket", bucket, "--key", "small", "--body", str(tmp_path / "small"))
    assert "20000000 file" in aws("s3", "ls", f"s3://{bucket}/a folder/")
    for name in ("a folder/file", "small"):
        aws("s3", "cp", f"s3://{bucket}/{name}", str(tmp_path / "back"))
        assert sha256((tmp_path / "back").read_bytes()) == sha256((tmp_path / name.rpartition("/")[2]).read_bytes())


def test_one_listener_for_every_service_of_a_client(gateway, store, tmp_path):
    name, secret = store.key
    block = {"access_key_id": gateway.secret("key-id", name), "secret_access_key": gateway.secret("key", secret)}
    block |= {"services": ["s3", "sqs", "sts"], "regions": [REGION]}
    authority = gateway.folder / "interception"
    hosts = [f"{service}.{REGION}.amazonaws.com" for service in ("s3", "sqs", "sts", "sns")]
    status, out, error = gateway.command("ca", "init", "--hosts", ",".join(hosts), "--out", str(authority), config=False)
    assert status == 0, out + error
    intercept = {"ca": f"{authority}.pem", "hosts": hosts}
    listener = {"address": gateway.listen, "mode": "forward_proxy", "unmatched": "refuse", "intercept": intercept}
    way = {"listen": "proxy", "match": {"host": f"*.{REGION}.amazonaws.com"}, "host": "caller", "paths": "raw"}
    way |= {"on_rejected": {"max_body": "1MiB"}}
    routes = [gateway.route("store", store.address) | way]
    gateway.config = gateway.frame({"identities": {"store": {"aws_sigv4": block}}, "listeners": {"proxy": listener}, "routes": routes})
    gateway.start()

    def through(service, region=REGION):
        return client(service, None, DUMMY, region=region, verify=f"{authority}.crt", proxies={"https": f"http://{gateway.listen}"})

    assert through("sts").get_caller_identity()["Arn"].endswith("user/svc-batch")
    s3 = through("s3")
    s3.create_bucket(Bucket="chosen", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="chosen", Key="a b", Body=b"body")
    assert s3.get_object(Bucket="chosen", Key="a b")["Body"].read() == b"body"
    # The store knows the key, and that it may not do this.
    with pytest.raises(botocore.exceptions.ClientError, match="AccessDenied"):
        through("sqs").list_queues()
    # What is not in the lists ends here, in words that are not AWS's.
    with pytest.raises(botocore.parsers.ResponseParserError, match="unsignable-request.*its service is not among"):
        through("sns").list_topics()
