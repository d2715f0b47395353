# The service, or the app: `docker run IMAGE recsys app --host 0.0.0.0 --headless`. See docs/howto/docker.md.
# tests/test_docker.py runs these lines in an empty environment, without a daemon.

FROM python:3.12-slim-bookworm AS build
COPY . /source
RUN python -m pip install --no-cache-dir build
RUN python -m build --wheel --outdir /wheels /source

FROM python:3.12-slim-bookworm
# One kind of compiled code for all processors of the architecture, where everybody can read it.
ENV NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/var/cache/recsys PYTHONUNBUFFERED=1
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
RUN python -m venv /opt/recsys
RUN /opt/recsys/bin/python -m pip install --no-cache-dir -c /tmp/constraints.txt "$(ls /wheels/*.whl)[app,service]"
ENV PATH=/opt/recsys/bin:$PATH
RUN useradd --system --uid 10001 --create-home recsys && mkdir -p /var/cache/recsys /models && chown recsys /var/cache/recsys
USER recsys
RUN recsys compile
WORKDIR /home/recsys
EXPOSE 8000 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD python -c "import os, urllib.request; urllib.request.urlopen(os.environ.get('RECSYS_HEALTH', 'http://127.0.0.1:8000/health'), timeout=4)"
CMD ["recsys", "serve", "--ranker", "/models/model.recsys", "--host", "0.0.0.0", "--port", "8000"]
