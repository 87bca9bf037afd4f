# Completion of orch in fish. Stacks, tags and runs come from the current project.
#
# To install it, add this line to ~/.config/fish/config.fish:
#
#     orch completions fish | source
#
# Or write it to a file, and again after each upgrade:
#
#     orch completions fish > ~/.config/fish/completions/orch.fish

function __orch_complete
    set -l line (commandline --current-process --cut-at-cursor | string collect)
    ORCH_COMPLETE=fish orch -- "$line" 2>/dev/null
end

complete --command orch --no-files --keep-order --arguments '(__orch_complete)'
