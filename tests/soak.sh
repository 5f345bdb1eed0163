# The parts of `./dev soak`, each a function; dev reads this file.
# shellcheck shell=bash disable=SC2154

readonly soak_parts=(release asan tsan clang lint mutants memory overruns hostile fuzz engines groups parallel launchers scripts deploy powersgd install mpi cuda gpu)
soak_preset() {
    part "build $1" build_preset "$1" || return
    part "test $1" test_preset "$1"
    summary "build/$1"
}
soak_release() {
    configure release -DYOKE_EMU_BLOCKS="64;512" && soak_preset release
    local status=$?
    cmake -UYOKE_EMU_BLOCKS build/release >/dev/null
    return $status
}
soak_asan() { soak_preset asan-wide; }
soak_tsan() { soak_preset tsan; }
soak_clang() {
    install_packages clang libomp-dev
    soak_preset clang
}
soak_lint() { # each source compiled alone, lengths of functions, and clang-tidy's short list
    install_packages clang-tidy libomp-dev && $python -m pip install -q lizard && build_native all &&
        $python -B tests/static/lint.py build/native
}
soak_mutants() {
    cmd_mutants --all && return
    say "too many mutants survived: they lack a test, or a line in tests/emu/equivalent_mutants.txt"
    return 1
}
# Runs programs of the allocator in three builds, and checks that the tests notice a wrong allocator.
soak_memory() {
    local status=0 preset
    for preset in release asan tsan; do
        build_preset $preset fuzz_memory || return
        part "10,000 programs of the allocator, $preset" env YOKE_NO_CACHING=0 build/$preset/env build/$preset/tests/fuzz/fuzz_memory --programs 10000 || status=1
    done
    cmake -DYOKE_ORDERS=200 build/release >/dev/null && build_preset release &&
        part "200 orders of streams" ctest --test-dir build/release -j "$(nproc)" -R '^emu/order_' --output-on-failure || status=1
    cmake -UYOKE_ORDERS build/release >/dev/null
    part "mutants of the allocator" $python -B tests/core/memory/mutants.py build/mutants || status=1
    return $status
}
soak_overruns() {
    build_preset asan yoke _yoke yoke_lua && $python tests/overruns/overruns.py build/asan
}
# Runs random calls, random programs, forks and exits with full counts. A finding of a part does not stop the other
# parts.
soak_hostile() {
    build_preset release && build_preset asan random_calls || return 1
    local status=0 jobs programs=tests/hostile/programs/random_programs.py
    local released=build/release/tests/hostile sanitized=build/asan/tests/hostile
    jobs=$(nproc)
    part "10 million calls" build/release/env $released/random_calls --calls 10000000 --jobs "$jobs" || status=1
    ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=128 YOKE_NO_CACHING=1 \
        part "1 million calls, sanitized" build/asan/env $sanitized/random_calls --calls 1000000 --jobs "$jobs" --batch 10000 --patience 200 || status=1
    part "calls in threads" build/release/env $released/random_calls --calls 200000 --threads 4 --seed 2 || status=1
    part "calls on 64 KiB" build/release/env $released/random_calls --calls 500000 --stack 65536 --seed 3 || status=1
    part "calls without new threads" build/release/env $released/random_calls --calls 500000 --no-new-threads --seed 4 || status=1
    part "calls with little memory" build/release/env $released/random_calls --calls 500000 --memory 2 --seed 5 || status=1
    YOKE_CHECKS=1 part "calls with freed handles" build/release/env $released/random_calls --calls 1000000 --freed --seed 6 --jobs "$jobs" || status=1
    local language
    for language in python lua; do
        part "100,000 programs in $language" build/release/env $python $programs --programs 100000 --language $language --jobs "$jobs" || status=1
    done
    part "2,000 forks" build/release/env $released/amid --forks 2000 || status=1
    part "2,000 exits" build/release/env $released/amid --exits 2000 || status=1
    build/release/env $python -m pytest -q -p no:cacheprovider tests/python/test_threads.py -k forked || status=1
    part "hosts that are short or end" ctest --test-dir build/release -L hostile -R '/(exits|exits_python|forks|allocations|allocations_python|allocations_lua|scopes|refused_threads|short_of_space|shared_objects.*)$' --output-on-failure || status=1
    return $status
}
# Runs foreign files and programs of the allocator: numbered cases, and libFuzzer's cases in 10,000,000 and 100,000
# runs.
soak_fuzz() {
    install_packages clang libclang-rt-dev libomp-dev
    build_preset fuzz fuzz_safetensors libfuzzer_safetensors libfuzzer_memory || return
    local status=0 folder=build/fuzz/tests/fuzz
    part "1 million mutants" build/fuzz/env $folder/fuzz_safetensors --mutants 1000000 || status=1
    rm -rf $folder/found && mkdir -p $folder/found && build/fuzz/env $folder/fuzz_safetensors --files $folder/found || return 1
    # A single process: with -fork=2 libFuzzer made 450 runs a second instead of 1,900.
    part "10 million runs of libFuzzer" build/fuzz/env $folder/libfuzzer_safetensors -runs=10000000 -max_len=8192 \
        -rss_limit_mb=4096 -artifact_prefix=$folder/broken- $folder/found || status=1
    part "100,000 programs of libFuzzer" env YOKE_NO_CACHING=0 build/fuzz/env $folder/libfuzzer_memory -runs=100000 -max_len=4096 -rss_limit_mb=4096 \
        -artifact_prefix=$folder/broken-memory- || status=1
    return $status
}
soak_engines() { # 20,000 random convolutions and products at each level of instructions that oneDNN may be held to here
    build_native product &&
        YOKE_SHAPES=20000 YOKE_SHARES=$(nproc) run python -m pytest -q -rs -s -p no:cacheprovider tests/python/test_random_shapes.py -k every_level
}
# Every fault at every op on every rank, most of whose time is waiting; then networks that are cut, strangers, and
# failures again and again.
soak_groups() {
    install_packages iproute2
    build_native product test_capi_comm_rank || return
    local status=0 shard running=() shards=8 pytest=(python -m pytest -q -rs -p no:cacheprovider tests/groups)
    for ((shard = 0; shard < shards; ++shard)); do
        YOKE_SHARD=$shard/$shards run "${pytest[@]}" -k the_rank_that_fails >"build/groups-$shard.txt" 2>&1 &
        running+=($!)
    done
    for shard in "${!running[@]}"; do
        wait "${running[$shard]}" || { status=1; cat "build/groups-$shard.txt"; }
    done
    tail -qn 1 build/groups-*.txt
    run "${pytest[@]}" -k "not the_rank_that_fails" || status=1
    run python -m pytest -q -rs -p no:cacheprovider tests/python/test_comm.py tests/python/test_comm_shrink.py -k stopped || status=1
    return $status
}
soak_parallel() { # ranks that are lost amid a training, each fault 20 times in a row, in turn on each rank
    build_native product || return
    local status=0 round
    for ((round = 0; round < 20; ++round)); do
        YOKE_ROUND=$round run python -m pytest -q -p no:cacheprovider tests/python/test_parallel_faults.py || status=1
    done
    return $status
}
soak_launchers() { # a script under yoke run, torchrun, mpirun and srun; patterns of PyTorch's guides on emulated cards
    install_packages slurmctld slurmd slurm-client libpmix-dev openmpi-bin
    setup_torch && build_native test_fixtures || return
    YOKE_TORCH_PYTHON=$PWD/build/torch-venv/bin/python run python -m pytest -q -rs -p no:cacheprovider tests/launchers
}
# Runs scripts written for PyTorch, under PyTorch and under yoke.compat.torch; tests/compat/golden gets PyTorch's
# losses. PyTorch's own samples of ops and modules are replayed. Files of random trees go both ways, and damaged files
# are read.
soak_scripts() {
    setup_torch && build_native || return
    local status=0
    run python -B tests/compat/compare.py --torch "$PWD/build/torch-venv/bin/python" --write || status=1
    YOKE_SAMPLES=40 YOKE_TREES=5000 test_oracle torch -k "oracle_pt or oracle_samples" || status=1
    YOKE_MUTANTS=20000 run python -m pytest -q -p no:cacheprovider tests/python/test_pt_hostile.py -k another_state || status=1
    return $status
}
soak_deploy() { # examples/deploy: a batch job, manifests, the image's lines in roots that debootstrap makes
    install_packages slurmctld slurmd slurm-client openmpi-bin debootstrap cpio dataset-fashion-mnist
    setup_torch && build_native || return
    [ -x build/kube-venv/bin/kubernetes-validate ] ||
        { "${YOKE_PYTHON:-/usr/bin/python3}" -m venv build/kube-venv && build/kube-venv/bin/pip install -q kubernetes-validate kubeflow-trainer-api; } || return
    YOKE_TORCH_PYTHON=$PWD/build/torch-venv/bin/python YOKE_KUBE_PYTHON=$PWD/build/kube-venv/bin/python \
        run python -m pytest -q -rs -p no:cacheprovider --basetemp build/deploy tests/deploy
}
soak_powersgd() { # bytes and accuracy of compressed gradients, between two network namespaces
    install_packages iproute2
    build_native && run python -m pytest -q -rs -s -p no:cacheprovider tests/powersgd
}
soak_install() { # by the commands of docs/building.md: pip in a fresh environment, a prefix, LuaRocks; with the CUDA module where nvcc is
    install_packages luarocks && $python tests/install/install.py build/install
}
soak_mpi() { # collectives over Debian's Open MPI: 1 to 4 ranks, every dtype and reduction, and more bytes than an int counts
    install_packages libopenmpi-dev openmpi-bin && configure release -DYOKE_MPI=ON &&
        build_preset release yoke _yoke yoke_mpi test_backend_mpi || return
    local status=0 suite="build/release/env tests/backend/mpi/run.sh 4 build/release/tests/backend/mpi/test_backend_mpi --gtest_brief=1"
    # shellcheck disable=SC2086
    {
        part "MPI in shared memory" $suite || status=1
        YOKE_TEST_BTL=self,tcp part "MPI over TCP" $suite || status=1
        YOKE_COMM_TEST_PIECE=65536 part "MPI in small pieces" $suite || status=1
    }
    part "MPI from scripts" build/release/env $python -m pytest -q -p no:cacheprovider tests/python/test_comm_mpi.py || status=1
    return $status
}
soak_cuda() { # the CUDA module as in packages: every architecture, without a warning, and the possible speed of the kernels
    if command -v "${CUDACXX:-nvcc}" >/dev/null; then
        roofline --check
    else
        say "no CUDA toolkit: no module to build"
    fi
}

soak_gpu() { # the runner of ./dev gpu where there is no GPU: with all that may go wrong, and on the emulated device
    $python -B tests/static/check_gpu_run.py "$PWD" build/gpu && $python -B tests/static/check_gpu_calls.py "$PWD" build/gpu --whole || return
    if command -v "${CUDACXX:-nvcc}" >/dev/null; then
        $python -B tests/gpu/rehearsal/emulated.py
    else
        say "no CUDA toolkit: nothing to build for the emulated device"
    fi
}

# Checks the compiled benchmark kernels, for every architecture of packages.
roofline() {
    setup_machine_code
    build_preset release yoke _yoke emu_cuda_module &&
        cmake -S . -B build/cards -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DYOKE_CUDA=ON -DYOKE_TESTS=OFF -DYOKE_PYTHON=OFF -DYOKE_WERROR=ON >&2 &&
        ninja -C build/cards -j "$(nproc)" yoke_cuda >&2 &&
        $python -B benchmarks/roofline/report.py build/release build/cards/lib/libyoke_cuda.so "$@"
}
