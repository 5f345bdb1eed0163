cd "$ROOT"
python3() { command python3 "${@/build\/release/$YOKE_BUILD_DIR}"; }
