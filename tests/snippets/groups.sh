# Smaller sizes.
yoke() { command yoke "${@/%[0-9]*[GM]/4K}"; }
