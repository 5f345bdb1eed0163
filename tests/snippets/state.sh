cd "$ROOT"
