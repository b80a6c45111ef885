"""Promise: a client of S3 that has no key, or a wrong one, uses a store that checks signatures, whatever its objects are called."""

import botocore.exceptions
import pytest
from s3_store import REGION, Store, client

from harness import call, sha256
from peers import Authority

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


@pytest.mark.parametrize("key", [None, DUMMY], ids=["unsigned", "wrong-key"])
def test_over_tls_a_client_leaves_checksums_out(gateway, store, tmp_path, key):
    authority = Authority(tmp_path / "pki")
    certificate, private = authority.issue("server")
    tls = [{"certificate": str(certificate), "key": f"file:{private}"}]
    before(gateway, store, {"listen": "edge"}, listeners={"edge": {"address": gateway.listen, "tls": tls}})
    secure = {"scheme": "https", "verify": str(authority.file)}
    bucket = f"tls-{'wrong' if key else 'none'}"
    # Over TLS checksums stand behind bodies, which are in aws-chunked for that.
    s3 = client("s3", gateway.listen, key, **secure)
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="a", Body=b"body")
    told = refused.value.response["ResponseMetadata"]
    assert (told["HTTPStatusCode"], told["HTTPHeaders"]["content-type"]) == (400, "application/problem+json")
    # The way out that docs/how-to/aws-signatures.md names.
    s3 = client("s3", gateway.listen, key, **secure, request_checksum_calculation="when_required")
    s3.put_object(Bucket=bucket, Key="a", Body=b"body")
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"body"
