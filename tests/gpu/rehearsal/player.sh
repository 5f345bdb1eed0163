#!/bin/sh
# Stands in for `env CMD ARG…` of a build: prints the output of the part's tools on a device, and leaves their files.
# Failures are chosen by "REHEARSAL_FAULT=hang|fail|crash|half|skip|denied:PART;…", with patterns for the names of
# parts.
part=${YOKE_GPU_PART#*:}

# Plays the fault chosen for the part before the part is played. With "half" the part leaves half of its results.
fault() {
    faults=$REHEARSAL_FAULT
    while [ -n "$faults" ]; do
        one=${faults%%;*}
        faults=${faults#"$one"}
        faults=${faults#;}
        # shellcheck disable=SC2254
        case $part in ${one#*:}) play "${one%%:*}" ;; esac
    done
}

play() {
    case $1 in
        hang)
            trap '' TERM INT HUP
            setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
            while :; do sleep 1; done ;;
        fail) echo "Error: it went wrong"; exit 3 ;;
        crash) kill -SEGV $$ ;;
        skip) echo "SKIPPED [2] tests/x.py:3: NCCL cannot be loaded"; echo "2 skipped in 0.10s"; exit 0 ;;
        denied) echo "nothing is profiled: ERROR: ERR_NVGPUCTRPERM - no leave"; exit 0 ;;
        half) half; kill -KILL $$ ;;
    esac
}

half() {
    printf 'loss: 2.3 to '
    [ -z "$figures" ] || printf '{"head": {"Yo' >"$figures"
}

figure() {
    printf '{"head": {"Yoke": "0.1"}, "results": [{"group": "%s", "name": "case", "case": "case", "value": 0.9, "spread": [0.8, 1.0], "unit": "", "note": "", "target": 0.5, "at_most": false, "met": true}], "missing": [{"name": "%s, more", "reason": "no time was left"}]}' "$part" "$part" >"$figures"
}

case ${0##*/} in env)
    figures='' keep='' command=$*
    while [ $# -gt 0 ]; do
        case $1 in
            --json) figures=$2 ;;
            --keep) keep=$2 ;;
        esac
        shift
    done
    fault
    [ -z "$REHEARSAL_SECONDS" ] || sleep "$REHEARSAL_SECONDS"
    case $part in
        contract*) echo "[  PASSED  ] 31 tests." ;;
        memcheck* | racecheck*) echo "========= ERROR SUMMARY: 0 errors"; echo "recorded: 6 results of 6 ops, 0 samples failed" ;;
        *,\ off | *,\ bf16 | *,\ f16) echo "loss: 2.3000 to 0.4000 in 100 steps" ;;
        device*) echo "$command"; echo "cpu: 10 results, 9 of them the same bits, 0 differ" ;;
        emulated\ half*) echo "half" >"$keep"; echo "emulated: 10 results" ;;
        real*) echo "own kernels: 3 layers right, 0 wrong" ;;
        test_* | NCCL*) echo "12 passed in 1.00s" ;;
        bench*) figure; echo "targets: 1 met" ;;
        profile*) figure; echo "700 launches" ;;
        *) echo "done" ;;
    esac ;;
esac
