# The server in a container. Built:  docker build -t lamina .
# What it needs from outside is in docs/deploying.md; nothing secret is in any of its layers.

FROM python:3.13-slim AS build
WORKDIR /build
RUN python -m venv /lamina && /lamina/bin/pip install --no-cache-dir --upgrade pip
COPY pyproject.toml README.md LICENSE NOTICE sbom.cdx.json ./
COPY src ./src
RUN /lamina/bin/pip install --no-cache-dir ".[mcp,otel,postgres,server]"

FROM python:3.13-slim
RUN groupadd --system --gid 10001 lamina \
    && useradd --system --uid 10001 --gid lamina --home-dir /data --shell /usr/sbin/nologin lamina \
    && install --directory --owner lamina --group lamina --mode 0700 /data
COPY --from=build /lamina /lamina
ENV PATH="/lamina/bin:$PATH" PYTHONUNBUFFERED=1 HOME=/data LAMINA_DATA_DIR=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8765/healthz', timeout=4)"]
ENTRYPOINT ["lamina"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8765", "--log-format", "json"]
