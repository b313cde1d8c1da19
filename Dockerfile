# Two stages: the first builds the wheel and a virtual environment, the second runs it and holds nothing else.
#
#   docker build --tag headwater .
#   docker build --tag headwater --build-arg EXTRAS=enrich,video .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=""
WORKDIR /build
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/headwater \
 && /opt/headwater/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement constraints.txt
COPY src ./src
RUN /opt/headwater/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && if [ -n "$EXTRAS" ]; then /opt/headwater/bin/pip install --no-cache-dir ".[$EXTRAS]"; fi \
 && /opt/headwater/bin/pip uninstall --yes --quiet pip

FROM python:${PYTHON}-slim
RUN useradd --system --uid 8626 --create-home --home-dir /var/lib/headwater headwater
COPY --from=build /opt/headwater /opt/headwater
ENV PATH=/opt/headwater/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HEADWATER_DATA_DIR=/var/lib/headwater \
    HEADWATER_LOG_FORMAT=json
USER headwater
WORKDIR /var/lib/headwater
VOLUME /var/lib/headwater
EXPOSE 8626
# It listens where Docker can reach it, so it asks for a key: `docker exec NAME headwater key add me` makes the first.
ENV HEADWATER_HOST=0.0.0.0
HEALTHCHECK --interval=60s --timeout=20s --start-period=30s \
    CMD ["headwater", "status", "--json"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["headwater"]
CMD ["serve"]
