# Completion of orch in bash. Stacks, tags and runs come from the current project.
#
# To install it, add this line to ~/.bashrc:
#
#     eval "$(orch completions bash)"
#
# Or, with the package bash-completion, write it to a file, and again after each upgrade:
#
#     mkdir -p ~/.local/share/bash-completion/completions
#     orch completions bash > ~/.local/share/bash-completion/completions/orch

_orch() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(ORCH_COMPLETE=bash orch -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    # The word continues after these.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=:,@] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

# Older versions sort the candidates.
complete -o bashdefault -o nosort -F _orch orch 2>/dev/null ||
    complete -o bashdefault -F _orch orch
