# An image with the simulator, the Python package and JAX, to export and to simulate:
#
#   docker build -t tpusim .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" tpusim step.pb --config v5e-4x2
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" --entrypoint python tpusim train.py
FROM debian:12-slim AS build
WORKDIR /src
COPY tools/install tools/install
RUN tools/install wheel && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt LICENSE README.md pyproject.toml ./
COPY cmake cmake
COPY configs configs
COPY models models
COPY sim sim
COPY validation validation
COPY workloads workloads
COPY tools tools
RUN tools/wheel /dist

FROM debian:12-slim
# What pip installs beside the wheel: notebook adds tables and plots, search what searches need.
ARG EXTRAS=export
ARG JAX_VERSION=0.10.2
RUN apt-get update -qq \
  && apt-get install -y -qq --no-install-recommends python3 python3-venv ca-certificates \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /dist /dist
RUN python3 -m venv /opt/tpusim \
  && /opt/tpusim/bin/pip install --no-cache-dir --disable-pip-version-check \
    "$(echo /dist/tpusim-*.whl)[$EXTRAS]" "jax==$JAX_VERSION" \
  && rm -r /dist
ENV PATH=/opt/tpusim/bin:$PATH
# Files are read and written in what is mounted here.
WORKDIR /work
USER nobody
ENTRYPOINT ["tpusim"]
CMD ["--help"]
