# Smaller sizes, and two ranks of eight.
yoke() {
    local words="${*/1G/4K}"
    command yoke ${words/--ranks 8/--ranks 2}
}
