#compdef orch
# Completion of orch in zsh. Stacks, tags and runs come from the current project.
#
# To install it, add this line to ~/.zshrc, below the one with `compinit`:
#
#     eval "$(orch completions zsh)"
#
# Or write it to a directory in $fpath, and again after each upgrade:
#
#     orch completions zsh > ~/.zsh/completions/_orch

_orch() {
    local line="${(j: :)words[1,CURRENT-1]} ${QIPREFIX}${IPREFIX}${PREFIX}"
    local candidate
    local -a whole begun
    for candidate in "${(@f)$(ORCH_COMPLETE=zsh orch -- "$line" 2>/dev/null)}"; do
        case $candidate in
            ('='*) whole+=("${candidate[2,-1]}") ;;
            ('+'*) begun+=("${candidate[2,-1]}") ;; # the word continues after these
        esac
    done
    (( $#whole )) && _describe -V 'orch' whole
    (( $#begun )) && _describe -V 'orch' begun -S ''
    (( $#whole + $#begun ))
}

if [[ $funcstack[1] == _orch ]]; then
    _orch "$@" # zsh has loaded this file to complete a first word
else
    compdef _orch orch
fi
