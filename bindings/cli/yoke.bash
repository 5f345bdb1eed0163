# Completion of the `yoke` command in bash.
_yoke()
{
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words
    if [ "$COMP_CWORD" = 1 ]; then
        words="devices topology doctor select bench version --help --version"
    else
        case $command in
            devices) words="--json --watch --every --processes --catalog" ;;
            topology | version) words="--json" ;;
            doctor) words="--json --all --redact --no-probe --deadline --record --verify-off" ;;
            select) words="--explain --json auto cpu cuda auto:n= auto:min_free= auto:same=nvlink" ;;
            bench) words="device --seconds --svg --json auto cpu cuda" ;;
        esac
        words="$words --help"
    fi
    if [ "${COMP_WORDS[COMP_CWORD - 1]}" = --record ]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
    elif [ "${COMP_WORDS[COMP_CWORD - 1]}" = --svg ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    fi
}
complete -F _yoke yoke
