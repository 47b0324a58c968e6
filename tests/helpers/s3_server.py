"""A server of S3 on this machine that fails every tenth request."""

import threading
from contextlib import contextmanager

import pytest

EVERY = 10


@contextmanager
def flaky_s3():
    """Its address, and the paths that it was asked for."""
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server")
    from werkzeug.serving import make_server

    app, seen = server.DomainDispatcherApplication(server.create_backend_app), []

    def flaky(environ, start):
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            seen.append(environ["PATH_INFO"])
            if len(seen) % EVERY == 0:
                start("503 Slow Down", [("Content-Type", "text/plain")])
                return [b"slow down"]
        return app(environ, start)

    running = make_server("127.0.0.1", 0, flaky, threaded=True)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    s3fs.S3FileSystem.clear_instance_cache()  # one that was made before knows another address
    yield f"http://127.0.0.1:{running.server_port}", seen
    s3fs.S3FileSystem.clear_instance_cache()
    running.shutdown()
    thread.join()
    running.server_close()


def credentials(address):
    """The environment of a client; the server takes any."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def uploaded(address, folder, bucket):
    """The files of a folder in a new bucket; where they are."""
    import boto3

    settings = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=address, **settings)
    client.create_bucket(Bucket=bucket)
    for path in sorted(folder.iterdir()):
        client.put_object(Bucket=bucket, Key=f"part/{path.name}", Body=path.read_bytes())
    return f"s3://{bucket}/part"
