"""moto with its checks switched on: a store that takes signed requests alone, and clients of AWS's own for it and for the gateway."""

import json
import os
import sys

import boto3
import botocore
import botocore.config

from harness import call, free_port
from peers import Program

REGION = "eu-central-1"


def client(service, address, key=None, scheme="http", verify=None, region=REGION, **settings):
    """- address: without one, the service of AWS itself; key: an id and a key; without one nothing is signed."""
    if key is None:
        settings["signature_version"] = botocore.UNSIGNED
    name, secret = key or (None, None)
    config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings)
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=address and f"{scheme}://{address}",
        aws_access_key_id=name,
        aws_secret_access_key=secret,
        verify=verify,
        config=config,
    )


class Store:
    """Its one user's key is `key`, an id and a key."""

    def __init__(self, folder):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "inf"}
        self.program = Program(
            [sys.executable, "-m", "moto.server", "--port", str(port)], folder, [("127.0.0.1", port)], environment
        )
        try:
            self.key = self.populate()
        except BaseException:
            self.program.close()
            raise

    def populate(self):
        """A user who may do all with objects: his key."""
        iam = client("iam", self.address, ("nobody", "nothing"))
        iam.create_user(UserName="svc-batch")
        statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName="svc-batch", PolicyName="objects", PolicyDocument=policy)
        made = iam.create_access_key(UserName="svc-batch")["AccessKey"]
        # The count of actions that need no signature: none from here on.
        assert call(self.address, "POST", "/moto-api/reset-auth", b"0").status == 200
        return made["AccessKeyId"], made["SecretAccessKey"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.close()
