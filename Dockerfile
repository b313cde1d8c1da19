# Two stages: the first compiles, builds the wheel and a virtual environment, the second runs it and holds nothing else.
#
#   docker build --tag headwater .
#   docker build --tag headwater --build-arg EXTRAS=video,notify .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=""
WORKDIR /build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY constraints.txt pyproject.toml hatch_build.py README.md LICENSE ./
RUN python -m venv /opt/headwater \
 && /opt/headwater/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement constraints.txt
COPY src ./src
RUN /opt/headwater/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && if [ -n "$EXTRAS" ]; then /opt/headwater/bin/pip install --no-cache-dir ".[$EXTRAS]"; fi \
 && /opt/headwater/bin/python -c "from headwater.schedule.arithmetic import load_native; assert load_native()" \
 && /opt/headwater/bin/pip uninstall --yes --quiet cython pip

FROM python:${PYTHON}-slim
RUN useradd --system --uid 8626 --create-home --home-dir /var/lib/headwater headwater \
 && chmod 0700 /var/lib/headwater
COPY --from=build /opt/headwater /opt/headwater
ENV PATH=/opt/headwater/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HEADWATER_DATA_DIR=/var/lib/headwater \
    HEADWATER_LOG_FORMAT=json
USER headwater
WORKDIR /var/lib/headwater
VOLUME /var/lib/headwater
EXPOSE 8626
# It listens where Docker can reach it, so everyone signs in: with HEADWATER_ADMIN_PASSWORD if it is set, else with the
# link that the first start prints (`docker logs NAME`); `docker exec NAME headwater sign-in-link` prints another.
ENV HEADWATER_HOST=0.0.0.0
# Of `serve`. Turn it off (--no-healthcheck) where the container collects or works only: nothing listens there.
HEALTHCHECK --interval=60s --timeout=20s --start-period=30s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8626/healthz', timeout=15)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["headwater"]
CMD ["serve"]
