# A driver for stacks whose infrastructure is a file: `want` in the stack directory says what is in it.
#
# The files are not in the project: a stack that was removed is destroyed from a checkout of an earlier commit.
: "${LIVE:?set LIVE to a directory outside of the project, as an absolute path}"
live="$LIVE/$ORCH_STACK_NAME"
[ "$ORCH_GENERATION" = 1 ] || live="$live-$ORCH_GENERATION"

case "$1" in
plan)
  if [ "$ORCH_ACTION" = delete ]; then
    [ -e "$live" ] || { echo '{"exists": false}' > "$ORCH_ANSWER"; exit 0; }
    echo '{"remove": 1}' > "$ORCH_ANSWER"
    exit 2
  fi
  if [ ! -e "$live" ]; then
    echo '{"exists": false, "add": 1}' > "$ORCH_ANSWER"
    exit 2
  fi
  cmp -s want "$live" && exit 0
  echo '{"change": 1}' > "$ORCH_ANSWER"
  exit 2
  ;;
apply) mkdir -p "$LIVE" && cp want "$live" ;;
destroy) rm "$live" ;;
outputs) printf '{"id": "%s"}' "$(cat "$live")" ;;
esac
