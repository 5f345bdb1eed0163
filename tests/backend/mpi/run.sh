#!/bin/sh
# Runs a program of tests as RANKS processes of an MPI job on this machine: run.sh RANKS PROGRAM [ARG...]
# If mpirun is missing, prints this reason and exits with 77.
set -eu
if [ "$1" = --no-module ]; then
    echo "skipped: this build has no MPI module, or no GoogleTest (Debian: libopenmpi-dev, libgtest-dev)"
    exit 77
fi
ranks=$1
shift
if ! command -v mpirun >/dev/null; then
    echo "skipped: there is no mpirun here (Debian: openmpi-bin), so nothing is tested over MPI"
    exit 77
fi
YOKE_TEST_BOARD=$(mktemp)
export YOKE_TEST_BOARD
trap 'rm -f "$YOKE_TEST_BOARD"' EXIT
# Settings for Open MPI only: the tests may run as root, on fewer processors than ranks, and use this machine only.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    timeout 300 mpirun -n "$ranks" --oversubscribe --mca btl "${YOKE_TEST_BTL:-self,vader}" --mca btl_tcp_if_include lo \
    --mca oob_tcp_if_include lo "$@"
