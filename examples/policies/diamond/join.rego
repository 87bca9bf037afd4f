package join

import rego.v1

finished contains turn.stack_id if {
	some turn in input.workflow
	turn.state == "FINISHED"
}

# Whichever of the two finishes last triggers the app.
trigger contains "app" if {
	"database" in finished
	"queue" in finished
}
