# Completion of the `yoke` command in bash.

# Prints the constraints of auto, each behind the part of the word before the last constraint, such as "auto:n=2,".
_yoke_constraints()
{
    local key
    for key in n= min_free= min_memory= min_cc= max_util= name= same=nvlink same=switch same=numa homogeneous \
        exclude= kind=cuda wait= lease fallback=error fallback=warn fallback=silent; do
        printf '%s ' "${1%"${1##*[:,]}"}$key"
    done
}

# Completes a word. Bash passes the command, the part of the word that bash would replace, and the word before.
_yoke()
{
    local line=${COMP_LINE:0:COMP_POINT} command=${COMP_WORDS[1]} typed words
    # Bash ends a word at ':' and '='. Here a word ends at a blank, and `before` is the part that bash keeps.
    local word=${line##*[[:space:]]}
    local before=${word%"$2"}
    read -ra typed <<< "$line"
    [ -z "$word" ] || unset 'typed[-1]'
    if [ "$COMP_CWORD" = 1 ]; then
        words="devices topology doctor select bench comm run state hang version --help --version"
    else
        case $command in
            devices) words="--json --watch --every --processes --catalog --list -L" ;;
            topology | version) words="--json" ;;
            doctor) words="--json --all --redact --no-probe --deadline --record --verify-off" ;;
            select) words="--explain --json auto cpu cuda" ;;
            run) words="-n --nproc --nnodes --node-rank --master --restarts --grace --" ;;
            comm) words="env --json" ;;
            state) words="--verify --json" ;;
            hang) words="--json" typed+=(hang) ;; # any number of files
            bench)
                words="device collectives --seconds --svg --json auto cpu cuda"
                if [[ " ${typed[*]} " == *" collectives "* ]]; then
                    words="all all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all sendrecv --minbytes --maxbytes
                        --stepfactor --stepbytes --iters --warmup_iters --op --datatype --root --check --ngpus --nthreads --group-empty --backend --device --timeout --ranks
                        --json"
                fi ;;
        esac
        words="$words --help"
        case $command:$word in
            select:auto:* | bench:auto:*) words=$(_yoke_constraints "$word") ;;
            select:a* | bench:a*) words="$words auto:" ;;
        esac
    fi
    case ${typed[-1]} in
        state | hang) mapfile -t COMPREPLY < <(compgen -f -- "$word"; compgen -W "$words" -- "$word") ;;
        --record) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        --) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
        --svg) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    esac
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    case ${typed[-1]} in --record | --svg | state | hang) compopt -o filenames ;; esac  # bash quotes blanks in names
    case ${COMPREPLY[*]} in *[:=]) compopt -o nospace ;; esac             # a value follows
}
complete -F _yoke yoke
