package retry

import rego.v1

# One more try, unless somebody has asked for this turn: a user, or a policy such as this one.
trigger contains input.stack.id if {
	input.run.type == "TRACKED"
	input.run.state == "FAILED"
	input.run.triggered_by == null
}
