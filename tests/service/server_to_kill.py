"""A server that is forked anew for each line on stdin, since imports take longer than what is tested."""

import os
import socket
import sys
from pathlib import Path

import uvicorn

from recsys.service import create_app
from recsys.service.model_store import load


def serve(listener, model, database):
    server = uvicorn.Server(uvicorn.Config(create_app(model, events=database), log_level="error"))
    server.run([listener])


def main(model, database):
    load(Path(model))  # compiled code is inherited; none of it starts threads
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                serve(listener, model, database)
            finally:
                os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
