# ./dev of a tree that is built.
printf '%s\n' '#!/bin/bash' '[ "$1" = build ] && exit' 'cd "$ROOT" && shift && exec python "$@"' >dev
chmod +x dev
